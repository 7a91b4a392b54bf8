package token

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/cluster-bootstrap/token/jws"
	bootstrap "k8s.io/cluster-bootstrap/token/util"

	"drover/internal/wait"
	"drover/kube/client"
	"drover/kube/cluster"
)

const mintToken = "mint a join token"

// Token is a bootstrap token. Its ID is not a secret: cluster-info is public and
// contains it. No fmt verb prints its Secret.
type Token struct {
	ID     string `json:"id"`
	Secret string `json:"secret"`
}

// String returns the ID with a placeholder for the secret.
func (t Token) String() string { return t.ID + ".(secret)" }

// GoString is String, for %#v.
func (t Token) GoString() string { return t.String() }

// Full returns the token with its secret, in the form that kubeadm expects.
func (t Token) Full() string { return bootstrap.TokenFromIDAndSecret(t.ID, t.Secret) }

// SecretName returns the name of the token's Secret in kube-system. The cluster ignores
// a Secret whose name does not match the ID.
func (t Token) SecretName() string { return bootstrap.BootstrapTokenSecretName(t.ID) }

// signedIn reports whether cluster-info has a valid signature for the token. kubeadm
// waits for that signature.
func (t Token) signedIn(i *cluster.Info) bool {
	signature, ok := i.Data[bootstrapapi.JWSSignatureKeyPrefix+t.ID]
	return ok && jws.DetachedTokenIsValid(signature, i.Text, t.ID, t.Secret)
}

// randomToken returns a new token.
func randomToken() (Token, error) {
	s, err := bootstrap.GenerateBootstrapToken()
	id, secret, _ := strings.Cut(s, ".")
	return Token{id, secret}, err
}

// Minter mints and deletes the tokens of one cluster.
type Minter struct {
	*cluster.Cluster
	Key []byte           // seals grants
	Now func() time.Time // the clock
}

// TTL returns the lifetime of tokens: the one in the config, or 10 minutes.
func (m Minter) TTL() time.Duration {
	return cmp.Or(m.Conf.Token.TTL.D(), 10*time.Minute)
}

// MintSigned mints a token for a node, and waits until kubeadm can use it. If it returns
// both a token and an error, the caller has to delete the token.
func (m Minter) MintSigned(ctx context.Context, node string, ttl time.Duration) (Token, *cluster.Info, error) {
	client := m.Client()
	tok, err := m.Mint(ctx, node, ttl)
	if err != nil {
		return Token{}, nil, err
	}
	info, err := m.awaitSigned(ctx, tok, client)
	return tok, info, err
}

// Mint creates a token for a node in the cluster.
func (m Minter) Mint(ctx context.Context, node string, ttl time.Duration) (Token, error) {
	for range 3 { // two of 36^6 tokens have the same ID
		tok, err := randomToken()
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

// put creates a shared token in the cluster. It is no error if the token exists.
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

// signed reports whether cluster-info is signed for a token. It is as long as the
// cluster holds the token and its bootstrapsigner runs.
func (m Minter) signed(ctx context.Context, tok Token) (bool, error) {
	info, err := m.Info(ctx)
	return err == nil && tok.signedIn(info), err
}

// awaitSigned waits until cluster-info is signed for tok, which takes a running
// bootstrapsigner 10 to 100 ms. client is the one that created the token. If the
// credentials change meanwhile, it returns an error: they may be for another cluster,
// which never signs the token.
func (m Minter) awaitSigned(ctx context.Context, tok Token, client client.Interface) (*cluster.Info, error) {
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
