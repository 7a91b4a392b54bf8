package admin

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"drover/e2e/lab"
	"drover/internal/wait"
)

// serviceColumns are the fields of a Service that a load balancer needs.
const serviceColumns = `jsonpath={.metadata.namespace} {.metadata.name} {.spec.type} {.spec.loadBalancerIP} {.status.loadBalancer.ingress[0].ip}{"\n"}`

// balance stands for a load balancer until ctx is done: each Service of type LoadBalancer
// gets the address that it asks for, on the rack's bridge. kube-proxy does the rest.
func (c *Cluster) balance(ctx context.Context) {
	log, err := os.Create(filepath.Join(c.cfg.Dir, "loadbalancer.log"))
	if err != nil {
		return // Services without an address say enough
	}
	defer log.Close()
	for ctx.Err() == nil {
		fmt.Fprintln(log, c.watchServices(ctx))
		_ = wait.Sleep(ctx, 200*time.Millisecond) // the loop's condition is ctx
	}
}

// watchServices gives Services their addresses until the watch ends or an address cannot be
// given.
func (c *Cluster) watchServices(ctx context.Context) error {
	cmd := c.cfg.Rack.Command(filepath.Join(c.BinDir, "kubectl"), "--kubeconfig", c.Admin,
		"get", "services", "--all-namespaces", "--watch", "-o", serviceColumns)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	undo := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // ended in the meantime is as good
	defer undo()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) != 4 || f[2] != "LoadBalancer" {
			continue // of another type, without an address, or it has it
		}
		if err = c.assign(ctx, f[0], f[1], f[3]); err != nil {
			_ = cmd.Process.Kill() // the next watch tries again
			break
		}
	}
	return fmt.Errorf("the watch ended: %w, %w", err, cmd.Wait())
}

// assign gives a Service an address.
func (c *Cluster) assign(ctx context.Context, namespace, name, address string) error {
	if _, err := c.cfg.Rack.Run(ctx, "ip", "addr", "replace", address+"/32", "dev", lab.Bridge); err != nil {
		return err
	}
	_, err := c.Kubectl(ctx, nil, "patch", "service", name, "-n", namespace, "--subresource=status", "--type=merge",
		"-p", fmt.Sprintf(`{"status": {"loadBalancer": {"ingress": [{"ip": %q}]}}}`, address))
	return err
}

// Volumes makes volumes for the claims of pods, in folders of the node that belong to a
// user, and a default StorageClass of them.
func (c *Cluster) Volumes(ctx context.Context, count, user int) error {
	var objects strings.Builder
	objects.WriteString(`
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: lab, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: kubernetes.io/no-provisioner
`)
	for i := range count {
		name := fmt.Sprintf("volume-%d", i)
		dir := filepath.Join(c.cfg.Dir, "node", name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := os.Chown(dir, user, user); err != nil {
			return err
		}
		fmt.Fprintf(&objects, `---
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec:
  storageClassName: lab
  capacity: {storage: 8Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: %[2]s/%[1]s, type: Directory}
`, name, nodeDir)
	}
	_, err := c.Kubectl(ctx, strings.NewReader(objects.String()), "apply", "-f", "-")
	return err
}
