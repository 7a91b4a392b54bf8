package kube

import (
	"context"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstrap "k8s.io/cluster-bootstrap/token/util"
)

// nodeGroup is the group of worker nodes that join. kubeadm gives it all the
// rights that a join needs, and has its certificates approved.
const nodeGroup = "system:bootstrappers:kubeadm:default-node-token"

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

// mint makes a token for a node.
func (c *cluster) mint(ctx context.Context, node string, ttl time.Duration) (token, error) {
	client, err := c.connect()
	if err != nil {
		return token{}, err
	}
	for range 3 { // two tokens in 36^6 have the same id
		tok, err := newToken()
		if err != nil {
			return token{}, err
		}
		call, cancel := context.WithTimeout(ctx, callTimeout)
		_, err = client.CoreV1().Secrets(metav1.NamespaceSystem).Create(call, c.secret(tok, node, ttl), metav1.CreateOptions{})
		cancel()
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil {
			return token{}, c.redacted(mintToken, err, tok)
		}
		return tok, nil
	}
	return token{}, c.errorf(mintToken, errors.New("three random ids are all taken"))
}

// secret returns the Secret that is a bootstrap token. Its name has to match
// its id, or the cluster ignores it.
func (c *cluster) secret(tok token, node string, ttl time.Duration) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: tok.name(), Namespace: metav1.NamespaceSystem},
		Type:       bootstrapapi.SecretTypeBootstrapToken,
		StringData: map[string]string{
			bootstrapapi.BootstrapTokenIDKey:               tok.id,
			bootstrapapi.BootstrapTokenSecretKey:           tok.secret,
			bootstrapapi.BootstrapTokenExpirationKey:       c.now().Add(ttl).UTC().Format(time.RFC3339),
			bootstrapapi.BootstrapTokenDescriptionKey:      "drover: node " + node,
			bootstrapapi.BootstrapTokenExtraGroupsKey:      nodeGroup,
			bootstrapapi.BootstrapTokenUsageSigningKey:     "true",
			bootstrapapi.BootstrapTokenUsageAuthentication: "true",
		},
	}
}

// awaitSigned waits until cluster-info is signed for tok, which takes a running
// signer 10 to 100 ms.
func (c *cluster) awaitSigned(ctx context.Context, tok token) (*clusterInfo, error) {
	for delay := 10 * time.Millisecond; ; delay = min(2*delay, 500*time.Millisecond) {
		info, err := c.info(ctx)
		if err == nil && info.signedFor(tok) {
			return info, nil
		}
		if e, ok := errors.AsType[*ClusterError](err); ok && e.Retry == retryLater {
			return nil, err // somebody has to do something first
		}
		select {
		case <-ctx.Done():
			if err != nil {
				return nil, err
			}
			return nil, &ClusterError{Cluster: c.conf.Name, Doing: "wait for the signature of a join token", Retry: retryLater, Err: context.Cause(ctx),
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
