package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// StartScheduler starts this kube-scheduler, which ends with the control plane. Without
// it no pod of a Deployment or DaemonSet gets a node.
func (p *Cluster) StartScheduler(program string) error {
	err := p.processes.start("kube-scheduler", program,
		"--kubeconfig="+p.Admin,
		"--authentication-kubeconfig="+p.Admin,
		"--authorization-kubeconfig="+p.Admin,
		"--bind-address=127.0.0.1",
		"--leader-elect=false",
	)
	if err != nil {
		return fmt.Errorf("control plane %q: %w", p.Name, err)
	}
	p.logf("scheduler started")
	return nil
}

// InstallKubeProxy has kubeadm install its kube-proxy, as "kubeadm init" does, in
// a mode that kube-proxy knows: iptables, nftables. Nodes pull its image from
// registry. Done again with another mode, it changes the ConfigMap; as kubeadm
// leaves it at that, the caller deletes the pods to have them start anew.
func (p *Cluster) InstallKubeProxy(ctx context.Context, registry, mode string) error {
	cluster := p.clusterConfiguration()
	cluster["imageRepository"] = registry
	text, err := documents(p.initConfiguration(), cluster, object{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
		"kind":       "KubeProxyConfiguration",
		"mode":       mode,
	})
	if err != nil {
		return err
	}
	config := filepath.Join(p.cfg.Dir, "kube-proxy.yaml")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return err
	}
	_, err = p.run(ctx, nil, "kubeadm", "init", "phase", "addon", "kube-proxy", "--config", config, "--kubeconfig", p.Admin)
	if err != nil {
		return fmt.Errorf("control plane %q: %w", p.Name, err)
	}
	p.logf("kube-proxy installed, mode %s", mode)
	return nil
}
