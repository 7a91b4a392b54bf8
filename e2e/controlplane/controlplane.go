// Package controlplane starts real Kubernetes control planes for tests: etcd,
// kube-apiserver and kube-controller-manager as child processes, set up by the
// phases of kubeadm, so that a kubelet elsewhere can join with a bootstrap
// token.
//
//	p, err := controlplane.Start(ctx, controlplane.Config{Name: "tenant-a", BinDir: bin, Dir: dir, RBAC: "deploy/rbac.yaml"})
//	defer p.Stop()
//	p.Kubectl(ctx, nil, "get", "nodes")       // as its administrator
//	kube.Clusters{...p.Client...}             // as drover, with its least privilege
//
// A control plane takes about ten seconds to start and 480 MB; several may be started
// at once. [Config].Exec puts all of its processes into a network namespace.
//
// There is no scheduler: bind pods with spec.nodeName. There are no pods in the
// control plane either, no CNI and no kube-proxy. The package builds nothing,
// see package e2e/buildcache for the programs. It knows nothing of drover but the
// manifest in its config.
package controlplane

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
	"time"
)

// Config has the settings of a control plane.
type Config struct {
	Name   string // cluster name
	BinDir string // has etcd, kube-apiserver, kube-controller-manager, kubeadm, kubectl
	Dir    string // state, keys, kubeconfigs and logs; made anew by Start

	Address netip.Addr // what the API server binds; default 127.0.0.1
	Port    int        // of the API server; default a free one

	// EtcdPort, EtcdPeerPort and ControllerPort are bound on 127.0.0.1.
	// Defaults: free ones, as seen from the caller's network namespace.
	EtcdPort, EtcdPeerPort, ControllerPort int

	PodCIDR     string // default 10.244.0.0/16
	ServiceCIDR string // default 10.96.0.0/16

	// RBAC is the manifest that gives drover its rights, deploy/rbac.yaml.
	// Without it there is no [Cluster].Client.
	RBAC string

	// Audit records what users do, for [Cluster.Used].
	Audit bool

	Version string    // default v1.37.1; without it kubeadm would ask the internet
	Log     io.Writer // progress, a line each; default none

	// Exec makes the command of a program, to run it inside a network
	// namespace. It may set SysProcAttr and Env. Default exec.Command.
	Exec func(name string, args ...string) *exec.Cmd
}

// Cluster is a running control plane.
type Cluster struct {
	Name    string
	BinDir  string
	Address netip.Addr
	Port    int
	Admin   string // kubeconfig file, cluster-admin
	Client  string // kubeconfig file, drover's ServiceAccount; empty without Config.RBAC
	CA      string // file of the cluster's CA certificate
	LogDir  string // etcd.log, kube-apiserver.log, kube-controller-manager.log

	cfg       Config
	processes *processes
	started   time.Time
}

// Start starts a control plane and waits until the API server is ready, the
// controller manager signs cluster-info, and, with Config.RBAC, drover's rights
// and their limits are in force. Done ctx makes Start give up, but does not
// stop a control plane that has started: [Cluster.Stop] does.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("control plane %q: %w", cfg.Name, err)
	}
	p := &Cluster{
		Name: cfg.Name, BinDir: cfg.BinDir, Address: cfg.Address, Port: cfg.Port,
		Admin:  filepath.Join(cfg.Dir, "super-admin.conf"),
		CA:     filepath.Join(cfg.Dir, "pki", "ca.crt"),
		LogDir: filepath.Join(cfg.Dir, "log"),
		cfg:    cfg, started: time.Now(),
	}
	if err := p.start(ctx); err != nil {
		p.Stop()
		return nil, fmt.Errorf("control plane %q: %w", cfg.Name, err)
	}
	return p, nil
}

// Stop ends all processes of the control plane and waits for them. The directory stays,
// with its logs. Stop may be called several times.
func (p *Cluster) Stop() {
	if p.processes != nil {
		p.processes.stop()
	}
}

