package dhcp6d_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/dhcp"
	"drover/dhcp/dhcp6"
	"drover/dhcp/dhcp6d"
	"drover/e2e/fixture"
	"drover/e2e/netns"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
)

const farmConfig = `server: {interfaces: [srv], address: 10.28.0.2}
subnets:
  - {cidr: 10.28.0.0/16}
  - {cidr: "fd00:28::/64", dns: ["fd00:28::53"], domain: example.org}
  - {cidr: "fd00:29::/64"}
pools:
  - name: web
    image: debian-12
    nodes:
      - {name: m1, macs: ["52:54:00:99:00:01"], ip6: "fd00:28::10"}
      - {name: m3, macs: ["52:54:00:99:00:03"], ip6: "fd00:29::10"}
  - {name: rest, catchall: true, image: debian-12, range6: "fd00:28::100-fd00:28::1ff"}
`

const (
	m1    = "52:54:00:99:00:01"
	m3    = "52:54:00:99:00:03"
	stray = "52:54:00:99:00:77"
)

// rack is a server and hosts at its bridge, in namespaces.
type rack struct {
	*testing.T
	net   netns.Namespace // the server's; its interface is srv
	farm  *resolve.Farm
	table *table
	lease time.Duration // of all plans; 0: as configured
	log   fixture.Log

	mu   sync.Mutex
	seen []dhcp.Exchange
}

func newRack(t *testing.T, name string, programs ...string) *rack {
	t.Helper()
	netns.Need(t, programs...)
	farm, err := config.Parse("drover.yaml", []byte(farmConfig))
	if err != nil {
		t.Fatal(err)
	}
	r := &rack{T: t, farm: farm, table: &table{byMAC: map[pools.MAC]netip.Addr{}}}
	r.net = netns.NewNamespace(t, fmt.Sprintf("drv6%s%d", name, os.Getpid()))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the server said:\n%s", r.log.String())
		}
	})
	return r
}

// bridge makes the server's interface.
func (r *rack) bridge() {
	r.Helper()
	r.net.IP(r, "link", "add", "srv", "address", "02:00:00:00:00:02", "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
	r.net.IP(r, "addr", "add", "fd00:28::2/64", "dev", "srv", "nodad")
	r.net.IP(r, "link", "set", "srv", "addrgenmode", "eui64", "up")
}

// host returns a namespace whose interface cli, with this MAC, is a port of the bridge.
func (r *rack) host(name, mac string) netns.Namespace {
	r.Helper()
	n := netns.NewNamespace(r, string(r.net)+name)
	r.net.Link(r, name, n, "cli")
	r.net.IP(r, "link", "set", name, "master", "srv", "up")
	n.IP(r, "link", "set", "cli", "address", mac, "up")
	r.linkLocal(n, "cli")
	return n
}

// linkLocal waits until an interface can use its link-local address (RFC 4862, section 5.4).
func (r *rack) linkLocal(n netns.Namespace, device string) {
	r.Helper()
	fixture.Eventually(r, "link-local address of "+device, func() bool {
		out, err := n.Command("ip", "-6", "addr", "show", "dev", device, "scope", "link").CombinedOutput()
		return err == nil && strings.Contains(string(out), "fe80::") && !strings.Contains(string(out), "tentative")
	})
}

// serve runs a server with this DUID until stop is called, or the test ends.
func (r *rack) serve(duid byte) (stop func()) { return r.serveTo(duid, r.saw) }

// serveTo does the same, with a function that gets the exchanges.
func (r *rack) serveTo(duid byte, report func(dhcp.Exchange)) (stop func()) {
	r.Helper()
	s := &dhcp6d.Server{
		Responder: dhcp6.Responder{Farm: r, Leases: r.table, DUID: dhcp6.NewDUID(pools.MAC{2, duid})},
		Interface: "srv", Machines: r, Networks: r, Log: slog.New(slog.NewTextHandler(&r.log, nil)), OnExchange: report,
	}
	r.net.In(r, s.Listen)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.net.Do(func() error { return s.Serve(ctx) }) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			r.Errorf("Serve: %v", err)
		}
	})
	r.Cleanup(stop)
	return stop
}

