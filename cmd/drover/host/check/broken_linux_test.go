package check_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"drover/cmd/drover/cli"
	"drover/cmd/drover/host/check"
	"drover/e2e/fixture"
	"drover/e2e/netns"
	"drover/kube/externalhost"
	"drover/kube/externalhost/bundle"
	"drover/pools"
)

// inside says that this process is on the host of the test, and has its [scene].
const inside = "DROVER_TEST_CHECK"

// scene is what a host of a test sees of its cluster.
type scene struct {
	Facts    bundle.Host
	Root     string
	Skew     time.Duration // of the host's clock
	Timeout  time.Duration
	Token    string
	OtherCA  bool // the host has a CA that is not that of the API server
	Status   int  // of the API server, for the token
	Peers    []externalhost.Peer
	Targets  []netip.AddrPort
	NoServer bool // nothing listens at the address of the API server
	NoDNS    bool
}

func newScene() *scene {
	return &scene{
		Facts: bundle.Host{
			Name: "legacy1", Cluster: "tenant", Address: netip.MustParseAddr("10.99.0.50"), PodCIDR: netip.MustParsePrefix("10.244.240.0/28"),
			Network: &pools.HostNetwork{
				CNI: pools.Flannel, PodCIDR: netip.MustParsePrefix("10.244.0.0/16"), ServiceCIDR: netip.MustParsePrefix("10.96.0.0/16"),
				HostPodCIDR: netip.MustParsePrefix("10.244.240.0/20"), NodeMask: 24, VNI: 7, Port: 8472, ProxyMode: pools.ProxyNFTables,
				DNS: netip.MustParseAddr("10.96.0.10"), Domain: "cluster.local",
			},
		},
		Timeout: 3 * time.Second, Token: "none", Status: http.StatusOK, Targets: []netip.AddrPort{netip.MustParseAddrPort("10.244.0.1:8080")},
		Peers: []externalhost.Peer{
			{Name: "n1", Address: netip.MustParseAddr("10.99.0.11"), PodCIDR: netip.MustParsePrefix("10.244.0.0/24"), CNI: "flannel", Backend: "vxlan", VNI: 7, PublicIP: netip.MustParseAddr("10.99.0.11")},
			{Name: "legacy1", External: true, Address: netip.MustParseAddr("10.99.0.50"), PodCIDR: netip.MustParsePrefix("10.244.240.0/28"), CNI: "flannel", Backend: "vxlan", VNI: 7, PublicIP: netip.MustParseAddr("10.99.0.50")},
		},
	}
}

// fakeCluster answers what the scene has.
type fakeCluster struct{ *scene }

func (f fakeCluster) Peers(context.Context) ([]externalhost.Peer, error) { return f.scene.Peers, nil }
func (f fakeCluster) Targets(context.Context, netip.Prefix) ([]netip.AddrPort, error) {
	return f.scene.Targets, nil
}

// wire makes a node n and a host h, whose VXLAN is flannel's: addresses, neighbors and
// routes. Packets to Services go to the programs of the test, as kube-proxy's rules would
// have it.
const wire = `set -e
for side in n:10.99.0.11:10.244.0.0:02:0a h:10.99.0.50:10.244.240.0:02:0b; do
	ns=$(echo $side | cut -d: -f1) ip=$(echo $side | cut -d: -f2) pod=$(echo $side | cut -d: -f3) mac=$(echo $side | cut -d: -f4-)
	if [ $ns = n ]; then ns=$1; else ns=$2; fi
	ip -n $ns address add $ip/24 dev eth0
	ip -n $ns link set eth0 up
	ip -n $ns link add flannel.7 address $mac:00:00:00:00 type vxlan id 7 dev eth0 local $ip dstport 8472 nolearning
	ip -n $ns address add $pod/32 dev flannel.7
	ip -n $ns link set flannel.7 up
done
other() {
	ip -n $1 neighbor replace $3 dev flannel.7 lladdr $4:00:00:00:00 nud permanent
	bridge -n $1 fdb replace $4:00:00:00:00 dev flannel.7 dst $2
	ip -n $1 route replace $5 via $3 dev flannel.7 onlink
}
other $1 10.99.0.50 10.244.240.0 02:0b 10.244.240.0/28
other $2 10.99.0.11 10.244.0.0 02:0a 10.244.0.0/24
ip -n $1 address add 10.244.0.1/32 dev lo
ip -n $2 route replace default via 10.99.0.1
nsenter --net=/run/netns/$2 iptables -t nat -A OUTPUT -d 10.96.0.1 -p tcp --dport 443 -j DNAT --to-destination 10.99.0.50:443
nsenter --net=/run/netns/$2 iptables -t nat -A OUTPUT -d 10.96.0.10 -p udp --dport 53 -j DNAT --to-destination 10.99.0.50:53
`

