package resolve_test

import (
	"net/netip"
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
)

func identities(t testing.TB) *resolve.Farm {
	t.Helper()
	f, err := config.Load("testdata/identities.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var (
	hall   = netip.MustParseAddr("10.28.0.2") // the server's own network
	annex  = netip.MustParseAddr("10.29.0.1") // on the same network
	branch = netip.MustParseAddr("10.30.0.1") // behind a relay agent
)

// TestIdentify resolves machines by the options of their DHCP packets.
func TestIdentify(t *testing.T) {
	f := identities(t)
	unknown := mac(t, "52:54:00:77:01:01")
	for _, tt := range []struct {
		name          string
		q             resolve.Query
		node, matched string // no node: no answer
		why           string // part of the reason for no answer
	}{
		{"a port of a switch", resolve.Query{CircuitID: "ge-0/0/7", RemoteID: "\x00\x06\xaa"}, "by-port", "circuitID remoteID", ""},
		{"the same port of another switch", resolve.Query{CircuitID: "ge-0/0/7", RemoteID: "other"}, "by-circuit", "circuitID", ""},
		{"a port without a switch", resolve.Query{CircuitID: "ge-0/0/7"}, "by-circuit", "circuitID", ""},
		{"another port", resolve.Query{CircuitID: "ge-0/0/9"}, "node-525400770101", "", ""},
		{"a subscriber", resolve.Query{SubscriberID: "customer 7"}, "by-subscriber", "subscriberID", ""},
		{"a client identifier", resolve.Query{ClientID: "rack7"}, "by-client", "clientID", ""},
		{"a client identifier with the type of a name", resolve.Query{ClientID: "\x00rack7"}, "by-client", "clientID", ""},
		{"a client identifier that is longer", resolve.Query{ClientID: "rack77"}, "node-525400770101", "", ""},
		{"a pinned node at its port", resolve.Query{MAC: mac(t, "525400000001"), CircuitID: "ge-0/0/8"}, "pinned", "", ""},
		{"its MAC at another port", resolve.Query{MAC: mac(t, "525400000001"), CircuitID: "ge-0/0/7"}, "", "", "does not fit (testdata/identities.yaml:25)"},
		{"its MAC at no port", resolve.Query{MAC: mac(t, "525400000001")}, "", "", "does not fit"},
		{"an ignored node", resolve.Query{MAC: mac(t, "525400000002")}, "", "", `node "silent" is to be ignored (testdata/identities.yaml:26)`},
		{"an ignored kind", resolve.Query{Class: "Phone 7"}, "", "", `pool "phones" is to be ignored`},
		{"a node on its network", resolve.Query{MAC: mac(t, "525400000003"), Link: branch}, "far", "", ""},
		{"a node on another network", resolve.Query{MAC: mac(t, "525400000003")}, "", "", "its address 10.30.0.7 is in 10.30.0.0/24 (if both are on one wire"},
		{"two subnets of one network", resolve.Query{MAC: mac(t, "525400000004")}, "near", "", ""},
		{"a network that is not in the config", resolve.Query{MAC: mac(t, "525400000003"), Link: netip.MustParseAddr("192.168.0.1")}, "far", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := tt.q
			if q.MAC.IsZero() {
				q.MAC = unknown
			}
			if !q.Link.IsValid() {
				q.Link = hall
			}
			p := f.Resolve(q)
			switch {
			case (p == nil) != (tt.node == ""):
				t.Fatalf("got plan %v, want node %q (%s)", p, tt.node, f.WhyNot(q))
			case p == nil:
				if got := f.WhyNot(q); !strings.Contains(got, tt.why) {
					t.Errorf("got reason %q, want %q", got, tt.why)
				}
			case p.Node != tt.node || p.Matched != tt.matched || p.MACs[0] != q.MAC:
				t.Errorf("got node %q matched by %q, MACs %v; want %q, %q", p.Node, p.Matched, p.MACs, tt.node, tt.matched)
			case f.WhyNot(q) != "":
				t.Errorf("there is a plan, and a reason for none: %q", f.WhyNot(q))
			}
		})
	}
}

