package main

import (
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"drover/dhcp"
	"drover/pools"
)

// What DHCP did is measured, and machines that no node declares are kept.
func TestExchangeIsTold(t *testing.T) {
	s := liveServer(t, "full")
	for _, mac := range []string{"52:54:00:77:01:01", "52:54:00:77:01:04", "52:54:00:77:01:04"} { // m1, and a stranger twice
		request, err := (&asker{arch: "bios"}).request([]string{mac})
		if err != nil {
			t.Fatal(err)
		}
		_, x := s.dhcp[0].ReplyTo(request, time.Now())
		x.Took = time.Millisecond
		s.exchange(x)
		if x.Type, x.Reply, x.Decision = "REQUEST", "ACK", dhcp.Acknowledged; x.Plan.CatchAll {
			wait, err := s.store.Leases.Commit(x.Plan, x.Address, time.Now())
			if err != nil || wait() != nil {
				t.Fatal("no lease", err)
			}
		}
		s.exchange(x)
	}
	_, x := s.dhcp[0].ReplyTo([]byte("rubbish"), time.Now())
	s.exchange(x)
	// Nobody looked who this is, so that it is not unknown.
	s.exchange(dhcp.Exchange{Type: "DISCOVER", MAC: pools.MAC{2, 9}, Decision: dhcp.TooOften})
	// These are declared: m1 asks where it does not belong, m4 is to be ignored.
	for _, a := range []struct{ mac, relay string }{{"52:54:00:77:01:01", "10.29.0.1"}, {"52:54:00:77:01:09", ""}} {
		request, err := (&asker{arch: "bios", relay: a.relay}).request([]string{a.mac})
		if err != nil {
			t.Fatal(err)
		}
		if _, x = s.dhcp[0].ReplyTo(request, time.Now()); x.Decision != dhcp.NotOurs {
			t.Errorf("%s: got %s", a.mac, x.Decision)
		}
		s.exchange(x)
	}

	w := httptest.NewRecorder()
	s.metrics.handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`drover_dhcp_packets_total{decision="offered",type="DISCOVER"} 3`,
		`drover_dhcp_packets_total{decision="acknowledged",type="REQUEST"} 3`,
		`drover_dhcp_packets_total{decision="dropped: malformed",type=""} 1`,
		`drover_dhcp_packets_total{decision="ignored: not ours",type="DISCOVER"} 2`,
		`drover_dhcp_seconds_count 10`,
		`drover_dhcp_seconds_bucket{le="0.0016"} 10`,
		`drover_leases_active{pool="rest"} 1`,
		`drover_unknown_machines 1`,
		`drover_dhcp_queue_depth{interface="lo"} 0`,
		`drover_dhcp_kernel_drops_total{interface="lo"} 0`,
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("want %s in\n%s", want, w.Body)
		}
	}

	all := s.unknowns.List()
	if len(all) != 1 || all[0].Count != 2 || all[0].Pool != "rest" || all[0].Firmware != pools.BIOS || !all[0].Address.IsValid() {
		t.Errorf("got %+v", all)
	}
	if b, ok := s.store.Boots.Current(pools.MAC{0x52, 0x54, 0, 0x77, 1, 1}); !ok || b.Node != "m1" {
		t.Errorf("got %+v, %t: a DISCOVER begins no boot", b, ok)
	}
}

// Counting a packet costs no memory.
func TestCountingIsCheap(t *testing.T) {
	s := liveServer(t, "full")
	x := dhcp.Exchange{Type: "REQUEST", Decision: dhcp.Acknowledged}
	if n := testing.AllocsPerRun(100, func() { s.metrics.exchange(x) }); n != 0 {
		t.Errorf("got %v allocations for each packet", n)
	}
}

// An address is its node's, whichever of its cards asks; one of a range belongs
// to who leased it.
func TestOwner(t *testing.T) {
	s := liveServer(t, "full")
	stranger, leased := pools.MAC{0x52, 0x54, 0, 0x77, 1, 9}, netip.MustParseAddr("10.28.72.99")
	plan := &pools.Plan{Node: "node-525400770109", Pool: "rest", MAC: stranger, Lease: pools.Duration(time.Hour)}
	wait, err := s.store.Leases.Commit(plan, leased, time.Now())
	if err != nil || wait() != nil {
		t.Fatal("no lease", err)
	}
	m1 := pools.MAC{0x52, 0x54, 0, 0x77, 1, 1}
	for _, tt := range []struct {
		address    string
		mac        pools.MAC
		owned, own bool
	}{
		{"10.28.0.10", m1, true, true},
		{"10.28.0.10", stranger, true, false},
		{"10.28.72.99", stranger, true, true},
		{"10.28.72.99", m1, true, false},
		{"10.28.0.200", m1, false, false},
	} {
		if owned, own := s.addresses.owner(netip.MustParseAddr(tt.address), tt.mac); owned != tt.owned || own != tt.own {
			t.Errorf("%s of %s: got owned %v, own %v; want %v, %v", tt.address, tt.mac, owned, own, tt.owned, tt.own)
		}
	}
}