// broken are faults of a host: the commands that make it, in namespaces $1, a node, and $2, the
// host; what differs in the scene; and the finding.
var broken = []struct {
	name, sh string
	scene    func(t *testing.T, s *scene)
	check    string
	text     string
	remedy   string // a part of the remedy
}{
	{"VXLAN is blocked at the node", "nsenter --net=/run/netns/$1 iptables -A INPUT -p udp --dport 8472 -j DROP", nil, "vxlan", "nodes n1 answer, but not through the VXLAN: UDP port 8472 is blocked", "open UDP port 8472"},
	{"VXLAN is blocked at the host", "nsenter --net=/run/netns/$2 iptables -A OUTPUT -p udp --dport 8472 -j DROP", nil, "vxlan", "UDP port 8472 is blocked", ""},
	{"the node is not reachable", "ip -n $1 link set eth0 down", nil, "vxlan", "neither the VXLAN nor the address of these nodes answers: n1 (10.99.0.11)", ""},
	{"small MTU on the way", "ip -n $1 link set eth0 mtu 1400", nil, "mtu", "packets of 1450 bytes to nodes n1 are lost", "ip link set flannel.7 mtu 13"},
	{"small MTU at the host", "ip -n $2 link set eth0 mtu 1400", nil, "mtu", "flannel.7 has MTU 1450, and eth0, below it, 1400", "ip link set flannel.7 mtu 1350"},
	{"another VNI", "ip -n $1 link del flannel.7; ip -n $1 link add flannel.9 type vxlan id 9 dev eth0 local 10.99.0.11 dstport 8472 && ip -n $1 address add 10.244.0.0/32 dev flannel.9 && ip -n $1 link set flannel.9 up",
		func(_ *testing.T, s *scene) { s.Peers[0].VNI = 9 }, "vni", "the VXLAN of nodes n1 has VNI 9, and that of the host 7", "hostNetwork.vni: 9"},
	{"another address", "ip -n $2 address del 10.99.0.50/24 dev eth0 && ip -n $2 address add 10.99.0.51/24 dev eth0", nil, "address", "the config has address 10.99.0.50, and this host has 10.99.0.51 (eth0)", ""},
	{"an interface in the pod network", "ip -n $2 link add docker0 type bridge && ip -n $2 address add 10.244.3.1/24 dev docker0", nil, "overlap", "the network 10.244.3.1/24 of docker0 overlaps the cluster's 10.244.0.0/16", "renumber"},
	{"an interface in the Service network", "ip -n $2 link add virbr0 type bridge && ip -n $2 address add 10.96.77.1/24 dev virbr0", nil, "overlap", "the network 10.96.77.1/24 of virbr0 overlaps the cluster's 10.96.0.0/16", ""},
	{"a route into the pod network", "ip -n $2 route add 10.244.8.0/21 via 10.99.0.1", nil, "overlap", "the route to 10.244.8.0/21 by eth0 takes packets for the cluster's 10.244.0.0/16", "ip route delete 10.244.8.0/21 dev eth0"},
	{"a table before that of flannel", "ip -n $2 rule add to 10.244.0.0/16 table 77 && ip -n $2 route add default via 10.99.0.1 table 77", nil, "route", "packets to pods of node n1 leave by eth0, and not by flannel.7", "ip rule"},
	{"flanneld does not run", "ip -n $2 link del flannel.7", nil, "flannel", "there is no interface flannel.7", "journalctl -u drover-flanneld-tenant"},
	{"kube-proxy does not run", "nsenter --net=/run/netns/$2 iptables -t nat -F OUTPUT; ip -n $2 route add unreachable 10.0.0.0/8", nil, "service", "the Service kubernetes.default at 10.96.0.1:443 does not answer", "drover-kube-proxy-tenant"},
	{"rp_filter", `ip -n $2 link add eth1 type bridge && ip -n $2 address add 10.98.0.50/24 dev eth1 && ip -n $2 link set eth1 up && ip -n $2 route add 10.99.0.11/32 via 10.98.0.1 dev eth1
nsenter --net=/run/netns/$2 sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.eth0.rp_filter=1`, nil, "rp_filter", "packets to node n1 leave by eth1, and those from it come to 10.99.0.50, by eth0, whose rp_filter drops them", "net.ipv4.conf.eth0.rp_filter=2"},
	{"no forwarding", "nsenter --net=/run/netns/$2 sysctl -qw net.ipv4.ip_forward=0", nil, "forwarding", "net.ipv4.ip_forward is 0", "sysctl -w net.ipv4.ip_forward=1"},
	{"a fast clock", "", func(_ *testing.T, s *scene) { s.Skew = 26 * time.Minute }, "clock", "the clock is 26m", "timedatectl"},
	{"a clock of another year", "", func(_ *testing.T, s *scene) { s.Skew = -60 * 365 * 24 * time.Hour }, "clock", "slow", ""},
	{"the API server is away", "", func(_ *testing.T, s *scene) { s.NoServer = true }, "api", "connection refused", "the API server does not run there"},
	{"other CAs", "", func(_ *testing.T, s *scene) { s.OtherCA = true }, "api", "signed by unknown authority", "drover host bundle legacy1"},
	{"expired credentials", "", func(_ *testing.T, s *scene) { s.Status, s.Token = 401, "e30.eyJleHAiOjE3MDAwMDAwMDB9.x" }, "credentials", "they expired at 2023-11-14 22:13:20", "drover-host-renew-tenant"},
	{"revoked credentials", "", func(_ *testing.T, s *scene) { s.Status = 401 }, "credentials", "the cluster does not accept them", "drover host bundle legacy1"},
	{"no rights", "", func(_ *testing.T, s *scene) { s.Status = 403 }, "rights", "the cluster gives hosts no rights", "drover cluster prepare tenant"},
	{"DNS is silent", "", func(_ *testing.T, s *scene) { s.NoDNS = true }, "dns", "the cluster's DNS at 10.96.0.10:53 does not answer", "hostNetwork.dns"},
	{"no pod answers", "", func(_ *testing.T, s *scene) { s.Targets[0] = netip.MustParseAddrPort("10.244.0.77:80") }, "pod", "of 1 ready pods none answers", "NetworkPolicy"},
	{"no proxy", "", func(_ *testing.T, s *scene) {
		s.Facts.Expose = []pools.Exposed{{Service: "web.default", Port: 80, HostPort: 8080}}
	}, "proxy", "port 8080, which leads to web.default, does not answer", "journalctl -u drover-proxy-8080-tenant"},
	{"an old kernel", "", func(t *testing.T, s *scene) {
		s.Root = fixture.Tree(t, map[string]string{"proc/sys/kernel/osrelease": "5.10.0-28-amd64\n"})
	}, "kernel", "Linux 5.10.0-28-amd64 is too old: kube-proxy in mode nftables needs 5.13", "proxyMode: iptables"},
	{"no module vxlan", "", func(t *testing.T, s *scene) {
		s.Root = fixture.Tree(t, map[string]string{
			"proc/sys/kernel/osrelease": "6.1.0-9-cloud-amd64\n", "proc/modules": "nf_conntrack 200704 1 nf_nat, Live 0x0\n", "lib/modules/6.1.0-9-cloud-amd64/modules.builtin": "kernel/net/netfilter/nf_tables.ko\n",
			"lib/modules/6.1.0-9-cloud-amd64/modules.dep": "kernel/net/netfilter/nft_chain_nat.ko.xz: kernel/net/netfilter/nf_nat.ko.xz\nkernel/net/nft-ct.ko:\nkernel/net/nft_numgen.ko:\nkernel/net/nft_masq.ko:\nkernel/net/nft_fib_ipv4.ko:\n",
		})
	}, "modules", "the kernel has no module vxlan", "linux-modules-extra"},
}

