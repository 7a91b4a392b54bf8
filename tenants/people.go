package tenants

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"drover/internal/atomicfile"
	"drover/kube/client"
	"drover/kube/cluster"
	"drover/tenants/manifests"
)

// Connection is a connection to an API server.
type Connection = rest.Config

// AdminConfig returns the connection to the admin cluster by a kubeconfig file. An empty
// path means the cluster that this program runs in.
func AdminConfig(path string) (*rest.Config, error) {
	if path != "" {
		return clientcmd.BuildConfigFromFlags("", path)
	}
	conf, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, errors.New("no kubeconfig of the admin cluster is named (server.adminKubeconfig), and this program does not run in a cluster")
	}
	return conf, err
}

// AdminFile returns [AdminConfig] as the Admin of a [Controller]: it reads the file again when
// that has changed. It is for one goroutine at a time.
func AdminFile(path string) func() (*rest.Config, error) {
	var conf *rest.Config
	version := ""
	return func() (*rest.Config, error) {
		if path == "" && conf != nil {
			return conf, nil // its token is in a file that client-go reads again
		}
		now := atomicfile.Version(path)
		if conf != nil && now == version {
			return conf, nil
		}
		read, err := AdminConfig(path)
		if err == nil {
			conf, version = read, now
		}
		return read, err
	}
}

// Kubeconfig returns the administrator's kubeconfig of a hosted tenant, from the namespace
// of the admin cluster where its control plane runs.
func Kubeconfig(ctx context.Context, admin *rest.Config, namespace, tenant string) ([]byte, error) {
	client, err := client.New(admin)
	if err != nil {
		return nil, err
	}
	name := (&manifests.Plane{Name: tenant}).AdminSecret()
	secret, err := client.CoreV1().Secrets(namespace).Get(cluster.Quiet(ctx), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no Secret %s/%s: is %q a tenant whose control plane drover runs, and has its API server started?", namespace, name, tenant)
	}
	if err != nil {
		return nil, err
	}
	text := secret.Data[kubeconfigKey]
	if len(text) == 0 {
		return nil, fmt.Errorf("the Secret %s/%s has no %q", namespace, name, kubeconfigKey)
	}
	return text, nil
}