// TestCatchAlls: unknown machines get the first catch-all pool that matches.
func TestCatchAlls(t *testing.T) {
	f := identities(t)
	for _, tt := range []struct {
		name string
		q    resolve.Query
		from string // the pool of its lease
		want string
	}{
		{"the first that fits", resolve.Query{Link: hall, Firmware: pools.UEFIarm64}, "", "arm"},
		{"the one without a match", resolve.Query{Link: hall, Firmware: pools.UEFIx64}, "", "lobby"},
		{"another subnet of the network", resolve.Query{Link: annex}, "", "lobby"},
		{"behind a relay agent", resolve.Query{Link: branch, Firmware: pools.UEFIarm64}, "", "branch"},
		{"nothing but the MAC is known", resolve.Query{}, "", "lobby"},
		{"nothing but the MAC and its lease", resolve.Query{}, "branch", "branch"},
		{"the pool of its lease is gone", resolve.Query{}, "gone", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.q.MAC = mac(t, "52:54:00:77:01:01")
			lease := pools.Lease{Pool: tt.from}
			p := f.ResolveLeased(tt.q, lease)
			if p == nil {
				if tt.want != "" {
					t.Errorf("got no plan (%s), want pool %q", f.WhyNotLeased(tt.q, lease), tt.want)
				}
				return
			}
			if p.Pool != tt.want || !p.CatchAll || !p.Range.IsValid() || p.Broadcast != (tt.want == "arm") {
				t.Errorf("got pool %q, broadcast %v, range %s; want %q", p.Pool, p.Broadcast, p.Range, tt.want)
			}
		})
	}
}

