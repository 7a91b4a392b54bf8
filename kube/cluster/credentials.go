package cluster

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"drover/internal/atomicfile"
	"drover/kube/client"
	"drover/pools"
)

// MaxKubeconfig is the largest kubeconfig, in bytes. A usual one has a few kilobytes.
const MaxKubeconfig = 1 << 20

// Requests per second to one API server. A join, from its start to Ready, is
// about ten of them.
const (
	requestRate  = 200
	requestBurst = 1000
	dialTimeout  = 5 * time.Second
)

// kubeconfigKeys are the keys of a kubeconfig in the Secrets of Cluster API, of Kamaji
// and of operators, in the order in which they are tried.
var kubeconfigKeys = []string{"value", "admin.conf", "kubeconfig"}

// dial makes a client from a kubeconfig. An empty kubeconfig is an error: dial does not
// fall back to the environment or to the cluster that drover runs in.
func (c *Cluster) dial(kubeconfig clientcmdapi.Config) (client.Interface, error) {
	conf, err := restConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	return c.newClient(conf)
}

// restConfig returns what a kubeconfig says in its current context.
func restConfig(kubeconfig clientcmdapi.Config) (*rest.Config, error) {
	conf, err := clientcmd.NewDefaultClientConfig(kubeconfig, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) { // client-go speaks of an environment that drover does not read
		return nil, errors.New("its current-context leads to no API server")
	}
	return conf, err
}

// dialInCluster makes a client for the cluster that drover runs in.
func (c *Cluster) dialInCluster() (client.Interface, error) {
	conf, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, errors.New("server.adminKubeconfig is not set, and drover does not run in a cluster")
	}
	if err != nil {
		return nil, err
	}
	return c.newClient(conf)
}

func (c *Cluster) newClient(conf *rest.Config) (client.Interface, error) {
	c.Limit(conf)
	bearer := c.bear(conf)
	typed, err := client.New(conf)
	if err != nil {
		return nil, err
	}
	return &connection{typed, sync.OnceValues(func() (dynamic.Interface, error) { return dynamic.NewForConfig(conf) }), conf, bearer}, nil
}

// connection is a client with a dynamic one of the same credentials.
type connection struct {
	client.Interface
	dynamic func() (dynamic.Interface, error)
	conf    *rest.Config // nil: it has no credentials
	bearer  Bearer
}

// Dynamic returns a client for any kind of object, with the newest usable credentials; the
// limits of [Cluster.Client] hold for it, too.
func (c *Cluster) Dynamic() (dynamic.Interface, error) { return DynamicOf(c.Client()) }

// DynamicOf returns the client of [Cluster.Dynamic] for one of [Cluster.Client].
func DynamicOf(of client.Interface) (dynamic.Interface, error) {
	if c, ok := of.(*connection); ok {
		return c.dynamic()
	}
	return nil, fmt.Errorf("no dynamic client beside a %T", of)
}

// readFile reads the kubeconfig file if it has changed. Without a file there are no
// credentials. A file that cannot be used leaves the earlier credentials in force.
// c.mu is held.
//
// The kubeconfig may run a program to get its credentials, and may name other files:
// its author also writes drover's config.
func (c *Cluster) readFile() {
	info, err := os.Stat(c.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		c.client, c.problem, c.stamp = nil, err, ""
		return
	case err != nil:
		c.problem = err
		return
	}
	if !info.Mode().IsRegular() { // to read a FIFO could take for ever
		c.problem = fmt.Errorf("%s: not a regular file (mode %s)", c.path, info.Mode())
		return
	}
	stamp := atomicfile.Version(c.path)
	if stamp == c.stamp {
		return
	}
	c.stamp = stamp
	if info.Size() > MaxKubeconfig {
		c.problem = fmt.Errorf("%s: larger than %d bytes", c.path, MaxKubeconfig)
		return
	}
	file, err := clientcmd.LoadFromFile(c.path)
	if err == nil {
		err = clientcmd.ResolveLocalPaths(file)
	}
	var client client.Interface
	if err == nil {
		client, err = c.dial(*file)
	}
	if err != nil {
		c.problem = fmt.Errorf("%s: %w", c.path, err)
		return
	}
	c.client, c.problem = client, nil
}