func (r *rack) saw(x dhcp.Exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, x)
}

// expect waits for exchanges of a machine that follow one another, such as "REQUEST REPLY".
// Others between them do not count.
func (r *rack) expect(mac string, want ...string) {
	r.Helper()
	var got []string
	defer func() {
		if r.Failed() {
			r.Logf("got %q of %s", got, mac)
		}
	}()
	fixture.Eventually(r, fmt.Sprintf("%q of %s", want, mac), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		got = nil
		for _, x := range r.seen {
			if x.MAC.String() == mac {
				got = append(got, strings.TrimSpace(x.Type+" "+x.Reply))
			}
		}
		rest := got
		for _, w := range want {
			at := slices.Index(rest, w)
			if at < 0 {
				return false
			}
			rest = rest[at+1:]
		}
		r.seen = nil
		return true
	})
}

// first waits for one of some exchanges of a machine, and returns which came first. Those up to it do not
// count any more.
func (r *rack) first(mac string, wants ...string) (got string) {
	r.Helper()
	fixture.Eventually(r, fmt.Sprintf("one of %q of %s", wants, mac), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for i, x := range r.seen {
			if got = strings.TrimSpace(x.Type + " " + x.Reply); x.MAC.String() == mac && slices.Contains(wants, got) {
				r.seen = r.seen[i+1:]
				return true
			}
		}
		return false
	})
	return got
}

// Resolve returns the plan of a machine, with the lease time of the rack.
func (r *rack) Resolve(q resolve.Query) *resolve.Plan {
	p := r.farm.Resolve(q)
	if p != nil && r.lease > 0 {
		p.Lease = pools.Duration(r.lease)
	}
	return p
}

func (r *rack) WhyNot(q resolve.Query) string { return r.farm.WhyNot(q) }
func (r *rack) Declares(m pools.MAC) bool     { return r.farm.Declares(m) }
func (r *rack) Routers() []netip.Addr         { return nil }
func (r *rack) Leased(m pools.MAC) []netip.Addr {
	if a, ok := r.table.Holds(m, time.Time{}); ok {
		return []netip.Addr{a}
	}
	return nil
}
func (r *rack) InSubnet(a netip.Addr) bool      { return r.farm.Config.SubnetOf(a) >= 0 }
func (r *rack) InRange(a netip.Addr) bool       { return r.farm.InRange(a) }
func (r *rack) ListsRelay(netip.Addr) bool      { return false }
func (r *rack) OneNetwork(_, _ netip.Addr) bool { return false }
func (r *rack) Owns(a netip.Addr, m pools.MAC) (owned, own bool) {
	n, owned := r.farm.NodeAt(a)
	return owned, owned && slices.Contains(n.MACs, m)
}

// table is a lease table in memory.
type table struct {
	dhcp.NoLeases
	mu    sync.Mutex
	byMAC map[pools.MAC]netip.Addr
}

func (l *table) Offer(p *resolve.Plan, _ netip.Addr, _ time.Time) (netip.Addr, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a, ok := l.byMAC[p.MAC]; ok {
		return a, false, nil
	}
	a := p.Range.First
	for range len(l.byMAC) {
		a = a.Next()
	}
	return a, true, nil
}

func (l *table) Commit(p *resolve.Plan, a netip.Addr, _ time.Time) (func() error, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byMAC[p.MAC] = a
	return func() error { return nil }, nil
}

func (l *table) Holds(m pools.MAC, _ time.Time) (netip.Addr, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, ok := l.byMAC[m]
	return a, ok
}

func (l *table) Release(p *resolve.Plan, a netip.Addr, _ time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byMAC[p.MAC] == a {
		delete(l.byMAC, p.MAC)
	}
	return true
}
