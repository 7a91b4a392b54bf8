package externalhost_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"drover/e2e/buildcache"
	"drover/e2e/debian"
	"drover/e2e/fixture"
	"drover/kube/externalhost/bundle"
	"drover/pools"
)

// corp is the network of the host: its DNS server knows www.example.org, and is the only one
// that the host knows before it has a cluster.
const corp = `set -e
ip netns add corp && ip netns add pod
ip link add eth0 type veth peer name eth0 netns corp
ip addr add 192.0.2.10/24 dev eth0 && ip link set eth0 up && ip route add default via 192.0.2.53
ip -n corp link set lo up && ip -n corp addr add 192.0.2.53/24 dev eth0 && ip -n corp link set eth0 up
dns() {
	ip netns exec $1 dnsmasq --no-resolv --no-hosts --conf-file=/dev/null --user=root --pid-file=/run/$1.pid --log-queries --log-facility=/tmp/$1.log --address=/$2/$3 --address=/#/ # all others do not exist
}
dns corp www.example.org 93.184.215.14
ip -n pod link set lo up && ip -n pod addr add 10.244.1.2/32 dev lo
dns pod web.default.svc.cluster.local 10.96.0.80
nft -f - <<END
table ip services {
	chain output { type nat hook output priority -100; ip daddr 10.96.0.10 dnat to 10.244.1.2; }
	chain postrouting { type nat hook postrouting priority 100; oifname "flannel.7" ip saddr != 10.244.0.0/16 masquerade; }
}
END
`

// flanneld stands in for the program: a link that is there as long as it runs. A pod behind it
// has the cluster's DNS; the rule of corp is what kube-proxy has for its Service.
const flanneld = `#!/bin/sh
ip link delete flannel.7 2>/dev/null
ip link add flannel.7 type veth peer name eth1 netns pod || exit 1
ip addr add 10.244.240.0/32 dev flannel.7 && ip link set flannel.7 up
ip route add 10.244.1.0/24 dev flannel.7 scope link
ip -n pod link set eth1 up && ip -n pod route replace 10.244.240.0/32 dev eth1 scope link
trap 'ip link delete flannel.7; exit 0' TERM INT
while :; do sleep 1; done
`

