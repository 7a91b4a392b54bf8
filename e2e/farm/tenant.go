package farm

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"drover/internal/wait"
)

// Tenant is a cluster whose control plane drover runs, as its administrator sees it.
type Tenant struct {
	Name       string
	Kubeconfig string // file
	farm       *Farm
}

// Tenant returns a tenant of the farm, with the kubeconfig that drover prints for people. It
// waits until drover has made the tenant's keys.
func (f *Farm) Tenant(ctx context.Context, name string) (*Tenant, error) {
	t := &Tenant{Name: name, Kubeconfig: filepath.Join(f.Dir, name+".kubeconfig"), farm: f}
	return t, Await(ctx, "the kubeconfig of "+name, func() error {
		text, err := f.Drover(ctx, "tenant", "kubeconfig", name)
		if err != nil {
			return err
		}
		return os.WriteFile(t.Kubeconfig, []byte(text), 0o600)
	})
}

// Kubectl runs kubectl as the tenant's administrator, as [controlplane.Cluster.Kubectl] does.
func (t *Tenant) Kubectl(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	return t.farm.KubectlAs(ctx, t.Kubeconfig, stdin, args...)
}

// Await calls try until it succeeds, or ctx is done; then it returns the last error.
func Await(ctx context.Context, what string, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		if wait.Sleep(ctx, 500*time.Millisecond) != nil {
			return fmt.Errorf("waited for %s: %w; last: %w", what, context.Cause(ctx), err)
		}
	}
}
