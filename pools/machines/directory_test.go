package machines_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/machines"
	"drover/pools/resolve"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func mac(n byte) pools.MAC { return pools.MAC{0x52, 0x54, 5: n} }

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// farm has the node m1 with two cards, port7, which is identified by a switch port,
// gone, which is ignored, and bare, which has no address of its own. Unknown hardware
// belongs to the pool lobby or arm.
var farm = resolve.NewFarm(resolve.Checked{
	Config: pools.Config{
		Subnets: []pools.Subnet{{CIDR: netip.MustParsePrefix("10.0.0.0/16")}},
		Pools: []pools.Pool{
			{Name: "compute", Cluster: "tenant-a", Image: "debian-12", Nodes: []pools.Node{
				{Name: "m1", MACs: []pools.MAC{mac(1), mac(2)}, IP: addr("10.0.1.1")},
				{Name: "port7", Match: pools.Match{CircuitID: "ge-0/0/7"}, IP: addr("10.0.1.7")},
				{Name: "gone", MACs: []pools.MAC{mac(3)}, IP: addr("10.0.1.3"), Ignore: true},
				{Name: "bare", MACs: []pools.MAC{mac(4)}},
			}},
			{Name: "lobby", CatchAll: true, Image: "debian-12"},
			{Name: "arm", CatchAll: true, Image: "debian-12-arm64"},
		},
	},
})

// live returns the farm in force.
type live struct{ farm *resolve.Farm }

func (l live) Farm() *resolve.Farm { return l.farm }

// leaseTable is a lease table that counts its calls.
type leaseTable struct {
	all   []pools.Lease
	asked int
}

func (t *leaseTable) find(used bool, is func(pools.Lease) bool) (pools.Lease, bool) {
	t.asked++
	i := slices.IndexFunc(t.all, func(l pools.Lease) bool { return is(l) && (!used || !l.Released) })
	if i < 0 {
		return pools.Lease{}, false
	}
	return t.all[i], true
}

func (t *leaseTable) Of(m pools.MAC) (pools.Lease, bool) {
	return t.find(true, func(l pools.Lease) bool { return l.MAC == m })
}

func (t *leaseTable) At(a netip.Addr) (pools.Lease, bool) {
	return t.find(true, func(l pools.Lease) bool { return l.Address == a })
}

func (t *leaseTable) Named(node string) (pools.Lease, bool) {
	return t.find(false, func(l pools.Lease) bool { return l.Node == node })
}

type bootTable map[pools.MAC]boots.Record

func (t bootTable) Current(m pools.MAC) (boots.Record, bool) { r, ok := t[m]; return r, ok }

type nextTable map[string]pools.NextBoot

func (t nextTable) Of(node string) pools.NextBoot { return t[node] }

type unknownList []pools.Unknown

func (l unknownList) List() []pools.Unknown { return slices.Clone(l) }

func (l unknownList) Hardware(m pools.MAC) *pools.Inventory {
	if i := slices.IndexFunc(l, func(u pools.Unknown) bool { return u.MAC == m }); i >= 0 {
		return l[i].Inventory
	}
	return nil
}

// newDirectory returns a directory in which port7 is mac(7), and mac(9) is unknown
// hardware of the pool arm.
func newDirectory() (*machines.Directory, *leaseTable) {
	leases := &leaseTable{all: []pools.Lease{
		{MAC: mac(7), Address: addr("10.0.1.7"), Node: "port7", Pool: "compute"},
		{MAC: mac(9), Address: addr("10.0.2.9"), Node: "node-525400000009", Pool: "arm"},
	}}
	return &machines.Directory{
		Farm: live{farm}, Leases: leases, NextBoots: nextTable{},
		Boots: bootTable{
			mac(1): {ID: "20261120T100000.000000-525400000001", MAC: mac(1), Started: noon.Add(-2 * time.Hour)},
			mac(2): {ID: "20261120T105959.000000-525400000002", MAC: mac(2), Started: noon.Add(-time.Hour - time.Second)},
			mac(7): {ID: "20261120T110001.000000-525400000007", MAC: mac(7), Started: noon.Add(-time.Hour + time.Second)},
		},
		Now: func() time.Time { return noon },
	}, leases
}

// describe returns a plan as "node in pool".
func describe(p *resolve.Plan) string {
	if p == nil {
		return "none"
	}
	return p.Node + " in " + p.Pool
}

// checkCalls fails the test unless the lease table had that many calls since the last
// check.
func checkCalls(t *testing.T, leases *leaseTable, want int) {
	t.Helper()
	if leases.asked != want {
		t.Errorf("the lease table had %d calls, want %d", leases.asked, want)
	}
}

