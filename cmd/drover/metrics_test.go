package main

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"drover/cmd/drover/explain"
	"drover/dhcp"
	"drover/pools"
)

// The results of DHCP packets are counted, and unknown machines are recorded.
func TestExchange(t *testing.T) {
	s := liveServer(t, "full")
	for _, mac := range []string{"52:54:00:77:01:01", "52:54:00:77:01:04", "52:54:00:77:01:04"} { // m1, and an unknown machine twice
		request, err := (&explain.Client{Arch: "bios"}).Request([]string{mac})
		if err != nil {
			t.Fatal(err)
		}
		_, x := s.DHCP[0].ReplyTo(request, time.Now())
		x.Took = time.Millisecond
		s.DHCP[0].OnExchange(x)
		if x.Type, x.Reply, x.Decision = "REQUEST", "ACK", dhcp.Acknowledged; x.Plan.CatchAll {
			wait, err := s.Store.Leases.Commit(x.Plan, x.Address, time.Now())
			if err != nil || wait() != nil {
				t.Fatal("no lease", err)
			}
		}
		s.DHCP[0].OnExchange(x)
	}
	_, x := s.DHCP[0].ReplyTo([]byte("rubbish"), time.Now())
	s.DHCP[0].OnExchange(x)
	// This packet was dropped before the look-up of its machine, which may be a node.
	s.DHCP[0].OnExchange(dhcp.Exchange{Type: "DISCOVER", MAC: pools.MAC{2, 9}, Decision: dhcp.TooOften})
	// Declared nodes are not unknown: m1 asks on the wrong network, m4 is ignored.
	for _, a := range []struct{ mac, relay string }{{"52:54:00:77:01:01", "10.29.0.1"}, {"52:54:00:77:01:09", ""}} {
		request, err := (&explain.Client{Arch: "bios", Relay: a.relay}).Request([]string{a.mac})
		if err != nil {
			t.Fatal(err)
		}
		if _, x = s.DHCP[0].ReplyTo(request, time.Now()); x.Decision != dhcp.NotOurs {
			t.Errorf("%s: got %s", a.mac, x.Decision)
		}
		s.DHCP[0].OnExchange(x)
	}

	w := httptest.NewRecorder()
	s.Web.Metrics.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`drover_dhcp_packets_total{decision="offered",type="DISCOVER"} 3`,
		`drover_dhcp_packets_total{decision="acknowledged",type="REQUEST"} 3`,
		`drover_dhcp_packets_total{decision="dropped: malformed",type=""} 1`,
		`drover_dhcp_packets_total{decision="ignored: not ours",type="DISCOVER"} 2`,
		`drover_dhcp_seconds_count 6`,
		`drover_dhcp_seconds_bucket{le="0.0016"} 6`,
		`drover_leases_active{family="ipv4",pool="rest"} 1`,
		`drover_unknown_machines 1`,
		`drover_dhcp_queue_depth{interface="lo"} 0`,
		`drover_dhcp_kernel_drops_total{interface="lo"} 0`,
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("want %s in\n%s", want, w.Body)
		}
	}

	all := s.Web.API.Unknowns.List()
	if len(all) != 1 || all[0].Count != 2 || all[0].Pool != "rest" || all[0].Firmware != pools.BIOS || !all[0].Address.IsValid() {
		t.Errorf("got %+v", all)
	}
	if b, ok := s.Store.Boots.Current(pools.MAC{0x52, 0x54, 0, 0x77, 1, 1}); !ok || b.Node != "m1" {
		t.Errorf("got %+v, %t: a DISCOVER begins no boot", b, ok)
	}
}