// TestResolvers has the bundle's resolver.sh set up the real systemd-resolved and the real
// dnsmasq of Debian 12: names of the cluster go to its DNS and nowhere else, all others go
// where they went before, a restart of flanneld keeps it so, and nothing is left of it.
func TestResolvers(t *testing.T) {
	fixture.Root(t)
	if err := buildcache.Able(t.Context()); err != nil {
		fixture.Missing(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	root, err := buildcache.Resolvers(ctx, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	for kind, setup := range map[string]string{
		"dnsmasq": "systemctl disable --now systemd-resolved; printf 'no-resolv\nserver=192.0.2.53\nlisten-address=127.0.0.1\nbind-interfaces\nstop-dns-rebind\n' >/etc/dnsmasq.d/up.conf && " +
			"rm -f /etc/resolv.conf && printf 'nameserver 127.0.0.1\nsearch example.org\n' >/etc/resolv.conf && systemctl enable dnsmasq && systemctl restart dnsmasq",
		"resolved": "systemctl disable --now dnsmasq; mkdir -p /etc/systemd/resolved.conf.d && printf '[Resolve]\nDNS=192.0.2.53\nFallbackDNS=\n' >/etc/systemd/resolved.conf.d/up.conf && " +
			"systemctl enable systemd-resolved && systemctl restart systemd-resolved && ln -sf /run/systemd/resolve/stub-resolv.conf /etc/resolv.conf",
	} {
		t.Run(kind, func(t *testing.T) {
			h := newResolver(ctx, t, root)
			h.must(setup)
			h.must("systemctl is-active " + map[string]string{"resolved": "systemd-resolved", "dnsmasq": "dnsmasq"}[kind])
			testResolver(h, kind)
		})
	}
}

// resolver is a host with one of the resolvers.
type resolver struct {
	*debian.System
	t   *testing.T
	ctx context.Context
}

func newResolver(ctx context.Context, t *testing.T, root string) resolver {
	t.Helper()
	s, err := debian.Start(debian.Config{Root: root, Dir: t.TempDir(), Init: debian.Systemd})
	if err != nil {
		t.Fatal(err)
	}
	h := resolver{s, t, ctx}
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := h.Run(context.WithoutCancel(ctx), "cat /etc/resolv.conf; resolvectl status; ip addr; ip route; journalctl -n 60 --no-pager; tail -n 40 /tmp/*.log")
			t.Log(out)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	fixture.Until(ctx, t, "systemd is up", func() (bool, error) { // of two resolvers one does not start
		out, err := h.Run(ctx, "systemctl is-system-running")
		state := strings.TrimSpace(out)
		return strings.HasPrefix(state, "running") || strings.HasPrefix(state, "degraded"), err
	})
	h.must(corp)
	files, err := bundle.Files(bundle.Host{
		Name: "legacy1", Cluster: "tenant", Address: netip.MustParseAddr("192.0.2.10"), PodCIDR: netip.MustParsePrefix("10.244.240.0/28"),
		Network: &pools.HostNetwork{CNI: pools.Flannel, PodCIDR: network.PodCIDR, ServiceCIDR: network.ServiceCIDR, ProxyMode: pools.ProxyNFTables, VNI: 7, Port: 8472, DNS: network.DNS, Domain: network.Domain},
	})
	if err != nil {
		t.Fatal(err)
	}
	h.must("mkdir -p /etc/drover-host/tenant /usr/local/bin")
	for _, f := range files {
		switch f.Name {
		case "resolver.sh":
			h.write("/etc/drover-host/tenant/resolver.sh", string(f.Data))
		case "flanneld.service":
			h.write("/etc/systemd/system/drover-flanneld-tenant.service", string(f.Data))
		}
	}
	h.write("/usr/local/bin/flanneld", flanneld)
	h.must("chmod 755 /usr/local/bin/flanneld /etc/drover-host/tenant/resolver.sh && systemctl daemon-reload")
	return h
}

func (h resolver) must(line string) string {
	h.t.Helper()
	out, err := h.Run(h.ctx, line)
	if err != nil {
		h.t.Fatal(err)
	}
	return out
}

func (h resolver) write(name, text string) {
	h.t.Helper()
	if err := h.Write(h.ctx, strings.NewReader(text), name); err != nil {
		h.t.Fatal(err)
	}
}

// resolves waits until programs of the host get an address for a name; "": none.
func (h resolver) resolves(name, want string) {
	h.t.Helper()
	fixture.Until(h.ctx, h.t, fmt.Sprintf("%s is %q", name, want), func() (bool, error) {
		out, err := h.Run(h.ctx, "getent ahostsv4 "+name+" | head -n 1")
		got, _, _ := strings.Cut(strings.TrimSpace(out), " ")
		return got == want, fmt.Errorf("it is %q, %w", out, err)
	})
}

func testResolver(h resolver, kind string) {
	h.resolves("www.example.org", "93.184.215.14")
	h.resolves("web.default.svc.cluster.local", "")
	h.must("/etc/drover-host/tenant/resolver.sh add auto && systemctl restart drover-flanneld-tenant")
	if got := strings.TrimSpace(h.must("cat /etc/drover-host/tenant/resolver")); got != kind {
		h.t.Fatalf("resolver.sh has found %q, want %q", got, kind)
	}
	h.must("truncate -s 0 /tmp/corp.log /tmp/pod.log")
	for range 2 {
		h.resolves("web.default.svc.cluster.local", "10.96.0.80")
		h.resolves("web", "10.96.0.80")
		h.resolves("web.default", "10.96.0.80")
		h.resolves("www.example.org", "93.184.215.14")
		h.resolves("gone.example.org", "")
		h.must("systemctl restart drover-flanneld-tenant")
	}
	if said := h.must("cat /tmp/corp.log"); strings.Contains(said, "cluster.local from") || !strings.Contains(said, "www.example.org") {
		h.t.Errorf("the host's own DNS was asked:\n%s", said)
	}
	for line := range strings.Lines(h.must("grep ' query' /tmp/pod.log")) { // a search list makes names of the cluster of others
		if !strings.Contains(line, ".cluster.local from") {
			h.t.Errorf("the cluster's DNS was asked: %s", line)
		}
	}
	before := h.must("cat /etc/drover-host/tenant/resolv.conf.before 2>/dev/null || true")
	h.must("systemctl stop drover-flanneld-tenant; ip link delete flannel.7 2>/dev/null; /etc/drover-host/tenant/resolver.sh remove") // as uninstall.sh does
	h.resolves("www.example.org", "93.184.215.14")
	h.resolves("web.default.svc.cluster.local", "")
	if left := h.must("find /etc/systemd /etc/dnsmasq.d -name '*drover-tenant*' -o -name resolver.conf"); left != "" {
		h.t.Errorf("files are left: %s", left)
	}
	if now := h.must("cat /etc/resolv.conf"); kind == "dnsmasq" && now != before {
		h.t.Errorf("/etc/resolv.conf was %q, and is %q", before, now)
	}
}
