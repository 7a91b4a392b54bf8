// Package externalhost_test makes a machine outside a cluster a host of it, with the bundle
// of drover, real flannel and real kube-proxy.
package externalhost_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/cmd/drover/host/invite"
	"drover/e2e/buildcache"
	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/e2e/manual"
	"drover/e2e/netns"
	"drover/kube"
	hosts "drover/kube/externalhost"
	"drover/kube/externalhost/bundle"
	"drover/pools"
)

// inside says that this process is in a network namespace of its own, and has the folders
// of the programs.
const inside = "DROVER_EXTERNAL_HOST"

// TestExternalHost runs testInside in namespaces of its own: the rack's network is there.
func TestExternalHost(t *testing.T) {
	if dirs := os.Getenv(inside); dirs != "" {
		testInside(t, strings.Split(dirs, ":"))
		return
	}
	fixture.Root(t)
	bin := buildcache.Programs(t)
	flannel, err := buildcache.Flannel(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := buildcache.Proxy(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	tools, err := buildcache.Tools(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	dns, err := buildcache.CoreDNS(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	drover := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", drover, "drover/cmd/drover").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--net", "--mount", os.Args[0], "-test.v", "-test.run=^TestExternalHost$")
	cmd.Env = append(os.Environ(), inside+"="+strings.Join([]string{bin, flannel, proxy, tools, dns, drover}, ":"))
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
}

// rack makes a switch with the server, a node and the host, and a pod on the node.
const rack = `set -e
mount -t tmpfs tmpfs /run/netns 2>/dev/null || { mkdir -p /run/netns; mount -t tmpfs tmpfs /run/netns; }
ip link set lo up
ip link add br0 type bridge && ip addr add 10.99.0.1/24 dev br0 && ip link set br0 up
for name in n1:11 legacy1:50; do
	n=${name%:*}
	ip netns add $n
	ip link add eth0 netns $n type veth peer name to-$n
	ip link set to-$n master br0 up
	ip -n $n link set lo up
	ip -n $n addr add 10.99.0.${name#*:}/24 dev eth0
	ip -n $n link set eth0 up
	ip -n $n route add default via 10.99.0.1
	ip netns exec $n sysctl -qw net.ipv4.ip_forward=1
done
`

// pod makes the pod, with its address $1 and the node's address $2 beside it.
const pod = `set -e
ip netns add pod
ip link add eth0 netns pod type veth peer name cni0 netns n1
ip -n n1 addr add $2/24 dev cni0 && ip -n n1 link set cni0 up
ip -n pod link set lo up && ip -n pod addr add $1/24 dev eth0 && ip -n pod link set eth0 up
ip -n pod route add default via $2
`

// systemctl stands in for systemd: it runs the command of a unit.
const systemctl = `#!/bin/sh
unit=/etc/systemd/system/$2
case "$1 $2" in
"is-active "*|"-q is-active") exit 3 ;;
"restart "*.service)
	"$0" stop $2
	env=$(sed -n 's/^Environment=//p' $unit)
	setsid env $env sh -c "exec $(sed -n 's/^ExecStart=//p' $unit)" > /var/log/$2 2>&1 < /dev/null &
	echo $! > /run/$2.pid ;;
"stop "*.service)
	if [ -e /run/$2.pid ]; then
		kill $(cat /run/$2.pid) 2> /dev/null
		for i in 1 2 3 4 5 6 7 8 9 10; do kill -0 $(cat /run/$2.pid) 2> /dev/null || break; sleep 0.5; done
		rm -f /run/$2.pid
	fi ;;
esac
exit 0
`

// path has the stand-in for systemctl first.
const path = "export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; "

var network = &pools.HostNetwork{
	CNI: pools.Flannel, PodCIDR: netip.MustParsePrefix("10.244.0.0/16"), ServiceCIDR: netip.MustParsePrefix("10.96.0.0/16"),
	HostPodCIDR: netip.MustParsePrefix("10.244.240.0/20"), NodeMask: 24, VNI: 7, Port: 8472, DNS: netip.MustParseAddr("10.96.0.10"), Domain: "cluster.local",
}

func sh(t *testing.T, script string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", append([]string{"-c", script, "sh"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func testInside(t *testing.T, dirs []string) {
	bin, flannel := dirs[0], dirs[1]
	sh(t, rack)
	dir := t.TempDir()
	p, err := controlplane.Start(t.Context(), controlplane.Config{
		Name: "tenant", BinDir: bin, Dir: filepath.Join(dir, "tenant"), RBAC: "../../deploy/rbac.yaml", Log: t.Output(),
		Address: netip.MustParseAddr("10.99.0.1"), Port: 6443,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	apply(t, p, "../../deploy/hosts-rbac.yaml", "")
	apply(t, p, "-", "{apiVersion: v1, kind: Node, metadata: {name: n1}}")
	podIP := startNode(t, p, flannel, dir)
	apply(t, p, "-", objects(podIP))
	web(t, "pod", "hello from the pod")
	startDNS(t, p, dirs[4], dir)

	for _, mode := range []pools.ProxyMode{pools.ProxyNFTables, pools.ProxyIPTables} {
		t.Run(string(mode), func(t *testing.T) { testHost(t, p, mode, podIP, dirs[1:]) })
	}
}

// objects returns Services with the pod behind them: one with a ClusterIP, one without, and
// the cluster's DNS.
func objects(podIP string) string {
	text := `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: 10.96.0.80, ports: [{port: 80, targetPort: 8080}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: headless}, spec: {clusterIP: None, ports: [{port: 8080}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: kube-dns, namespace: kube-system}, spec: {clusterIP: 10.96.0.10, ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53}]}}
`
	for service, ports := range map[string]string{
		"default/web": `{name: "", port: 8080, protocol: TCP}`, "default/headless": `{name: "", port: 8080, protocol: TCP}`,
		"kube-system/kube-dns": "{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}",
	} {
		namespace, name, _ := strings.Cut(service, "/")
		text += fmt.Sprintf(`---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: %[1]s-1, namespace: %[2]s, labels: {kubernetes.io/service-name: %[1]s}}, addressType: IPv4,
  ports: [%[3]s], endpoints: [{addresses: [%[4]q], conditions: {ready: true}}]}
`, name, namespace, ports, podIP)
	}
	return text
}

func apply(t *testing.T, p *controlplane.Cluster, file, text string) {
	t.Helper()
	if _, err := p.Kubectl(t.Context(), strings.NewReader(text), "apply", "-f", file); err != nil {
		t.Fatal(err)
	}
}

// startNode runs flannel on the node, whose network the controller manager has chosen, and
// makes a pod there. It returns the pod's address.
func startNode(t *testing.T, p *controlplane.Cluster, flannel, dir string) string {
	t.Helper()
	var cidr string
	fixture.Retry(t, "the node has a network", func() (err error) {
		if cidr, err = p.Kubectl(t.Context(), nil, "get", "node", "n1", "-o", "jsonpath={.spec.podCIDR}"); err == nil && cidr == "" {
			err = fmt.Errorf("none")
		}
		return err
	})
	first := netip.MustParsePrefix(cidr).Addr().Next()
	podIP := first.Next().String()
	sh(t, pod, podIP, first.String())
	conf := filepath.Join(dir, "net-conf.json")
	if err := os.WriteFile(conf, []byte(`{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan", "VNI": 7}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	daemon(t, "n1", "env", "NODE_NAME=n1", filepath.Join(flannel, "flanneld"), "-kube-subnet-mgr", "-kubeconfig-file="+p.Admin, "-net-config-path="+conf,
		"-iface=eth0", "-ip-masq", "-subnet-file="+filepath.Join(dir, "subnet.env"))
	return podIP
}

// daemon runs a program in a namespace until the test ends.
func daemon(t *testing.T, netns string, args ...string) {
	t.Helper()
	var out fixture.Log
	cmd := exec.Command("ip", append([]string{"netns", "exec", netns}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%v: %s", args, out.String())
		}
	})
}

// web serves a text on port 8080 of a namespace.
func web(t *testing.T, n netns.Namespace, text string) {
	t.Helper()
	var l net.Listener
	n.In(t, func() (err error) {
		l, err = net.Listen("tcp", ":8080")
		return err
	})
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })}
	t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(l) }()
}

func testHost(t *testing.T, p *controlplane.Cluster, mode pools.ProxyMode, podIP string, dirs []string) {
	conf := *network
	conf.ProxyMode = mode
	c := &kube.Clusters{Log: slog.New(slog.NewTextHandler(t.Output(), nil)), StartLoops: true, Key: []byte("of the test")}
	t.Cleanup(c.Close)
	declared := []pools.ExternalHost{{Name: "legacy1", Address: netip.MustParseAddr("10.99.0.50"), Size: 28, Expose: []pools.Exposed{{Service: "headless.default", Port: 8080, HostPort: 18080}}}}
	set := func(all []pools.ExternalHost) {
		c.Set([]pools.Cluster{{Name: p.Name, Kubeconfig: p.Client, Token: pools.TokenPolicy{TTL: pools.Duration(10 * time.Minute)}, Hosts: all, HostNetwork: &conf}})
	}
	set(declared)
	h, err := c.Hosts(p.Name)
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t)
	run, must, reach := m.run, m.must, m.reach
	state := func() string {
		return must("ip -br link | cut -d' ' -f1; ip route; nft list tables | grep -e kube -e flannel; iptables-save | grep -v '^[#:]' | grep -e KUBE -e FLANNEL; ls /etc/systemd/system /usr/local/bin; ls -d /etc/drover-host; cat /etc/resolv.conf; true")
	}
	must("cat > /usr/local/bin/systemctl <<'END'\n" + systemctl + "END\nchmod 755 /usr/local/bin/systemctl")
	must("tar -xf " + dirs[2] + " -C / ./usr/sbin/nft ./usr/lib")
	before := state()
	cidr := install(t, h, &conf, declared[0].Expose, m.Host, program(t, dirs[0], "flanneld"), program(t, dirs[1], "kube-proxy"), program(t, dirs[4], "drover"))
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := run("tail -n 30 /var/log/drover-*; ip route; ip -d link; nft list ruleset | head -80")
			t.Log(out)
		}
	})
	reach("a pod", podIP+":8080")
	reach("a ClusterIP", "10.96.0.80")
	reach("a Service by its name", "web.default.svc.cluster.local")
	reach("a Headless Service by its name", "headless.default.svc.cluster.local:8080")
	reach("a Service by its short name", "web")
	web(t, "legacy1", "hello from the host")
	fixture.Retry(t, "the pod reaches the host", func() error {
		out, err := exec.CommandContext(t.Context(), "ip", "netns", "exec", "pod", "curl", "-fsS", "--max-time", "3", "http://"+cidr.Addr().String()+":8080").CombinedOutput()
		if err == nil && string(out) != "hello from the host" {
			err = fmt.Errorf("%q", out)
		}
		return err
	})
	m.reach("a Service by a port of its own", "127.0.0.1:18080")
	testCheck(t, m)
	if mode == pools.ProxyNFTables {
		testBroken(t, m)
		testRollingRestart(t, p, netip.MustParseAddr(podIP))
	}
	old := must("cat /etc/drover-host/tenant/token")
	must("/etc/drover-host/tenant/renew.sh")
	if renewed := must("cat /etc/drover-host/tenant/token"); renewed == old || strings.Count(renewed, ".") != 2 {
		t.Error("renew.sh left the token as it was")
	}
	must("systemctl restart drover-kube-proxy-tenant.service; systemctl restart drover-flanneld-tenant.service")
	reach("a ClusterIP with new credentials", "10.96.0.80")

	set(nil)
	if err := h.Remove(context.WithoutCancel(t.Context()), "legacy1"); err != nil {
		t.Error(err)
	}
	must("/etc/drover-host/tenant/uninstall.sh")
	if after := state(); after != before {
		t.Errorf("the host was\n%s\nand is\n%s", before, after)
	}
	if out, err := run("curl -fsS --max-time 2 http://10.96.0.80"); err == nil {
		t.Errorf("after uninstall.sh the Service answers: %s", out)
	}
}

// install installs the bundle of the host, and returns its network.
func install(t *testing.T, h *hosts.Hosts, conf *pools.HostNetwork, expose []pools.Exposed, machine *manual.Host, programs ...bundle.Program) netip.Prefix {
	t.Helper()
	var b bundle.Host
	fixture.Retry(t, "the host has a Node and credentials", func() error {
		all, err := h.List(t.Context())
		if err != nil {
			return err
		}
		if len(all) != 1 || !all[0].PodCIDR.IsValid() || !all[0].Account {
			return fmt.Errorf("%+v", all)
		}
		got, err := h.Credentials(t.Context(), "legacy1", bundle.Lifetime)
		if err != nil {
			return err
		}
		b = bundle.Host{Name: "legacy1", Cluster: "tenant", Address: all[0].Address, PodCIDR: all[0].PodCIDR, Network: conf, Expose: expose, Server: got.Server, CA: got.CA, Token: got.Token}
		return nil
	})
	if conf.ProxyMode == pools.ProxyIPTables {
		invited(t, machine, b, programs)
		return b.PodCIDR
	}
	var tar bytes.Buffer
	if err := bundle.Write(&tar, b, time.Now(), programs...); err != nil {
		t.Fatal(err)
	}
	cmd := machine.Command(path + "cd /var/tmp && tar -xf - && legacy1/install.sh plain && rm -r legacy1")
	cmd.Stdin = &tar
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("install.sh: %v: %s", err, out)
	}
	return b.PodCIDR
}

// invited installs the bundle by the line of an invitation.
func invited(t *testing.T, machine *manual.Host, b bundle.Host, programs []bundle.Program) {
	t.Helper()
	l, err := net.Listen("tcp", "10.99.0.1:8444")
	if err != nil {
		t.Fatal(err)
	}
	i, err := invite.New(b.Name, l.Addr().String(), l, func(_ context.Context, w io.Writer) error { return bundle.Write(w, b, time.Now(), programs...) })
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- i.Serve(t.Context()) }()
	if out, err := machine.Command(path + i.Command() + " -s plain").CombinedOutput(); err != nil {
		t.Fatalf("the line of the invitation: %v: %s", err, out)
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
}

func program(t *testing.T, dir, name string) bundle.Program {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return bundle.Program{Name: name, Data: data}
}