// TestBroken breaks a host in each way, and wants the fault named.
func TestBroken(t *testing.T) {
	if text := os.Getenv(inside); text != "" {
		examineInside(t, text)
		return
	}
	netns.Need(t, "iptables", "bridge")
	netns.NeedLinks(t, "vxlan", "veth", "bridge")
	t.Run("whole", func(t *testing.T) {
		s := newScene()
		s.Timeout = 15 * time.Second
		for _, f := range run(t, "", s) {
			if f.Result == cli.Fault || f.Result == cli.Warning {
				t.Errorf("%+v", f)
			}
		}
	})
	for _, b := range broken {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			if b.scene != nil {
				b.scene(t, s)
			}
			all := run(t, b.sh, s)
			for _, f := range all {
				if f.Check == b.check && (f.Result == cli.Fault || f.Check == "forwarding") && strings.Contains(f.Text, b.text) && strings.Contains(f.Remedy, b.remedy) {
					return
				}
			}
			t.Errorf("no finding of %q with %q and %q:\n%s", b.check, b.text, b.remedy, text(all))
		})
	}
}

// namespaces counts those of this process, for their names.
var namespaces atomic.Int32

func text(all cli.Findings) string {
	var b strings.Builder
	_ = all.Write(&b)
	return b.String()
}

