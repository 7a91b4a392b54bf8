package explain

import (
	"net/netip"
	"testing"
	"time"

	"drover/dhcp"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
)

// The stand-in offers no address that is leased to another machine or in quarantine.
func TestStandIn(t *testing.T) {
	farm, err := config.Load("testdata/farm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	addr := func(last byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 28, 72, last}) }
	own, other, third := pools.MAC{2, 1}, pools.MAC{2, 2}, pools.MAC{2, 3}
	leases := []pools.LeaseInfo{
		{Lease: pools.Lease{Address: addr(10), MAC: other, Expires: now.Add(time.Hour)}},
		{Lease: pools.Lease{Address: addr(11), MAC: other, Expires: now.Add(time.Hour), Declined: "x"}},
		{Lease: pools.Lease{Address: addr(12), MAC: third, Expires: now.Add(time.Hour), Released: true}},
		{Lease: pools.Lease{Address: addr(50), MAC: own, Expires: now.Add(-time.Hour)}},
	}
	tests := []struct {
		name    string
		mac     pools.MAC
		want    netip.Addr // requested
		got     netip.Addr
		guessed bool
	}{
		{"its expired one", own, addr(12), addr(50), false},
		{"the first free one", third, netip.Addr{}, addr(12), true},
		{"the one asked for", third, addr(99), addr(99), true},
		{"not one of another", third, addr(10), addr(12), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStandIn(farm, leases, false, now)
			p := farm.Resolve(resolve.Query{MAC: tt.mac})
			got, _, err := s.Offer(p, tt.want, now)
			if err != nil || got != tt.got || s.guessed != tt.guessed {
				t.Errorf("got %s, guessed %t, %v; want %s, guessed %t", got, s.guessed, err, tt.got, tt.guessed)
			}
		})
	}
	var _ dhcp.Leases = newStandIn(farm, nil, false, now)
}

// A node waits for its address while another machine leases it, as on a running server.
func TestAddressOfALease(t *testing.T) {
	farm, err := config.Load("testdata/farm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	now, own := time.Now(), farm.Nodes()[0].MACs[0]
	for name, tt := range map[string]struct {
		mac   pools.MAC
		left  time.Duration
		waits bool
	}{
		"of another":            {pools.MAC{2, 2}, time.Hour, true},
		"of another, has ended": {pools.MAC{2, 2}, -time.Hour, false},
		"its own":               {own, time.Hour, false},
	} {
		lease := pools.Lease{Address: netip.MustParseAddr("10.28.0.10"), MAC: tt.mac, Expires: now.Add(tt.left)}
		f := liveFarm{farm, newStandIn(farm, []pools.LeaseInfo{{Lease: lease}}, false, now), now, nil}
		if p := f.Resolve(resolve.Query{MAC: own}); p == nil || p.Node != "m1" || (p.Holder != nil) != tt.waits {
			t.Errorf("%s: got plan %+v, want that it waits: %t", name, p, tt.waits)
		}
	}
}
