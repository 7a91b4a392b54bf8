package token

import (
	"context"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/cluster-bootstrap/token/jws"
	bootstrap "k8s.io/cluster-bootstrap/token/util"

	"drover/pools/kube/cluster"
	"drover/pools/wait"
)

const mintToken = "mint a join token"

// Token is a bootstrap token. Its ID is no secret: anyone may read it in
// cluster-info. However it is printed, its secret stays out.
type Token struct {
	ID     string `json:"id"`
	Secret string `json:"secret"`
}

func (t Token) String() string { return t.ID + ".(secret)" }

// GoString is String, for %#v.
func (t Token) GoString() string { return t.String() }

// Full returns the token with its secret, as kubeadm takes it.
func (t Token) Full() string { return bootstrap.TokenFromIDAndSecret(t.ID, t.Secret) }

// SecretName returns the name of the token's Secret in kube-system. It has to
// match the ID, or the cluster ignores the Secret.
func (t Token) SecretName() string { return bootstrap.BootstrapTokenSecretName(t.ID) }

// signedIn reports whether the cluster has signed its cluster-info for the token.
// A node that got its token earlier would have to wait for the signature.
func (t Token) signedIn(i *cluster.Info) bool {
	signature, ok := i.Data[bootstrapapi.JWSSignatureKeyPrefix+t.ID]
	return ok && jws.DetachedTokenIsValid(signature, i.Text, t.ID, t.Secret)
}

func random() (Token, error) {
	s, err := bootstrap.GenerateBootstrapToken()
	id, secret, _ := strings.Cut(s, ".")
	return Token{id, secret}, err
}

// Minter makes and deletes the tokens of one cluster.
type Minter struct {
	*cluster.Cluster
	Key []byte           // seals grants
	Now func() time.Time // the clock
}

// TTL returns how long tokens are valid, as the config says or 10 minutes.
func (m Minter) TTL() time.Duration {
	if ttl := m.Conf.Token.TTL.D(); ttl > 0 {
		return ttl
	}
	return 10 * time.Minute
}

// MintSigned makes a token for a node that kubeadm can use at once. A token that
// comes with an error has to be deleted.
func (m Minter) MintSigned(ctx context.Context, node string, ttl time.Duration) (Token, *cluster.Info, error) {
	client := m.Client()
	tok, err := m.Mint(ctx, node, ttl)
	if err != nil {
		return Token{}, nil, err
	}
	info, err := m.awaitSigned(ctx, tok, client)
	return tok, info, err
}

// Mint makes a token for a node.
func (m Minter) Mint(ctx context.Context, node string, ttl time.Duration) (Token, error) {
	for range 3 { // two of 36^6 tokens have the same ID
		tok, err := random()
		if err != nil {
			return Token{}, err
		}
		err = m.create(ctx, tok, node, m.Now().Add(ttl), "node "+node)
		if !apierrors.IsAlreadyExists(err) {
			return tok, err
		}
	}
	return Token{}, m.Wrap(mintToken, errors.New("three random ids are all taken"))
}

// put makes a shared token. A token of that ID that exists is no error.
func (m Minter) put(ctx context.Context, tok Token, expires time.Time) error {
	err := m.create(ctx, tok, "", expires, "shared by all nodes")
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (m Minter) create(ctx context.Context, tok Token, node string, expires time.Time, description string) error {
	groups := KubeadmGroup
	if m.Approves() {
		groups = Groups(m.Key, tok.ID, node, expires)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: tok.SecretName(), Namespace: metav1.NamespaceSystem},
		Type:       bootstrapapi.SecretTypeBootstrapToken,
		StringData: map[string]string{
			bootstrapapi.BootstrapTokenIDKey:               tok.ID,
			bootstrapapi.BootstrapTokenSecretKey:           tok.Secret,
			bootstrapapi.BootstrapTokenExpirationKey:       expires.UTC().Format(time.RFC3339),
			bootstrapapi.BootstrapTokenDescriptionKey:      "drover: " + description,
			bootstrapapi.BootstrapTokenExtraGroupsKey:      groups,
			bootstrapapi.BootstrapTokenUsageSigningKey:     "true",
			bootstrapapi.BootstrapTokenUsageAuthentication: "true",
		},
	}
	_, err := m.Client().CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, secret, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) {
		return err
	}
	return m.WrapSecret(mintToken, err, tok.Secret)
}

// signed reports whether cluster-info is signed for a token, which it is as long
// as the cluster holds the token.
func (m Minter) signed(ctx context.Context, tok Token) (bool, error) {
	info, err := m.Info(ctx)
	return err == nil && tok.signedIn(info), err
}

// awaitSigned waits until cluster-info is signed for tok, which takes a running
// signer 10 to 100 ms. The token was made with client: when the credentials change
// meanwhile, a signature may never come.
func (m Minter) awaitSigned(ctx context.Context, tok Token, client kubernetes.Interface) (*cluster.Info, error) {
	const doing = "wait for the signature of a join token"
	unsigned := false // cluster-info was read, without the signature
	for delay := 10 * time.Millisecond; ; delay = min(2*delay, 500*time.Millisecond) {
		if m.Client() != client {
			return nil, &cluster.Error{Cluster: m.Conf.Name, Doing: doing, Hint: "its credentials have just changed", Retry: cluster.RetrySoon}
		}
		info, err := m.Info(ctx)
		if err == nil && tok.signedIn(info) {
			return info, nil
		}
		unsigned = unsigned || err == nil
		if e, ok := errors.AsType[*cluster.Error](err); ok && e.Retry == cluster.RetryLater {
			return nil, err // an operator has to do something first
		}
		switch {
		case wait.Sleep(ctx, delay) == nil:
		case !unsigned:
			return nil, err
		default:
			return nil, &cluster.Error{Cluster: m.Conf.Name, Doing: doing, Retry: cluster.RetryLater, Err: context.Cause(ctx),
				Hint: "cluster-info is not signed for it: the bootstrapsigner does not run (kube-controller-manager --controllers=*,bootstrapsigner,tokencleaner)"}
		}
	}
}

// Delete deletes a token. A token that does not exist is no error.
func (m Minter) Delete(ctx context.Context, tok Token) error {
	if err := m.DeleteExisting(ctx, tok); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// DeleteExisting deletes a token. The error wraps the API server's NotFound if the
// token does not exist.
func (m Minter) DeleteExisting(ctx context.Context, tok Token) error {
	err := m.Client().CoreV1().Secrets(metav1.NamespaceSystem).Delete(ctx, tok.SecretName(), metav1.DeleteOptions{})
	return m.WrapSecret("delete a join token", err, tok.Secret)
}
