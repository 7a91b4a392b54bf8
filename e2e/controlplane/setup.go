package controlplane

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// advertise returns the address that kubeadm puts into the API server's
// certificate beside the one that is dialed. kubeadm refuses loopback
// addresses there, so they are replaced by one of TEST-NET-1 (RFC 5737), which
// is never dialed.
func (p *Cluster) advertise() string {
	if p.Address.IsLoopback() {
		return netip.AddrFrom4([4]byte{192, 0, 2, 1}).String()
	}
	return p.Address.String()
}

// kubeadmConfig returns the file that all phases of kubeadm are run with. JSON
// is YAML; three documents make one file.
func (p *Cluster) kubeadmConfig() ([]byte, error) {
	random := strings.ToLower(rand.Text())
	initial := p.initConfiguration()
	// A token of the control plane's own, whose signature in cluster-info shows that the
	// signer runs.
	initial["bootstrapTokens"] = []object{{"token": random[:6] + "." + random[6:22], "ttl": "1h"}}
	return documents(initial, p.clusterConfiguration(), object{
		"apiVersion":         "kubelet.config.k8s.io/v1beta1",
		"kind":               "KubeletConfiguration",
		"cgroupDriver":       "systemd",
		"serverTLSBootstrap": true,
		// kubeadm would put certificatesDir here, a path that no node has.
		"authentication": object{"x509": object{"clientCAFile": "/etc/kubernetes/pki/ca.crt"}},
	})
}

// object is a JSON object.
type object map[string]any

func (p *Cluster) initConfiguration() object {
	return object{
		"apiVersion":       "kubeadm.k8s.io/v1beta4",
		"kind":             "InitConfiguration",
		"localAPIEndpoint": object{"advertiseAddress": p.advertise(), "bindPort": p.Port},
		"nodeRegistration": object{"name": "control-plane"},
	}
}

func (p *Cluster) clusterConfiguration() object {
	return object{
		"apiVersion":           "kubeadm.k8s.io/v1beta4",
		"kind":                 "ClusterConfiguration",
		"clusterName":          p.Name,
		"kubernetesVersion":    p.cfg.Version,
		"certificatesDir":      filepath.Join(p.cfg.Dir, "pki"),
		"controlPlaneEndpoint": p.Endpoint(),
		"etcd":                 object{"external": object{"endpoints": []string{p.etcdURL()}}},
		"networking":           object{"podSubnet": p.cfg.PodCIDR, "serviceSubnet": p.cfg.ServiceCIDR},
	}
}

// documents makes one file of several objects.
func documents(docs ...object) ([]byte, error) {
	var b bytes.Buffer
	for _, doc := range docs {
		text, err := json.MarshalIndent(doc, "", "  ")
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "---\n%s\n", text)
	}
	return b.Bytes(), nil
}

// makeKeys makes certificates and kubeconfigs.
func (p *Cluster) makeKeys(ctx context.Context) error {
	phases := [][]string{
		{"certs", "all"},
		{"kubeconfig", "super-admin", "--kubeconfig-dir", p.cfg.Dir},
		{"kubeconfig", "controller-manager", "--kubeconfig-dir", p.cfg.Dir},
	}
	for _, phase := range phases {
		if err := p.phase(ctx, phase...); err != nil {
			return err
		}
	}
	// kubeadm points the controller manager at the advertised address.
	_, err := p.run(ctx, nil, "kubectl", "config", "set-cluster", p.Name, "--server=https://"+p.Endpoint(),
		"--kubeconfig", filepath.Join(p.cfg.Dir, "controller-manager.conf"))
	if err != nil {
		return err
	}
	p.logf("keys made")
	return nil
}

// upload writes the ConfigMaps kubeadm-config, kubelet-config and cluster-info, which a
// joining node reads, and the rights of bootstrap tokens.
func (p *Cluster) upload(ctx context.Context) error {
	phases := [][]string{{"upload-config", "kubeadm"}, {"upload-config", "kubelet"}, {"bootstrap-token"}}
	for _, phase := range phases {
		// super-admin.conf is of a group that is built into the API server.
		if err := p.phase(ctx, append(phase, "--kubeconfig", p.Admin)...); err != nil {
			return err
		}
	}
	p.logf("kubeadm's settings uploaded")
	return nil
}

func (p *Cluster) phase(ctx context.Context, phase ...string) error {
	args := append([]string{"init", "phase"}, phase...)
	_, err := p.run(ctx, nil, "kubeadm", append(args, "--config", filepath.Join(p.cfg.Dir, "kubeadm.yaml"))...)
	return err
}

// admitDrover applies Config.RBAC and makes a kubeconfig of drover's own. The
// API server's watch of admission policies takes some seconds to see a new one,
// so it waits for the first refusals.
func (p *Cluster) admitDrover(ctx context.Context) error {
	if p.cfg.RBAC == "" {
		return nil
	}
	if _, err := p.Kubectl(ctx, nil, "apply", "-f", p.cfg.RBAC); err != nil {
		return err
	}
	token, err := p.Kubectl(ctx, nil, "create", "token", "drover", "-n", "kube-system", "--duration=24h")
	if err != nil {
		return err
	}
	p.Client = filepath.Join(p.cfg.Dir, "drover.kubeconfig")
	if err := p.WriteKubeconfig(p.Client, strings.TrimSpace(token)); err != nil {
		return err
	}
	const probe = `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "probe"}}`
	if _, err := p.Kubectl(ctx, strings.NewReader(probe), "create", "-f", "-"); err != nil {
		return err
	}
	if err := p.await(ctx, "drover's rights in force", func(ctx context.Context) error {
		if err := p.refused(ctx, "create", "secret", "generic", "probe", "-n", "kube-system"); err != nil {
			return err
		}
		return p.refused(ctx, "label", "node", "probe", "probe=x")
	}); err != nil {
		return err
	}
	_, err = p.Kubectl(ctx, nil, "delete", "node", "probe", "--wait=false")
	return err
}

// refused returns an error unless an admission policy refuses a call of drover.
func (p *Cluster) refused(ctx context.Context, args ...string) error {
	_, err := p.KubectlAs(ctx, p.Client, nil, append(args, "--dry-run=server")...)
	switch {
	case err == nil:
		return errors.New("the admission policies do not limit drover yet")
	case strings.Contains(err.Error(), "ValidatingAdmissionPolicy"):
		return nil
	}
	return err
}

// WriteKubeconfig writes a kubeconfig file for a bearer token: of a
// ServiceAccount, or a bootstrap token.
func (p *Cluster) WriteKubeconfig(path, token string) error {
	ca, err := os.ReadFile(p.CA)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(object{
		"apiVersion":      "v1",
		"kind":            "Config",
		"clusters":        []object{{"name": p.Name, "cluster": object{"server": "https://" + p.Endpoint(), "certificate-authority-data": ca}}},
		"users":           []object{{"name": "bearer", "user": object{"token": token}}},
		"contexts":        []object{{"name": p.Name, "context": object{"cluster": p.Name, "user": "bearer"}}},
		"current-context": p.Name,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// run runs a program of BinDir to its end and returns its standard output.
func (p *Cluster) run(ctx context.Context, stdin io.Reader, name string, args ...string) (string, error) {
	cmd := p.cfg.Exec(filepath.Join(p.cfg.BinDir, name), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	group(cmd)
	err := cmd.Start()
	if err == nil {
		undo := context.AfterFunc(ctx, func() { kill(cmd.Process) })
		cmd.WaitDelay = time.Second
		err = cmd.Wait()
		undo()
	}
	if err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, lastLines(stderr.Bytes(), 10))
	}
	return stdout.String(), nil
}
