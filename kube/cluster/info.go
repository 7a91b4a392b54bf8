package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
)

const (
	readInfo    = "read cluster-info"
	infoTimeout = 20 * time.Second // with repetitions, which the API server can ask for
)

// MaxInfo is the largest text that is read from a ConfigMap of a tenant, in bytes. A
// kubeconfig with a few CA certificates has a few kilobytes.
const MaxInfo = 64 << 10

// Info is the ConfigMap cluster-info of kube-public: the address of the API server and
// the pins of its CAs. The cluster signs it for every bootstrap token.
type Info struct {
	Endpoint string            // host:port of the API server
	CA       []byte            // certificates of its CAs, in PEM
	Hashes   []string          // pins of the public keys of its CAs, as kubeadm writes them
	Text     string            // the kubeconfig that is signed
	Data     map[string]string // the whole ConfigMap, with the signatures
}

// Info reads cluster-info. Simultaneous calls share one request.
func (c *Cluster) Info(ctx context.Context) (*Info, error) {
	client := c.Client()
	answer := c.infos.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(Quiet(context.Background()), infoTimeout)
		defer cancel()
		cm, err := client.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(ctx, bootstrapapi.ConfigMapClusterInfo, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, &Error{Cluster: c.Conf.Name, Doing: readInfo, Retry: RetryLater, Err: err,
				Hint: "it has none, so no node can join with a token; \"kubeadm init phase bootstrap-token\" makes it"}
		}
		if err != nil {
			return nil, c.Wrap(readInfo, err)
		}
		info, err := ParseInfo(cm.Data)
		if err != nil {
			return nil, &Error{Cluster: c.Conf.Name, Doing: readInfo, Retry: RetryLater, Err: err, Hint: "it is broken"}
		}
		return info, nil
	})
	select {
	case a := <-answer:
		if a.Err != nil {
			return nil, a.Err
		}
		return a.Val.(*Info), nil
	case <-ctx.Done():
		return nil, c.Wrap(readInfo, context.Cause(ctx))
	}
}

// anchor matches the begin of an anchor in YAML.
var anchor = regexp.MustCompile(`(?m)(^|[\s,:\[\]{}-])&[^\s,\[\]{}]`)

// Anchored reports whether a text in YAML may have anchors. With them a text of 64 KiB can
// have a value of several hundred MiB, and no program writes them into a kubeconfig.
func Anchored(text string) bool { return anchor.MatchString(text) }

// ParseInfo parses the data of a cluster-info.
func ParseInfo(data map[string]string) (*Info, error) {
	info := &Info{Text: data[bootstrapapi.KubeConfigKey], Data: data}
	if len(info.Text) > MaxInfo {
		return nil, fmt.Errorf("its kubeconfig is larger than %d bytes", MaxInfo)
	}
	if Anchored(info.Text) {
		return nil, errors.New("its kubeconfig has YAML anchors, which drover does not read")
	}
	conf, err := clientcmd.Load([]byte(info.Text))
	if err != nil {
		return nil, err
	}
	// kubeadm writes one cluster, whose name is empty.
	if len(conf.Clusters) != 1 {
		return nil, fmt.Errorf("its kubeconfig names %d clusters, want 1", len(conf.Clusters))
	}
	for _, cluster := range conf.Clusters {
		if info.Endpoint, err = endpoint(cluster.Server); err != nil {
			return nil, err
		}
		info.CA = cluster.CertificateAuthorityData
		if info.Hashes, err = caHashes(info.CA); err != nil {
			return nil, err
		}
	}
	return info, nil
}

// endpoint returns the host:port of a URL, as kubeadm expects it.
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

// caHashes returns the pins of all CAs in a bundle; kubeadm requires one match.
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
