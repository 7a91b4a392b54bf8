package kube

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
	bootstrap "k8s.io/cluster-bootstrap/token/util"
)

const mintToken = "mint a join token"

// token is a bootstrap token. Its id is no secret: anyone may read it in
// cluster-info. However it is printed, its secret stays out.
type token struct{ id, secret string }

func (t token) String() string   { return t.id + ".(secret)" }
func (t token) GoString() string { return t.String() }

// full returns what kubeadm takes.
func (t token) full() string { return bootstrap.TokenFromIDAndSecret(t.id, t.secret) }

func (t token) name() string { return bootstrap.BootstrapTokenSecretName(t.id) }

func newToken() (token, error) {
	s, err := bootstrap.GenerateBootstrapToken()
	id, secret, _ := strings.Cut(s, ".")
	return token{id, secret}, err
}

// mintSigned makes a token for a node that kubeadm can use at once. A token that
// comes with an error is to be taken back.
func (c *cluster) mintSigned(ctx context.Context, key []byte, node string, ttl time.Duration) (token, *clusterInfo, error) {
	client, err := c.connect()
	if err != nil {
		return token{}, nil, err
	}
	tok, err := c.mint(ctx, key, node, ttl)
	if err != nil {
		return token{}, nil, err
	}
	info, err := c.awaitSigned(ctx, tok, client)
	return tok, info, err
}

// mint makes a token for a node.
func (c *cluster) mint(ctx context.Context, key []byte, node string, ttl time.Duration) (token, error) {
	for range 3 { // two tokens in 36^6 have the same id
		tok, err := newToken()
		if err != nil {
			return token{}, err
		}
		err = c.create(ctx, key, tok, grant{node, c.now().Add(ttl)}, "node "+node)
		if !apierrors.IsAlreadyExists(err) {
			return tok, err
		}
	}
	return token{}, c.errorf(mintToken, errors.New("three random ids are all taken"))
}

// put makes a token that is known already, unless it is there.
func (c *cluster) put(ctx context.Context, key []byte, tok token, g grant, what string) error {
	err := c.create(ctx, key, tok, g, what)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (c *cluster) create(ctx context.Context, key []byte, tok token, g grant, what string) error {
	client, err := c.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = client.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, c.secret(key, tok, g, what), metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) {
		return err
	}
	return c.redacted(mintToken, err, tok)
}

// secret returns the Secret that is a bootstrap token. Its name has to match
// its id, or the cluster ignores it.
func (c *cluster) secret(key []byte, tok token, g grant, what string) *corev1.Secret {
	groups := kubeadmGroup
	if c.approves() {
		groups = g.groups(key, tok.id)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: tok.name(), Namespace: metav1.NamespaceSystem},
		Type:       bootstrapapi.SecretTypeBootstrapToken,
		StringData: map[string]string{
			bootstrapapi.BootstrapTokenIDKey:               tok.id,
			bootstrapapi.BootstrapTokenSecretKey:           tok.secret,
			bootstrapapi.BootstrapTokenExpirationKey:       g.expires.UTC().Format(time.RFC3339),
			bootstrapapi.BootstrapTokenDescriptionKey:      "drover: " + what,
			bootstrapapi.BootstrapTokenExtraGroupsKey:      groups,
			bootstrapapi.BootstrapTokenUsageSigningKey:     "true",
			bootstrapapi.BootstrapTokenUsageAuthentication: "true",
		},
	}
}

// awaitSigned waits until cluster-info is signed for tok, which takes a running
// signer 10 to 100 ms. The token is of the cluster that with leads to: when the
// credentials change meanwhile, no signature may ever come.
func (c *cluster) awaitSigned(ctx context.Context, tok token, with kubernetes.Interface) (*clusterInfo, error) {
	const doing = "wait for the signature of a join token"
	unsigned := false // it was seen, without the signature
	for delay := 10 * time.Millisecond; ; delay = min(2*delay, 500*time.Millisecond) {
		if now, err := c.connect(); err == nil && now != with {
			return nil, &ClusterError{Cluster: c.conf.Name, Doing: doing, Hint: "its credentials have just changed", Retry: retrySoon}
		}
		info, err := c.info(ctx)
		if err == nil && info.signedFor(tok) {
			return info, nil
		}
		unsigned = unsigned || err == nil
		if e, ok := errors.AsType[*ClusterError](err); ok && e.Retry == retryLater {
			return nil, err // somebody has to do something first
		}
		select {
		case <-ctx.Done():
			if !unsigned {
				return nil, err
			}
			return nil, &ClusterError{Cluster: c.conf.Name, Doing: doing, Retry: retryLater, Err: context.Cause(ctx),
				Hint: "cluster-info is not signed for it: the bootstrapsigner does not run (kube-controller-manager --controllers=*,bootstrapsigner,tokencleaner)"}
		case <-time.After(delay):
		}
	}
}

// unmint deletes a token; one that is gone is no error.
func (c *cluster) unmint(ctx context.Context, tok token) error {
	client, err := c.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = client.CoreV1().Secrets(metav1.NamespaceSystem).Delete(ctx, tok.name(), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return c.redacted("delete a join token", err, tok)
	}
	return nil
}

func (c *cluster) redacted(doing string, err error, tok token) error {
	if clean := redact(err, tok.secret); clean != err { //nolint:errorlint // is it the same one, not of one kind
		return &ClusterError{Cluster: c.conf.Name, Doing: doing, Hint: "the API server refuses", Err: clean, Retry: retryLater}
	}
	return c.errorf(doing, err)
}
