package controlplane

import (
	"fmt"
	"path/filepath"
	"strconv"
)

func (p *Cluster) etcdURL() string { return fmt.Sprintf("http://127.0.0.1:%d", p.cfg.EtcdPort) }

func (p *Cluster) etcdArgs() []string {
	return []string{
		"--data-dir=" + filepath.Join(p.cfg.Dir, "etcd"),
		"--listen-client-urls=" + p.etcdURL(),
		"--advertise-client-urls=" + p.etcdURL(),
		fmt.Sprintf("--listen-peer-urls=http://127.0.0.1:%d", p.cfg.EtcdPeerPort),
		"--unsafe-no-fsync", // a test's data need not survive a power cut
		"--log-level=warn",
	}
}

func (p *Cluster) apiserverArgs() []string {
	pki := func(name string) string { return filepath.Join(p.cfg.Dir, "pki", name) }
	args := []string{
		"--bind-address=" + p.Address.String(),
		"--advertise-address=" + p.advertise(),
		"--secure-port=" + strconv.Itoa(p.Port),
		"--etcd-servers=" + p.etcdURL(),
		"--allow-privileged=true",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth=true",
		"--client-ca-file=" + pki("ca.crt"),
		"--tls-cert-file=" + pki("apiserver.crt"),
		"--tls-private-key-file=" + pki("apiserver.key"),
		"--kubelet-client-certificate=" + pki("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + pki("apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
		"--proxy-client-cert-file=" + pki("front-proxy-client.crt"),
		"--proxy-client-key-file=" + pki("front-proxy-client.key"),
		"--requestheader-client-ca-file=" + pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + pki("sa.pub"),
		"--service-account-signing-key-file=" + pki("sa.key"),
		"--service-cluster-ip-range=" + p.cfg.ServiceCIDR,
	}
	if p.Address.IsLoopback() {
		// Loopback addresses are refused in the Endpoints of the Service
		// "kubernetes", which nobody asks for then.
		args = append(args, "--endpoint-reconciler-type=none")
	}
	return args
}

func (p *Cluster) controllerArgs() []string {
	pki := func(name string) string { return filepath.Join(p.cfg.Dir, "pki", name) }
	kubeconfig := filepath.Join(p.cfg.Dir, "controller-manager.conf")
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(p.cfg.ControllerPort),
		"--client-ca-file=" + pki("ca.crt"),
		"--cluster-name=" + p.Name,
		"--cluster-signing-cert-file=" + pki("ca.crt"),
		"--cluster-signing-key-file=" + pki("ca.key"),
		"--controllers=*,bootstrapsigner,tokencleaner", // the two are off by default
		"--leader-elect=false",
		"--requestheader-client-ca-file=" + pki("front-proxy-ca.crt"),
		"--root-ca-file=" + pki("ca.crt"),
		"--service-account-private-key-file=" + pki("sa.key"),
		"--use-service-account-credentials=true",
		"--allocate-node-cidrs=true",
		"--cluster-cidr=" + p.cfg.PodCIDR,
		"--service-cluster-ip-range=" + p.cfg.ServiceCIDR,
	}
}
