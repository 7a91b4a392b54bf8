package farm

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
)

//go:embed hello.yaml
var hello string

// InstallHello runs a pod on a node, behind a Service of the name hello.
func (t *Tenant) InstallHello(ctx context.Context, node string) error {
	_, err := t.Kubectl(ctx, strings.NewReader(strings.ReplaceAll(hello, "$NODE", node)), "apply", "-f", "-")
	return err
}

// Hello asks the Service hello from the pod webhook: by its address, for which the node needs
// kube-proxy and a network between pods, and by its name, for which it needs cluster DNS. It
// returns the address.
func (t *Tenant) Hello(ctx context.Context) (clusterIP string, err error) {
	clusterIP, err = t.Kubectl(ctx, nil, "get", "service", "hello", "-o", "jsonpath={.spec.clusterIP}")
	if err != nil {
		return "", err
	}
	for _, host := range []string{clusterIP, "hello", "hello.default.svc.cluster.local"} {
		said, err := t.Exec(ctx, "get", "http://"+host+"/")
		if err == nil && said != "hello from hello\n" {
			err = fmt.Errorf("it says %q", said)
		}
		if err != nil {
			return "", fmt.Errorf("http://%s/: %w", host, err)
		}
	}
	return clusterIP, nil
}
