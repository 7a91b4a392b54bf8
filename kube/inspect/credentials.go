package inspect

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"drover/kube/client"
	"drover/kube/cluster"
	"drover/kube/credentials"
	"drover/pools"
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
	client, err := client.New(conf)
	if err != nil {
		return nil, end, err
	}
	of := credentials.Drover
	token, end, err := credentials.Request(cluster.Quiet(ctx), client, of, lifetime)
	if err != nil {
		return nil, end, fmt.Errorf("make a token of ServiceAccount %s: %w", of, err)
	}
	kubeconfig, err = clientcmd.Write(*kubeconfigOf(file, token))
	return kubeconfig, end, err
}

// credentials notes when drover's credentials end, and whether drover renews them.
func (i *inspection) credentials(ctx context.Context) {
	f := Finding{What: "drover's credentials", OK: true, Detail: "they do not end, or something else renews them"}
	if end := cluster.Expiry(i.client); !end.IsZero() {
		f.Detail = "they end at " + end.UTC().Format(time.RFC3339)
		if of, ok := credentials.AccountOf(i.client); ok && i.Renewed != nil {
			needed := right{"create", "", "serviceaccounts/token", of.Namespace, of.Name}
			missing, err := i.check(ctx, i.client, []right{needed}, false)
			f.Advice = err != nil || len(missing) > 0
			f.Detail += map[bool]string{false: "; drover serve renews them", true: "; drover may not renew them: drover cluster prepare gives it the right"}[f.Advice]
		}
	}
	i.found = append(i.found, f)
}

// kubeconfigOf returns a kubeconfig for the current cluster of another one, with a token and
// nothing of its user.
func kubeconfigOf(other *clientcmdapi.Config, token string) *clientcmdapi.Config {
	to := other.Clusters[other.Contexts[other.CurrentContext].Cluster].DeepCopy()
	to.Extensions = nil
	conf, account := clientcmdapi.NewConfig(), credentials.Drover.Name
	conf.Clusters["cluster"] = to
	conf.AuthInfos[account] = &clientcmdapi.AuthInfo{Token: token}
	conf.Contexts[account] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: account}
	conf.CurrentContext = account
	return conf
}
