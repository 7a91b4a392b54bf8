package cluster

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"
)

// Kubeconfig is what a kubeconfig tells without its API server.
type Kubeconfig struct {
	Server string    // URL of the API server
	Proxy  bool      // it names a proxy that leads there
	Ends   time.Time // of its credentials, as [Expiry] returns it
}

// Inspect reads a kubeconfig as [Cluster.Client] does.
func Inspect(data []byte) (k Kubeconfig, err error) {
	file, err := clientcmd.Load(data)
	if err != nil || len(file.Clusters) == 0 {
		return k, errors.New("it is not a kubeconfig") // the error may quote it
	}
	conf, err := restConfig(*file)
	if err != nil {
		return k, err
	}
	if len(conf.CertData) > 0 {
		if _, err := certutil.ParseCertsPEM(conf.CertData); err != nil {
			return k, fmt.Errorf("its client certificate: %w", err)
		}
	}
	return Kubeconfig{Server: conf.Host, Proxy: conf.Proxy != nil, Ends: expiryOf(conf)}, nil
}
