package resolve_test

import (
	"net/netip"
	"strings"
	"testing"

	"drover/pools/config"
	"drover/pools/resolve"
)

// TestRelays: a relay agent with an address in no subnet is for the subnet that lists it.
func TestRelays(t *testing.T) {
	f, err := config.Parse("x.yaml", []byte(`
server: {interfaces: [eth1]}
subnets:
- {cidr: 10.0.0.0/24, relays: [10.99.0.1]}
- {cidr: 10.0.1.0/24, relays: [10.99.0.2, 10.0.1.5]}
pools:
- {name: web, image: b, nodes: [{name: m1, macs: ["52:54:00:00:00:01"], ip: 10.0.0.7}]}
- {name: first, image: b, catchall: true, range: 10.0.0.10-10.0.0.20}
- {name: second, image: b, catchall: true, range: 10.0.1.10-10.0.1.20}
`))
	if err != nil {
		t.Fatal(err)
	}
	node, unknown := mac(t, "52:54:00:00:00:01"), mac(t, "52:54:00:00:00:09")
	for _, tt := range []struct{ link, node, unknown, subnet string }{
		{"10.0.0.1", "m1", "first", "10.0.0.0/24"},
		{"10.99.0.1", "m1", "first", "10.0.0.0/24"},
		{"10.0.1.1", "", "second", "10.0.1.0/24"},
		{"10.99.0.2", "", "second", "10.0.1.0/24"},
		{"10.0.1.5", "", "second", "10.0.1.0/24"},
		{"10.99.0.3", "m1", "", ""}, // W7: it got an address of a range that it cannot use
	} {
		link := netip.MustParseAddr(tt.link)
		s, ok := f.SubnetOfLink(link)
		if ok != (tt.subnet != "") || ok && s.CIDR.String() != tt.subnet {
			t.Errorf("subnet of %s: got %v, %t; want %q", link, s.CIDR, ok, tt.subnet)
		}
		q := resolve.Query{MAC: node, Link: link, Relayed: true}
		p := f.Resolve(q)
		if (p != nil) != (tt.node != "") {
			t.Errorf("node by %s: got a plan %t, want %q", link, p != nil, tt.node)
		}
		if p == nil && !strings.Contains(f.WhyNot(q), tt.subnet) {
			t.Errorf("node by %s: the reason is %q, want one with %s", link, f.WhyNot(q), tt.subnet)
		}
		q.MAC = unknown
		if p := f.Resolve(q); tt.unknown == "" && p != nil || tt.unknown != "" && (p == nil || p.Pool != tt.unknown) {
			t.Errorf("unknown machine by %s: got %+v, want pool %q", link, p, tt.unknown)
		}
		if why := f.WhyNot(q); tt.unknown == "" && !strings.Contains(why, "the network of 10.99.0.3 is in no subnet") {
			t.Errorf("unknown machine by %s: the reason is %q", link, why)
		}
		// A host on the server's wire has no relay agent, and the server's own address
		// may be in no subnet.
		if p := f.Resolve(resolve.Query{MAC: unknown, Link: link}); p == nil {
			t.Errorf("unknown machine without a relay agent: got no plan")
		}
	}
}