func TestResolve(t *testing.T) {
	link := addr("10.0.0.1")
	for _, tt := range []struct {
		name  string
		q     resolve.Query
		want  string
		asked int
	}{
		{"a declared MAC needs no lease", resolve.Query{MAC: mac(2)}, "m1 in compute", 0},
		{"DHCP knows the port", resolve.Query{MAC: mac(7), Link: link, CircuitID: "ge-0/0/7"}, "port7 in compute", 0},
		{"HTTP does not", resolve.Query{MAC: mac(7)}, "port7 in compute", 1},
		{"nor does a renewal past the relay agent", resolve.Query{MAC: mac(7), Link: link, Renewing: true}, "port7 in compute", 1},
		{"a machine that boots at another port is another one", resolve.Query{MAC: mac(7), Link: link}, "node-525400000007 in lobby", 0},
		{"unknown hardware is where DHCP found it", resolve.Query{MAC: mac(9)}, "node-525400000009 in arm", 1},
		{"new hardware", resolve.Query{MAC: mac(10), Link: link}, "node-52540000000a in lobby", 0},
		{"an ignored node", resolve.Query{MAC: mac(3)}, "none", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, leases := newDirectory()
			p := d.Resolve(tt.q)
			if describe(p) != tt.want {
				t.Errorf("got %s, want %s", describe(p), tt.want)
			}
			checkCalls(t, leases, tt.asked)
			if why := d.WhyNot(tt.q); (why == "") != (p != nil) {
				t.Errorf("plan %s, and the reason for none is %q", describe(p), why)
			}
		})
	}
}

func TestOfAndAt(t *testing.T) {
	for _, tt := range []struct {
		name  string
		mac   pools.MAC
		at    string
		want  string // the machine at the address of Of
		own   pools.MAC
		asked int // by each
	}{
		{"the card of m1 that booted last", mac(2), "10.0.1.1", "m1 in compute", mac(2), 0},
		{"the other card has the same address", mac(1), "10.0.1.1", "m1 in compute", mac(2), 0},
		{"by lease", mac(7), "10.0.1.7", "port7 in compute", mac(7), 1},
		{"unknown hardware", mac(9), "10.0.2.9", "node-525400000009 in arm", mac(9), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, leases := newDirectory()
			m := d.Of(tt.mac)
			if m.Address.String() != tt.at || m.MAC != tt.mac || describe(m.Plan) != tt.want {
				t.Errorf("Of: got %s at %s, want %s at %s", describe(m.Plan), m.Address, tt.want, tt.at)
			}
			checkCalls(t, leases, tt.asked)
			leases.asked = 0
			if m, ok := d.At(addr(tt.at)); !ok || m.MAC != tt.own || describe(m.Plan) != tt.want || m.Address != addr(tt.at) {
				t.Errorf("At: got %s (%s) at %s, want %s (%s)", describe(m.Plan), m.MAC, m.Address, tt.want, tt.own)
			}
			checkCalls(t, leases, tt.asked)
		})
	}
	d, leases := newDirectory()
	if m := d.Of(mac(3)); m.Plan != nil || m.Address.IsValid() {
		t.Errorf("an ignored node: got %s at %s", describe(m.Plan), m.Address)
	}
	if m := d.Of(mac(4)); describe(m.Plan) != "bare in compute" || m.Address.IsValid() {
		t.Errorf("a node without an address: got %s at %s", describe(m.Plan), m.Address)
	}
	if m, ok := d.At(addr("10.0.9.9")); ok {
		t.Errorf("an unused address: got %s", describe(m.Plan))
	}
	leases.all[1].Released = true
	if m, ok := d.At(addr("10.0.2.9")); ok || d.Of(mac(9)).Address.IsValid() {
		t.Errorf("after a release: got %s", describe(m.Plan))
	}
	d.Boots = bootTable{}
	if m, ok := d.At(addr("10.0.1.1")); !ok || m.MAC != mac(1) {
		t.Errorf("no card of m1 has booted: got %s, want its first", m.MAC)
	}
}

func TestOwns(t *testing.T) {
	d, _ := newDirectory()
	for _, tt := range []struct {
		addr       string
		mac        pools.MAC
		owned, own bool
	}{
		{"10.0.1.1", mac(1), true, true},
		{"10.0.1.1", mac(2), true, true},
		{"10.0.1.1", mac(9), true, false},
		{"10.0.1.7", mac(7), true, true},
		{"10.0.1.7", mac(9), true, false},
		{"10.0.2.9", mac(9), true, true},
		{"10.0.2.9", mac(1), true, false},
		{"10.0.9.9", mac(1), false, false},
	} {
		if owned, own := d.Owns(addr(tt.addr), tt.mac); owned != tt.owned || own != tt.own {
			t.Errorf("%s of %s: got owned %t, own %t; want %t, %t", tt.addr, tt.mac, owned, own, tt.owned, tt.own)
		}
	}
}