// run makes the namespaces, breaks them, and returns what the host finds.
func run(t *testing.T, breaking string, s *scene) (all cli.Findings) {
	t.Helper()
	number := fmt.Sprintf("%d-%d", os.Getpid(), namespaces.Add(1))
	node, host := netns.NewNamespace(t, "drvn"+number), netns.NewNamespace(t, "drvh"+number)
	host.Link(t, "eth0", node, "eth0")
	for _, script := range []string{"nsenter --net=/run/netns/$2 sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0\n" + wire, breaking} {
		if out, err := exec.Command("sh", "-c", script, "sh", string(node), string(host)).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	in, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "findings")
	cmd := host.Command(os.Args[0], "-test.run=^TestBroken$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"="+out+"\n"+string(in))
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if err := json.Unmarshal([]byte(fixture.ReadFile(t, out)), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// examineInside examines the host that it is on, and writes the findings.
func examineInside(t *testing.T, text string) {
	out, in, _ := strings.Cut(text, "\n")
	var s scene
	if err := json.Unmarshal([]byte(in), &s); err != nil {
		t.Fatal(err)
	}
	api := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			w.WriteHeader(s.Status)
		}
	}))
	l, err := net.Listen("tcp", ":443")
	if err != nil {
		t.Fatal(err)
	}
	api.Listener = l
	api.StartTLS()
	defer api.Close()
	s.Facts.Server, s.Facts.CA, s.Facts.Token = "https://127.0.0.1", pemOf(api), s.Token
	if s.NoServer {
		s.Facts.Server = "https://127.0.0.1:444"
	}
	if s.OtherCA {
		s.Facts.CA = newCA(t)
	}
	if !s.NoDNS {
		serveNames(t)
	}
	h := check.Host{Facts: s.Facts, Dir: t.TempDir(), Root: s.Root, Timeout: s.Timeout, Cluster: fakeCluster{&s}, Now: func() time.Time { return time.Now().Add(s.Skew) }}
	b, err := json.Marshal(h.Examine(t.Context()))
	if err == nil {
		err = os.WriteFile(out, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// serveNames says that each name is the address of the Service kubernetes.
func serveNames(t *testing.T) {
	c, err := net.ListenPacket("udp4", ":53")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.Additionals = true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 5}, Body: &dnsmessage.AResource{A: [4]byte{10, 96, 0, 1}}}}
			}
			if answer, err := m.Pack(); err == nil {
				_, _ = c.WriteTo(answer, from) // the resolver asks again
			}
		}
	}()
}

// newCA returns a certificate that has signed nothing.
func newCA(t *testing.T) []byte {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

func pemOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}
