package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"drover/deploy/oci"
	"drover/e2e/buildcache"
	"drover/e2e/controlplane"
	"drover/e2e/lab"
	"drover/internal/wait"
)

// NodeName is the name of the cluster's node.
const NodeName = "admin-1"

// The networks of the cluster. The one node has the first /24 of the pods.
const (
	podCIDR     = "10.200.0.0/16"
	nodePods    = "10.200.0.0/24"
	serviceCIDR = "10.201.0.0/16"
	clusterDNS  = "10.201.0.10"
)

// limit is the time limit of each step. It is far above what a step takes, since other work
// may share the machine.
const limit = 3 * time.Minute

// Config has the settings of an admin cluster.
type Config struct {
	Rack    *lab.Rack
	Dir     string     // everything that the cluster writes; must not exist, or be empty
	Address netip.Addr // of the host in the rack: of the API server, and of the node

	// Folders are folders of this host that the node has below [Folders], by name. In
	// addition it has [Cluster.Data] at /var/lib/drover.
	Folders map[string]string
}

// Folders is where the node has the folders of [Config].Folders.
const Folders = "/mnt"

// Cluster is a running admin cluster.
type Cluster struct {
	*controlplane.Cluster

	cfg      Config
	programs *Programs
	node     *node

	unbalance func() // ends the load balancer, and waits for it
}

// Open starts an admin cluster and waits until its node is Ready.
func (p *Programs) Open(ctx context.Context, cfg Config) (_ *Cluster, err error) {
	c := &Cluster{cfg: cfg, programs: p}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, err
	}
	c.Cluster, err = controlplane.Start(ctx, controlplane.Config{
		Name: "admin", BinDir: p.Kubernetes, Dir: filepath.Join(cfg.Dir, "plane"),
		Address: cfg.Address, Port: 6443,
		// Control planes of tenants in the same rack have the next ones.
		EtcdPort: 2279, EtcdPeerPort: 2280, ControllerPort: 10157,
		PodCIDR: podCIDR, ServiceCIDR: serviceCIDR,
		Exec: cfg.Rack.Command,
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if err := c.StartScheduler(filepath.Join(p.Proxy, "kube-scheduler")); err != nil {
		return nil, err
	}
	if err := c.network(ctx); err != nil {
		return nil, err
	}
	token, err := c.bootstrapToken(ctx)
	if err != nil {
		return nil, err
	}
	if c.node, err = c.startNode(ctx, token); err != nil {
		return nil, fmt.Errorf("node %s: %w", NodeName, err)
	}
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // until Close
	var balancer sync.WaitGroup
	balancer.Go(func() { c.balance(ctx) })
	c.unbalance = func() { stop(); balancer.Wait() }
	return c, nil
}

// network prepares the rack's network namespace for a node. The default route leads
// nowhere: kubelets insist on one. All three are settings of the namespace.
func (c *Cluster) network(ctx context.Context) error {
	for _, args := range [][]string{
		{"ip", "route", "replace", "default", "dev", lab.Bridge},
		{"sysctl", "-qw", "net.ipv4.ip_forward=1"},
		{"sysctl", "-qw", "net.bridge.bridge-nf-call-iptables=1"},
	} {
		if _, err := c.cfg.Rack.Run(ctx, args[0], args[1:]...); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
		}
	}
	return nil
}

// bootstrapToken makes a token of kubeadm's group, with which the kubelet asks for its
// certificate.
func (c *Cluster) bootstrapToken(ctx context.Context) (string, error) {
	const id, secret = "adm1nn", "0123456789abcdef" // the cluster is on no network but the rack
	manifest := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
"metadata": {"name": "bootstrap-token-%[1]s", "namespace": "kube-system"},
"stringData": {"token-id": %[1]q, "token-secret": %[2]q, "usage-bootstrap-authentication": "true",
"auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token"}}`, id, secret)
	_, err := c.Kubectl(ctx, strings.NewReader(manifest), "apply", "-f", "-")
	return id + "." + secret, err
}

// ready waits until the node is Ready, and labels it as a node of the control plane.
func (c *Cluster) ready(ctx context.Context) error {
	err := c.node.await(ctx, "the node is Ready", func(ctx context.Context) error {
		out, err := c.Kubectl(ctx, nil, "get", "node", NodeName, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		if err == nil && out != "True" {
			err = fmt.Errorf("node %s: Ready is %q", NodeName, out)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, tail(filepath.Join(c.cfg.Rack.Dir, "kubelet.log")))
	}
	_, err = c.Kubectl(ctx, nil, "label", "node", NodeName, "node-role.kubernetes.io/control-plane=")
	return err
}

// poll calls try until it is done, or ctx is, and then returns the last error.
func poll(ctx context.Context, what string, try func(context.Context) (done bool, err error)) error {
	for {
		done, err := try(ctx)
		if done {
			return err
		}
		if wait.Sleep(ctx, 100*time.Millisecond) != nil {
			return fmt.Errorf("waited for %s: %w; last: %w", what, context.Cause(ctx), err)
		}
	}
}

// Import imports container images into the node: an archive, or the folder of an OCI layout.
func (c *Cluster) Import(ctx context.Context, images string) error {
	info, err := os.Stat(images)
	if err != nil {
		return err
	}
	r, w := io.Pipe()
	defer r.Close()
	go func() { w.CloseWithError(archive(w, images, info.IsDir())) }()
	cmd := c.node.command(ctx, containerdDir+"/ctr", "--address", containerdSocket, "--namespace", "k8s.io", "images", "import", "--local", "-")
	cmd.Stdin = r
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("import %s: %w: %s", images, err, out)
	}
	return nil
}

// archive writes an archive, or a layout as an archive.
func archive(w io.Writer, path string, layout bool) error {
	if layout {
		return oci.Archive(w, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// Helm runs helm as the cluster's administrator and returns what it prints. The first time
// it may have to be built.
func (c *Cluster) Helm(ctx context.Context, args ...string) (string, error) {
	helm, err := buildcache.Helm(ctx, io.Discard)
	if err != nil {
		return "", err
	}
	home := filepath.Join(c.cfg.Dir, "helm")
	cmd := c.cfg.Rack.Command(helm, append([]string{"--kubeconfig", c.Admin}, args...)...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	return output(ctx, cmd)
}

// output runs a command to its end, or until ctx is done, and returns its standard output.
func output(ctx context.Context, cmd *exec.Cmd) (string, error) {
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, time.Second
	err := cmd.Start()
	if err == nil {
		undo := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // ended in the meantime is as good
		err = cmd.Wait()
		undo()
	}
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	return stdout.String(), err
}

// Data returns the folder that is /var/lib/drover in the node.
func (c *Cluster) Data() string { return filepath.Join(c.cfg.Dir, "node", "drover") }

// Processes returns the command lines of all processes of the node and its pods.
func (c *Cluster) Processes() ([]string, error) { return c.node.processes() }

// Close ends the node with everything in it, and the control plane. The files of Dir stay.
func (c *Cluster) Close() error {
	var err error
	if c.unbalance != nil {
		c.unbalance()
	}
	if c.node != nil {
		err = c.node.close()
	}
	c.Stop()
	return err
}