func TestNamed(t *testing.T) {
	for _, tt := range []struct {
		node, want string
		asked      int
	}{
		{"m1", "m1 in compute", 0},
		{"port7", "port7 in compute", 1},
		{"node-525400000009", "node-525400000009 in arm", 1},
		{"node-52540000000a", "node-52540000000a in lobby", 1},
		{"node-525400000001", "m1 in compute", 1}, // a node declares its MAC now
		{"gone", "none", 0},
		{"525400000009", "none", 0},
		{"node-x", "none", 0},
		{"", "none", 0},
	} {
		t.Run(tt.node, func(t *testing.T) {
			d, leases := newDirectory()
			if got := describe(d.Named(tt.node)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			checkCalls(t, leases, tt.asked)
		})
	}
	t.Run("no machine has been at the port", func(t *testing.T) {
		d, leases := newDirectory()
		leases.all = nil
		if got := d.Named("port7"); got != nil {
			t.Errorf("got %s", describe(got))
		}
	})
	t.Run("the machine at the port is another node now", func(t *testing.T) {
		d, leases := newDirectory()
		leases.all[0].MAC = mac(1)
		if p := d.Named("port7"); p != nil {
			t.Errorf("got %s", describe(p))
		}
	})
	t.Run("its machine released the address", func(t *testing.T) {
		d, leases := newDirectory()
		leases.all[0].Released = true
		if got := describe(d.Named("port7")); got != "port7 in compute" {
			t.Errorf("got %s", got)
		}
	})
}

func TestBooting(t *testing.T) {
	d, _ := newDirectory()
	for _, tt := range []struct {
		node    string
		from    pools.MAC // zero: no boot is known
		booting bool
	}{
		{"m1", mac(2), false},
		{"port7", mac(7), true},
		{"node-525400000007", mac(7), true}, // by the MAC in its name
		{"bare", pools.MAC{}, false},
		{"node-525400000009", pools.MAC{}, false},
		{"m9", pools.MAC{}, false},
	} {
		r, ok := d.LastBoot(tt.node)
		if r.MAC != tt.from || ok == tt.from.IsZero() {
			t.Errorf("last boot of %s: got %s, %t; want %s", tt.node, r.MAC, ok, tt.from)
		}
		if got := d.Booting(tt.node); got != tt.booting {
			t.Errorf("%s is booting: got %t, want %t", tt.node, got, tt.booting)
		}
	}
}

// TestLastBootAfterTheClockWasSet: the newest boot of a node is the one that began last, by
// whatever clock.
func TestLastBootAfterTheClockWasSet(t *testing.T) {
	d, _ := newDirectory()
	d.Boots = bootTable{
		mac(1): {ID: "20261120T120000.000000-525400000001", MAC: mac(1), Started: noon},
		mac(2): {ID: "20261120T120000.000001-525400000002", MAC: mac(2), Started: noon.Add(-time.Hour)},
	}
	if r, ok := d.LastBoot("m1"); !ok || r.MAC != mac(2) {
		t.Errorf("got the boot of %s, want that of %s", r.MAC, mac(2))
	}
}

func TestNextBoot(t *testing.T) {
	d, _ := newDirectory()
	next := nextTable{"m1": "image=rescue-system", "port7": pools.NextLocal}
	d.NextBoots = next
	p := d.Resolve(resolve.Query{MAC: mac(1)})
	if p.NextBoot != "image=rescue-system" || p.Image != "rescue-system" {
		t.Errorf("got next boot %q, image %q", p.NextBoot, p.Image)
	}
	if why := p.Why(); why["image"].Path != "API, for one boot" || why["nextBoot"].Path != "API, for one boot" {
		t.Errorf("got %v and %v", why["image"], why["nextBoot"])
	}
	if m, _ := d.At(addr("10.0.1.7")); m.Plan.NextBoot != pools.NextLocal || m.Plan.Image != "debian-12" {
		t.Errorf("got next boot %q, image %q", m.Plan.NextBoot, m.Plan.Image)
	}
	clear(next)
	if p := d.Of(mac(1)).Plan; p.NextBoot != "" || p.Image != "debian-12" {
		t.Errorf("after it: got next boot %q, image %q", p.NextBoot, p.Image)
	}
}

func TestUnknown(t *testing.T) {
	d, _ := newDirectory()
	if got := d.Unknown(); got != nil {
		t.Errorf("without a list: got %v", got)
	}
	d.Unknowns = unknownList{{MAC: mac(9)}, {MAC: mac(1)}, {MAC: mac(10)}, {MAC: mac(3)}}
	if got := d.Unknown(); len(got) != 2 || got[0].MAC != mac(9) || got[1].MAC != mac(10) {
		t.Errorf("got %v, want the two that no node declares", got)
	}
}

// Clients of HTTP and TFTP are identified by their address alone.
func ExampleDirectory() {
	d, _ := newDirectory()
	m, ok := d.At(addr("10.0.2.9"))
	fmt.Println(ok, m.MAC, m.Plan.Node, m.Plan.Image)
	fmt.Println(d.Of(mac(1)).Address)
	fmt.Println(d.Named("port7").MAC)
	// Output:
	// true 52:54:00:00:00:09 node-525400000009 debian-12-arm64
	// 10.0.1.1
	// 52:54:00:00:00:07
}
