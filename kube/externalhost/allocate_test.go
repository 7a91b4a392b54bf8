package externalhost_test

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"drover/kube/externalhost"
)

// controllerManager allocates networks to nodes as kube-controller-manager does
// (pkg/controller/nodeipam/ipam/cidrset): a network of a Node occupies all networks of a
// node's size that it overlaps, however small it is, and frees them all when its Node goes.
type controllerManager struct {
	cluster netip.Prefix
	mask    int
	used    map[int]bool
	next    int
}

func (m *controllerManager) at(i int) netip.Prefix {
	a := m.cluster.Addr().As4()
	n := uint32(a[0])<<24 | uint32(a[1])<<16 | uint32(a[2])<<8 | uint32(a[3])
	n += uint32(i) << (32 - m.mask)
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}), m.mask)
}

func (m *controllerManager) size() int { return 1 << (m.mask - m.cluster.Bits()) }

func (m *controllerManager) mark(p netip.Prefix, used bool) {
	for i := range m.size() {
		if m.at(i).Overlaps(p) {
			m.used[i] = used
		}
	}
}

func (m *controllerManager) allocate() (netip.Prefix, bool) {
	for range m.size() {
		i := m.next
		m.next = (m.next + 1) % m.size()
		if !m.used[i] {
			m.used[i] = true
			return m.at(i), true
		}
	}
	return netip.Prefix{}, false
}

// TestNetworksApart adds and removes nodes and hosts at random: no two of them ever have
// networks that overlap, and hosts fill the whole range.
func TestNetworksApart(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 17))
		cluster := netip.MustParsePrefix("10.244.0.0/18")
		mask := 22 + r.IntN(5)
		within := netip.PrefixFrom(netip.MustParseAddr("10.244.48.0"), 20+r.IntN(min(3, mask-20+1)))
		m := &controllerManager{cluster: cluster, mask: mask, used: map[int]bool{}}
		m.mark(within, true) // the Node of the range
		var nodes, hosts []netip.Prefix
		apart := func(p netip.Prefix) {
			for _, o := range slices.Concat(nodes, hosts) {
				if p.Overlaps(o) {
					t.Fatalf("seed %d: %s overlaps %s", seed, p, o)
				}
			}
		}
		remove := func(from []netip.Prefix) ([]netip.Prefix, netip.Prefix) {
			i := r.IntN(len(from))
			gone := from[i]
			return slices.Delete(from, i, i+1), gone
		}
		for range 400 {
			switch what := r.IntN(10); {
			case what < 4:
				if p, ok := m.allocate(); ok {
					apart(p)
					nodes = append(nodes, p)
				}
			case what < 8:
				size := mask + r.IntN(31-mask)
				p, ok := externalhost.Allocate(within, size, hosts)
				if !ok {
					continue
				}
				if p.Bits() != size || p != p.Masked() || !within.Contains(p.Addr()) {
					t.Fatalf("seed %d: a /%d of %s is %s", seed, size, within, p)
				}
				apart(p)
				hosts = append(hosts, p)
				m.mark(p, true)
			case what == 8 && len(nodes) > 0:
				var gone netip.Prefix
				nodes, gone = remove(nodes)
				m.mark(gone, false)
			case what == 9 && len(hosts) > 0:
				var gone netip.Prefix
				hosts, gone = remove(hosts)
				m.mark(gone, false)  // with all hosts beside it
				m.mark(within, true) // Hosts.Remove shows it the Node of the range again
			}
		}
	}
}

func TestAllocate(t *testing.T) {
	within := netip.MustParsePrefix("10.244.255.0/24")
	var used []netip.Prefix
	for range 16 {
		p, ok := externalhost.Allocate(within, 28, used)
		if !ok || slices.ContainsFunc(used, p.Overlaps) {
			t.Fatalf("after %v: %s, %v", used, p, ok)
		}
		used = append(used, p)
	}
	if p, ok := externalhost.Allocate(within, 28, used); ok {
		t.Errorf("a full range has %s", p)
	}
	tests := []struct {
		name, within string
		size         int
		used         []string
		want         string
	}{
		{"the first that is free", "10.0.0.0/24", 28, []string{"10.0.0.0/28", "10.0.0.32/28"}, "10.0.0.16/28"},
		{"behind a larger one", "10.0.0.0/24", 28, []string{"10.0.0.0/25"}, "10.0.0.128/28"},
		{"around a smaller one", "10.0.0.0/24", 26, []string{"10.0.0.4/30"}, "10.0.0.64/26"},
		{"a node has all", "10.0.0.0/24", 28, []string{"10.0.0.0/16"}, ""},
		{"the end of IPv4", "255.255.255.0/24", 25, []string{"255.255.255.0/25"}, "255.255.255.128/25"},
		{"and behind it", "255.255.255.0/24", 25, []string{"255.255.255.0/24"}, ""},
		{"larger than the range", "10.0.0.0/24", 23, nil, ""},
		{"IPv6", "fd00::/64", 80, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var used []netip.Prefix
			for _, s := range tt.used {
				used = append(used, netip.MustParsePrefix(s))
			}
			p, ok := externalhost.Allocate(netip.MustParsePrefix(tt.within), tt.size, used)
			if got := p.String(); ok != (tt.want != "") || ok && got != tt.want {
				t.Errorf("got %s, %v; want %q", got, ok, tt.want)
			}
		})
	}
}
