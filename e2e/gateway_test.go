package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/e2e/buildcache"
	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/e2e/netns"
	"drover/pools/boots"
)

const gatewayRack = "drover-e2e-gateway"

// TestGateway boots a machine of a pool with role gateway. From it a Service answers by its
// name and its ClusterIP, and the pod behind that by its own address; the pod reaches the
// machine at its address in the network of the pods. The node with the pod, which is also the
// cluster's DNS, is a namespace with flannel.
func TestGateway(t *testing.T) {
	soak(t)
	b := build(t)
	if err := b.Gateway(t.Context()); err != nil {
		t.Fatal(err)
	}
	flannel, err := buildcache.Flannel(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	dns, err := buildcache.CoreDNS(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	s := open(t, b, site.Config{Name: gatewayRack, Farm: "testdata/gateway.yaml", Admin: func(_ *lab.Rack, p *controlplane.Cluster) error {
		_, err := p.Kubectl(ctx, nil, "apply", "-f", filepath.Join(b.Root, "deploy", "hosts-rbac.yaml"))
		return err
	}})
	p := s.Planes["tenant"]
	pod := startPod(ctx, t, p, flannel)
	config := filepath.Join(t.TempDir(), "Corefile")
	if err := os.WriteFile(config, []byte(".:53 {\n\terrors\n\tkubernetes cluster.local {\n\t\tkubeconfig "+p.Admin+"\n\t}\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pod.Daemon(t, filepath.Join(dns, "coredns"), "-conf", config)

	const mac = "52:54:00:77:01:01"
	powerOn(t, s, lab.Machine{Name: "gw1", Memory: 1536, NICs: card(mac)})
	fixture.Until(ctx, t, "gw1 reaches the Service and the pod", func() (bool, error) {
		return reached(bootOf(ctx, t, s, mac), boots.StepOnline), nil
	})
	logBoot(ctx, t, s, mac)
	cidr, err := podCIDR(ctx, p, "gw1")
	if err != nil {
		t.Fatal(err)
	}
	fixture.Until(ctx, t, "the pod reaches gw1", func() (bool, error) {
		err := greeted(ctx, pod, netip.AddrPortFrom(cidr.Addr(), 22))
		return err == nil, err
	})
}

// startPod makes a node n1 with a pod, both namespaces, and a Service for the pod, which
// answers with its own address. The network between nodes is flannel's.
func startPod(ctx context.Context, t *testing.T, p *controlplane.Cluster, flannel string) netns.Namespace {
	t.Helper()
	apply := func(text string) {
		if _, err := p.Kubectl(ctx, strings.NewReader(text), "apply", "-f", "-"); err != nil {
			t.Fatal(err)
		}
	}
	apply("{apiVersion: v1, kind: Node, metadata: {name: n1}}")
	var cidr netip.Prefix
	fixture.Until(ctx, t, "n1 has a network", func() (ok bool, err error) {
		cidr, err = podCIDR(ctx, p, "n1")
		return err == nil, err
	})
	node := neighbor(t, gatewayRack, "n1")
	node.IP(t, "addr", "add", "10.77.0.30/24", "dev", "eth0")
	node.IP(t, "route", "add", "default", "via", "10.77.0.1")
	first := netip.PrefixFrom(cidr.Addr().Next(), cidr.Bits())
	own := netip.PrefixFrom(first.Addr().Next(), cidr.Bits())
	pod := netns.NewNamespace(t, gatewayRack+"-pod")
	node.Link(t, "cni0", pod, "eth0")
	node.IP(t, "addr", "add", first.String(), "dev", "cni0")
	node.IP(t, "link", "set", "cni0", "up")
	pod.IP(t, "addr", "add", own.String(), "dev", "eth0")
	pod.IP(t, "link", "set", "eth0", "up")
	pod.IP(t, "route", "add", "default", "via", first.Addr().String())
	if out, err := node.Command("sysctl", "-qw", "net.ipv4.ip_forward=1").CombinedOutput(); err != nil {
		t.Fatalf("sysctl: %v: %s", err, out)
	}
	dir := t.TempDir()
	conf := filepath.Join(dir, "net-conf.json")
	if err := os.WriteFile(conf, []byte(`{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan", "VNI": 7}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	node.Daemon(t, "env", "NODE_NAME=n1", filepath.Join(flannel, "flanneld"), "-kube-subnet-mgr", "-kubeconfig-file="+p.Admin, "-net-config-path="+conf,
		"-iface=eth0", "-ip-masq", "-subnet-file="+filepath.Join(dir, "subnet.env"))
	answer(t, pod, own.Addr().String())
	apply(fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: 10.96.0.80, ports: [{port: 80, targetPort: 8080}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}, addressType: IPv4,
  ports: [{name: "", port: 8080, protocol: TCP}], endpoints: [{addresses: [%[1]q], conditions: {ready: true}}]}
---
{apiVersion: v1, kind: Service, metadata: {name: kube-dns, namespace: kube-system}, spec: {clusterIP: 10.96.0.10, ports: [{port: 53, protocol: UDP}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: kube-dns-1, namespace: kube-system, labels: {kubernetes.io/service-name: kube-dns}}, addressType: IPv4,
  ports: [{name: "", port: 53, protocol: UDP}], endpoints: [{addresses: [%[1]q], conditions: {ready: true}}]}
`, own.Addr()))
	return pod
}

// podCIDR returns the network of a Node's pods.
func podCIDR(ctx context.Context, p *controlplane.Cluster, node string) (netip.Prefix, error) {
	text, err := p.Kubectl(ctx, nil, "get", "node", node, "-o", "jsonpath={.spec.podCIDR}")
	if err != nil {
		return netip.Prefix{}, err
	}
	return netip.ParsePrefix(text)
}

// answer serves a text on port 8080 of a namespace until the end of the test.
func answer(t *testing.T, n netns.Namespace, text string) {
	t.Helper()
	var l net.Listener
	n.In(t, func() (err error) {
		l, err = net.Listen("tcp", ":8080")
		return err
	})
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// greeted connects from a namespace to an SSH server, and returns an error unless that greets.
func greeted(ctx context.Context, n netns.Namespace, server netip.AddrPort) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := n.Dial(ctx, "tcp", server.String())
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	greeting := make([]byte, len("SSH-2.0-"))
	if _, err := io.ReadFull(conn, greeting); err != nil {
		return err
	}
	if string(greeting) != "SSH-2.0-" {
		return fmt.Errorf("%s greets with %q", server, greeting)
	}
	return nil
}