// Endpoint returns the address and port that nodes dial.
func (p *Cluster) Endpoint() string {
	return netip.AddrPortFrom(p.Address, uint16(p.Port)).String()
}

// Kubectl runs kubectl as the administrator and returns its standard output. Stdin may be
// nil. The error has kubectl's standard error.
func (p *Cluster) Kubectl(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	return p.KubectlAs(ctx, p.Admin, stdin, args...)
}

// KubectlAs is [Cluster.Kubectl] with another kubeconfig file.
func (p *Cluster) KubectlAs(ctx context.Context, kubeconfig string, stdin io.Reader, args ...string) (string, error) {
	return p.run(ctx, stdin, "kubectl", append([]string{"--kubeconfig", kubeconfig, "--request-timeout=30s", "--cache-dir=" + filepath.Join(p.cfg.Dir, "kubectl")}, args...)...)
}

func (p *Cluster) start(ctx context.Context) error {
	if err := p.makeDir(); err != nil {
		return err
	}
	p.processes = newProcesses(p.cfg.Exec, p.LogDir)
	bin := func(name string) string { return filepath.Join(p.cfg.BinDir, name) }
	if err := p.processes.start("etcd", bin("etcd"), p.etcdArgs()...); err != nil {
		return err
	}
	if err := p.makeKeys(ctx); err != nil {
		return err
	}
	if err := p.StartServer(ctx); err != nil {
		return err
	}
	if err := p.processes.start("kube-controller-manager", bin("kube-controller-manager"), p.controllerArgs()...); err != nil {
		return err
	}
	if err := p.upload(ctx); err != nil {
		return err
	}
	if err := p.admitDrover(ctx); err != nil {
		return err
	}
	return p.await(ctx, "cluster-info signed", func(ctx context.Context) error {
		out, err := p.Kubectl(ctx, nil, "get", "configmap", "cluster-info", "-n", "kube-public", "-o", "jsonpath={.data}")
		if err == nil && !strings.Contains(out, "jws-kubeconfig-") {
			err = errors.New("cluster-info has no signature")
		}
		return err
	})
}

// apiServer is the name of its process.
const apiServer = "kube-apiserver"

// StartServer starts the API server, after [Cluster.StopServer], and waits until it is ready.
func (p *Cluster) StartServer(ctx context.Context) error {
	audit, err := p.auditArgs()
	if err != nil {
		return err
	}
	if err := p.processes.start(apiServer, filepath.Join(p.cfg.BinDir, apiServer), append(p.apiserverArgs(), audit...)...); err != nil {
		return err
	}
	return p.await(ctx, "API server ready", func(ctx context.Context) error {
		_, err := p.Kubectl(ctx, nil, "get", "--raw", "/readyz")
		return err
	})
}

// StopServer stops the API server alone, and waits until it has ended.
func (p *Cluster) StopServer() { p.processes.end(apiServer) }

// makeDir makes an empty directory with kubeadm's config. It refuses a directory with
// anything but an earlier control plane, since it deletes the content.
func (p *Cluster) makeDir() error {
	dir := p.cfg.Dir
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	config := filepath.Join(dir, "kubeadm.yaml")
	if _, err := os.Stat(config); len(entries) > 0 && err != nil {
		return fmt.Errorf("directory %q holds something else than a control plane", dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(p.LogDir, 0o700); err != nil {
		return err
	}
	text, err := p.kubeadmConfig()
	if err != nil {
		return err
	}
	return os.WriteFile(config, text, 0o600)
}

// await polls until try succeeds, ctx is done or a process of the control plane ends.
func (p *Cluster) await(ctx context.Context, what string, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			p.logf("%s", what)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w; last: %w", what, context.Cause(ctx), err)
		case err := <-p.processes.failed:
			return fmt.Errorf("%s: %w", what, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (p *Cluster) logf(format string, args ...any) {
	fmt.Fprintf(p.cfg.Log, "%s: %6.2fs %s\n", p.Name, time.Since(p.started).Seconds(), fmt.Sprintf(format, args...))
}
