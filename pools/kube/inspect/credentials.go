package inspect

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"drover/pools"
	"drover/pools/kube/cluster"
)

// The ServiceAccount of deploy/rbac.yaml.
const (
	accountNamespace = "kube-system"
	account          = "drover"
)

// Credentials returns a kubeconfig of drover's ServiceAccount, with a new token, for the
// cluster of an administrator's kubeconfig file. The API server may give the token another
// end than after lifetime; end is the right one.
func Credentials(ctx context.Context, admin string, lifetime time.Duration) (kubeconfig []byte, end time.Time, err error) {
	file, err := clientcmd.LoadFromFile(admin)
	if err == nil {
		err = clientcmdapi.MinifyConfig(file)
	}
	if err == nil {
		err = clientcmdapi.FlattenConfig(file) // with what is in files of its own
	}
	if err != nil {
		return nil, end, fmt.Errorf("%s: %w", admin, err)
	}
	conf, err := clientcmd.NewDefaultClientConfig(*file, nil).ClientConfig()
	if err != nil {
		return nil, end, fmt.Errorf("%s: %w", admin, err)
	}
	cluster.New(pools.Cluster{}, admin, time.Now).Limit(conf)
	client, err := kubernetes.NewForConfig(conf)
	if err != nil {
		return nil, end, err
	}
	seconds := int64(lifetime / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	made, err := client.CoreV1().ServiceAccounts(accountNamespace).CreateToken(cluster.Quiet(ctx), account, request, metav1.CreateOptions{})
	if err != nil {
		return nil, end, fmt.Errorf("make a token of ServiceAccount %s/%s: %w", accountNamespace, account, err)
	}
	kubeconfig, err = clientcmd.Write(*kubeconfigOf(file, made.Status.Token))
	return kubeconfig, made.Status.ExpirationTimestamp.Time, err
}

// kubeconfigOf returns a kubeconfig for the current cluster of another one, with a token and
// nothing of its user.
func kubeconfigOf(other *clientcmdapi.Config, token string) *clientcmdapi.Config {
	to := other.Clusters[other.Contexts[other.CurrentContext].Cluster].DeepCopy()
	to.Extensions = nil
	conf := clientcmdapi.NewConfig()
	conf.Clusters["cluster"] = to
	conf.AuthInfos[account] = &clientcmdapi.AuthInfo{Token: token}
	conf.Contexts[account] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: account}
	conf.CurrentContext = account
	return conf
}