// TestMatchMAC: pools take machines by the begin of their MAC, in the order of the file; for a node
// it is a further condition.
func TestMatchMAC(t *testing.T) {
	f, err := config.Parse("drover.yaml", []byte(`
server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16}]
pools:
  - {name: ports, image: i, nodes: [{name: n1, match: {circuitID: p1, mac: "94:57:a5:*"}, ip: 10.28.0.11}]}
  - {name: one, catchall: true, image: i, match: {mac: "94-57-A5-D3-EC-F2"}, range: 10.28.1.1-10.28.1.9}
  - {name: pxe, catchall: true, image: i, match: {mac: "94:57:a5:*:*:*", class: "PXEClient*"}, range: 10.28.2.1-10.28.2.9}
  - {name: moonshot, catchall: true, image: i, match: {mac: "94:57:A5:*"}, range: 10.28.3.1-10.28.3.9}
  - {name: wide, catchall: true, image: i, match: {mac: "94:5*"}, range: 10.28.4.1-10.28.4.9}
  - {name: tail, catchall: true, image: i, match: {mac: "*:01"}, range: 10.28.5.1-10.28.5.9}
  - {name: lobby, catchall: true, image: i, range: 10.28.6.1-10.28.6.9}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		mac  string
		q    resolve.Query
		want string
	}{
		{"94:57:a5:00:00:01", resolve.Query{CircuitID: "p1"}, "ports"},
		{"52:54:00:00:00:02", resolve.Query{CircuitID: "p1"}, "lobby"},
		{"94:57:a5:d3:ec:f2", resolve.Query{}, "one"},
		{"94:57:a5:d3:ec:f3", resolve.Query{Class: "PXEClient:Arch:00007"}, "pxe"},
		{"94:57:a5:d3:ec:f3", resolve.Query{}, "moonshot"},
		{"94:57:a6:00:00:01", resolve.Query{}, "wide"},
		{"94:60:a5:00:00:01", resolve.Query{}, "tail"},
		{"94:60:a5:00:00:02", resolve.Query{}, "lobby"},
	} {
		for name, link := range map[string]netip.Addr{"DHCP": hall, "HTTP": {}} {
			if !link.IsValid() && tt.q.CircuitID+tt.q.Class != "" {
				continue // HTTP knows the MAC alone
			}
			q := tt.q
			q.MAC, q.Link = mac(t, tt.mac), link
			if p := f.Resolve(q); p == nil || p.Pool != tt.want {
				t.Errorf("%s by %s: got %+v, want pool %q", tt.mac, name, p, tt.want)
			}
		}
	}
}

// TestLeasedNode: HTTP knows only the MAC; the lease names the node that DHCP found.
func TestLeasedNode(t *testing.T) {
	f := identities(t)
	q := resolve.Query{MAC: mac(t, "52:54:00:77:01:01"), IPXE: true}
	lease := pools.Lease{Node: "by-port", Pool: "ports"}
	if p := f.ResolveLeased(q, lease); p == nil || p.Node != "by-port" || p.Address.String() != "10.28.1.1" {
		t.Errorf("got %+v, want node by-port", p)
	}
	q.Link = hall // DHCP knows the port, and finds no node there
	if p := f.ResolveLeased(q, lease); p == nil || p.Node != "node-525400770101" {
		t.Errorf("got %+v, want it unknown: it is at another port", p)
	}
	q.Renewing = true // a renewal may bypass the relay agent, which knows the port
	if p := f.ResolveLeased(q, lease); p == nil || p.Node != "by-port" || p.Matched != "lease" {
		t.Errorf("got %+v, want node by-port, as its lease says", p)
	}
	q.CircuitID = "ge-0/0/7" // a renewal through the relay agent
	if p := f.ResolveLeased(q, lease); p == nil || p.Node != "by-circuit" {
		t.Errorf("got %+v, want node by-circuit", p)
	}
	q.CircuitID, q.Link, q.Renewing = "", netip.Addr{}, false
	lease.Node = "far" // a node with MACs is never found by a lease
	if p := f.ResolveLeased(q, lease); p != nil && p.Node == "far" {
		t.Error("the node of the lease replaces a MAC")
	}
}

func TestLoaders(t *testing.T) {
	f := identities(t)
	near, port := mac(t, "525400000004"), mac(t, "52:54:00:77:01:01")
	for _, tt := range []struct {
		name         string
		q            resolve.Query
		file, server string
	}{
		{"the default", resolve.Query{MAC: mac(t, "525400000003"), Link: branch, Firmware: pools.BIOS}, "undionly.kpxe", "10.28.0.2"},
		{"by firmware", resolve.Query{MAC: port, Link: hall, CircuitID: "ge-0/0/7", Firmware: pools.UEFIx64}, "shimx64.efi", "10.28.0.2"},
		{"by architecture", resolve.Query{MAC: near, Link: hall, Archs: []uint16{27}, Class: "PXEClient:Arch:00027:UNDI:003000"}, "riscv/ipxe.efi", "10.28.0.2"},
		{"by class, from another server", resolve.Query{MAC: near, Link: hall, Firmware: pools.BIOS, Class: "PXEClient:Arch:00000:UNDI:002001"}, "tftp/lpxelinux.0", "10.28.0.9"},
		{"the last rule that fits", resolve.Query{MAC: near, Link: hall, Firmware: pools.UEFIx64}, "shimx64.efi", "10.28.0.2"},
		{"HTTP Boot by URL", resolve.Query{MAC: near, Link: hall, Firmware: pools.UEFIx64HTTP}, "http://10.28.0.2/loaders/shimx64.efi", "10.28.0.2"},
		{"iPXE by user class", resolve.Query{MAC: near, Link: hall, Firmware: pools.BIOS, IPXE: true, UserClass: "iPXE"}, "http://10.28.0.9/menu.ipxe", "10.28.0.2"},
		{"iPXE otherwise", resolve.Query{MAC: port, Link: hall, CircuitID: "ge-0/0/7", Firmware: pools.UEFIx64, IPXE: true, UserClass: "iPXE"}, "http://10.28.0.2/boot/52-54-00-77-01-01", "10.28.0.2"},
		{"an operating system", resolve.Query{MAC: near, Link: hall}, "", "10.28.0.2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := f.Resolve(tt.q)
			if p == nil {
				t.Fatal(f.WhyNot(tt.q))
			}
			// The pool "ports" has the tag secure, the node "near" odd after it.
			if p.Boot.File != tt.file || p.Boot.Server.String() != tt.server {
				t.Errorf("got %q from %s, want %q from %s", p.Boot.File, p.Boot.Server, tt.file, tt.server)
			}
			if why := p.Why()["boot.file"]; tt.file != "" && why.Path == "" {
				t.Error("boot.file has no origin")
			}
		})
	}
}

func TestNodeOptions(t *testing.T) {
	p := identities(t).Resolve(resolve.Query{MAC: mac(t, "525400000004"), Link: hall})
	got := map[uint8]string{}
	for _, o := range p.Options {
		got[o.Code] = o.Text
	}
	if got[26] != "9000" || got[43] != "6=uint8:8" {
		t.Errorf("got %v, want mtu 9000 and 43.6", got)
	}
	if why := p.Why()["dhcpOptions.26"].Position(); why != "testdata/identities.yaml:28" {
		t.Errorf("mtu is from %s, want the node's line", why)
	}
}

func TestSubnetOf(t *testing.T) {
	p := identities(t).Resolve(resolve.Query{MAC: mac(t, "525400000004"), Link: hall})
	for addr, want := range map[string]string{
		"10.29.0.9": "10.29.0.0/24", "10.28.7.7": "10.28.0.0/16",
		"10.30.0.7": "", "192.168.0.1": "", // another network, and none of the config
	} {
		s, ok := p.SubnetOf(netip.MustParseAddr(addr))
		if got := s.CIDR.String(); ok != (want != "") || ok && got != want {
			t.Errorf("%s: got subnet %s, %v; want %q", addr, got, ok, want)
		}
	}
}

func TestProxyNeedsNoAddresses(t *testing.T) {
	f, err := config.Parse("x.yaml", []byte("server: {interfaces: [eth1], address: 10.0.0.2, dhcp: proxy}\n"+
		"pools:\n- {name: a, image: b, nodes: [{name: n, macs: [\"52:54:00:00:00:01\"]}]}\n- {name: rest, image: b, catchall: true}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for m, want := range map[string]string{"525400000001": "n", "525400000002": "node-525400000002"} {
		p := f.Resolve(resolve.Query{MAC: mac(t, m), Link: netip.MustParseAddr("10.0.0.2"), IPXE: true})
		if p == nil || p.Node != want || p.Boot.File == "" || p.Subnet.CIDR.IsValid() {
			t.Errorf("%s: got %+v, want node %s without a subnet", m, p, want)
		}
		p.Why()
	}
}
