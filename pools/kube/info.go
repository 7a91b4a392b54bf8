package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/cluster-bootstrap/token/jws"
)

const readInfo = "read cluster-info"

// A kubeconfig with a few CA certificates is a few kilobytes.
const maxInfo = 64 << 10

// clusterInfo is the ConfigMap cluster-info of kube-public: how to reach the
// cluster and how to know it. It is signed for every bootstrap token.
type clusterInfo struct {
	endpoint string   // host:port
	hashes   []string // of the public keys of its CAs, as kubeadm writes them
	text     string   // the kubeconfig that is signed
	data     map[string]string
}

// signedFor tells whether the cluster has signed the text for tok. A node that
// gets its token earlier would have to wait for it.
func (i *clusterInfo) signedFor(tok token) bool {
	signature, ok := i.data[bootstrapapi.JWSSignatureKeyPrefix+tok.id]
	return ok && jws.DetachedTokenIsValid(signature, i.text, tok.id, tok.secret)
}

// info reads cluster-info. Callers at the same time share one request.
func (c *cluster) info(ctx context.Context) (*clusterInfo, error) {
	client, err := c.connect()
	if err != nil {
		return nil, err
	}
	answer := c.infos.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(quiet(context.Background()), callTimeout)
		defer cancel()
		cm, err := client.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(ctx, bootstrapapi.ConfigMapClusterInfo, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return parseInfo(cm.Data)
	})
	select {
	case a := <-answer:
		if apierrors.IsNotFound(a.Err) {
			return nil, &ClusterError{Cluster: c.conf.Name, Doing: readInfo, Retry: retryLater, Err: a.Err,
				Hint: "it has none, so no node can join with a token; \"kubeadm init phase bootstrap-token\" makes it"}
		}
		if bad, ok := errors.AsType[*infoError](a.Err); ok {
			return nil, &ClusterError{Cluster: c.conf.Name, Doing: readInfo, Retry: retryLater, Err: bad, Hint: "it is broken"}
		}
		if a.Err != nil {
			return nil, c.errorf(readInfo, a.Err)
		}
		return a.Val.(*clusterInfo), nil
	case <-ctx.Done():
		return nil, c.errorf(readInfo, context.Cause(ctx))
	}
}

// infoError is what is wrong with the content of cluster-info.
type infoError struct{ err error }

func (e *infoError) Error() string { return e.err.Error() }

func parseInfo(data map[string]string) (*clusterInfo, error) {
	info := &clusterInfo{text: data[bootstrapapi.KubeConfigKey], data: data}
	if len(info.text) > maxInfo {
		return nil, &infoError{fmt.Errorf("its kubeconfig is larger than %d bytes", maxInfo)}
	}
	conf, err := clientcmd.Load([]byte(info.text))
	if err != nil {
		return nil, &infoError{err}
	}
	// kubeadm writes one cluster, whose name is empty.
	if len(conf.Clusters) != 1 {
		return nil, &infoError{fmt.Errorf("its kubeconfig names %d clusters, want 1", len(conf.Clusters))}
	}
	for _, cluster := range conf.Clusters {
		if info.endpoint, err = endpoint(cluster.Server); err != nil {
			return nil, &infoError{err}
		}
		if info.hashes, err = caHashes(cluster.CertificateAuthorityData); err != nil {
			return nil, &infoError{err}
		}
	}
	return info, nil
}

// endpoint makes host:port, which is what kubeadm wants, of a URL.
func endpoint(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	if u.Scheme != "https" || u.Hostname() == "" || (u.Path != "" && u.Path != "/") {
		return "", fmt.Errorf("its server %q is not like https://host:port", server)
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}

// caHashes returns the pins of all CAs in a bundle; kubeadm wants one to match.
func caHashes(pem []byte) ([]string, error) {
	if len(pem) == 0 {
		return nil, errors.New("its kubeconfig has no CA certificate")
	}
	certs, err := cert.ParseCertsPEM(pem)
	if err != nil {
		return nil, err
	}
	var hashes []string
	for _, ca := range certs {
		sum := sha256.Sum256(ca.RawSubjectPublicKeyInfo)
		hash := "sha256:" + hex.EncodeToString(sum[:])
		if !slices.Contains(hashes, hash) { // a renewed CA may keep its key
			hashes = append(hashes, hash)
		}
	}
	return hashes, nil
}