// kubeconfigIn returns the kubeconfig in the Secret of a tenant. The Secret may also
// hold a certificate and its key, or the token of a ServiceAccount, as
// kubernetes-in-kubernetes makes them; the config must then name the API server.
func kubeconfigIn(s *corev1.Secret, key, endpoint string) (*clientcmdapi.Config, error) {
	keys := kubeconfigKeys
	if key != "" {
		keys = []string{key}
	}
	for _, k := range keys {
		text, ok := s.Data[k]
		switch {
		case !ok:
			continue
		case len(text) > MaxKubeconfig:
			return nil, fmt.Errorf("its %q is larger than %d bytes", k, MaxKubeconfig)
		case Anchored(string(text)):
			return nil, fmt.Errorf("its %q has YAML anchors, which drover does not read", k)
		}
		conf, err := clientcmd.Load(text)
		if err != nil {
			return nil, fmt.Errorf("its %q is no kubeconfig", k) // the error may quote it
		}
		return conf, selfContained(conf)
	}
	if _, ok := s.Data[corev1.ServiceAccountRootCAKey]; ok && key == "" {
		return kubeconfigFrom(s, endpoint)
	}
	return nil, fmt.Errorf("it has none of the keys %s, but %s; name one with secretRef.key",
		strings.Join(keys, ", "), strings.Join(slices.Sorted(maps.Keys(s.Data)), ", "))
}

// kubeconfigFrom makes a kubeconfig from ca.crt and either tls.crt with tls.key or
// token.
func kubeconfigFrom(s *corev1.Secret, endpoint string) (*clientcmdapi.Config, error) {
	if endpoint == "" {
		return nil, errors.New("it has a ca.crt and no kubeconfig: name the API server with clusters[].endpoint")
	}
	user := &clientcmdapi.AuthInfo{
		ClientCertificateData: s.Data[corev1.TLSCertKey], ClientKeyData: s.Data[corev1.TLSPrivateKeyKey],
		Token: strings.TrimSpace(string(s.Data[corev1.ServiceAccountTokenKey])),
	}
	if user.Token == "" && (len(user.ClientCertificateData) == 0 || len(user.ClientKeyData) == 0) {
		return nil, errors.New("it has a ca.crt, but neither tls.crt and tls.key nor a token")
	}
	conf := clientcmdapi.NewConfig()
	conf.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://" + endpoint, CertificateAuthorityData: s.Data[corev1.ServiceAccountRootCAKey]}
	conf.AuthInfos["c"] = user
	conf.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "c"}
	conf.CurrentContext = "c"
	return conf, nil
}

// selfContained refuses a kubeconfig that runs a program on this host, or that reads
// files of this host and could send them to its server: a person with write access to
// a Secret of the admin cluster need not have access to this host.
func selfContained(conf *clientcmdapi.Config) error {
	for name, user := range conf.AuthInfos {
		switch {
		case user.Exec != nil:
			return fmt.Errorf("its user %q runs a program (exec), which a kubeconfig from a Secret may not", name)
		case user.AuthProvider != nil:
			return fmt.Errorf("its user %q has an auth-provider, which a kubeconfig from a Secret may not", name)
		case user.ClientCertificate != "" || user.ClientKey != "" || user.TokenFile != "":
			return fmt.Errorf("its user %q names files, which a kubeconfig from a Secret may not: write their content into it (kubectl config view --flatten)", name)
		}
	}
	for name, cluster := range conf.Clusters {
		if cluster.CertificateAuthority != "" {
			return fmt.Errorf("its cluster %q names a file, which a kubeconfig from a Secret may not: write its content into it (kubectl config view --flatten)", name)
		}
	}
	return nil
}

// secretName names a Secret in error texts.
func secretName(ref pools.SecretRef) string {
	return fmt.Sprintf("Secret %s/%s of the admin cluster", ref.Namespace, ref.Name)
}
