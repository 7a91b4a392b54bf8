package server

import (
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/resolve"
	"drover/web/page"
)

// TestExplainedAsItAsked: the page shows what a machine would get if its firmware asked as it did the
// last time, also after a restart of the server. Every machine was a UEFI one on the server's own
// wire before, so that the page had wrong replies, and silence for those that are known by their port
// or their hardware.
func TestExplainedAsItAsked(t *testing.T) {
	s := testServer(t)
	text := strings.Replace(testConfig, "  - {name: rest,", "  - {name: hpe, catchall: true, image: debian-12, range: 10.28.73.10-10.28.73.250, match: {dmi: HPE m710x}}\n  - {name: rest,", 1)
	if err := os.WriteFile("drover.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Live.Reload(); err != nil {
		t.Fatal(err)
	}
	bios, port, stray := pools.MAC{0x52, 0x54, 0, 0x77, 1, 1}, pools.MAC{0x52, 0x54, 0, 0x77, 1, 2}, pools.MAC{0x52, 0x54, 0, 0x77, 1, 3}
	s.Store.Unknowns.Seen(pools.Unknown{MAC: stray, First: time.Now(), Last: time.Now(), Count: 1, Firmware: pools.BIOS})
	s.Store.Unknowns.Describe(stray, pools.Inventory{Vendor: "HPE", Product: "m710x"})
	own := netip.MustParseAddr("10.28.0.2")
	discovers := []resolve.Query{
		{MAC: bios, Firmware: pools.BIOS, Link: own},
		{MAC: port, Firmware: pools.UEFIx64, Link: netip.MustParseAddr("10.29.0.1"), Relayed: true, CircuitID: "eth7"},
		{MAC: stray, Firmware: pools.BIOS, Link: own},
	}
	if x := s.explain(bios); !strings.Contains(x.Assumed, "uefi-x64") || !strings.Contains(x.Reply, "snponly.efi") {
		t.Errorf("nothing is known: assumed %q, reply\n%s", x.Assumed, x.Reply)
	}
	if x := s.explain(stray); x.Assumed != "" || x.Silence != "" || !strings.Contains(x.Reply, "undionly.kpxe") || value(x.Values, "pool") != "hpe" {
		t.Errorf("the list of unknown machines has it: assumed %q, %s, pool %s, reply\n%s", x.Assumed, x.Silence, value(x.Values, "pool"), x.Reply)
	}
	for _, q := range discovers {
		p := s.Machines.Resolve(q)
		if p == nil {
			t.Fatalf("%s gets no answer: %s", q.MAC, s.Machines.WhyNot(q))
		}
		s.Store.Boots.Discover(p, time.Now())
	}
	check := func(when string) {
		t.Helper()
		for i, want := range []struct{ node, pool, file, address string }{
			{"m1", "web", "undionly.kpxe", "10.28.0.10"}, {"m2", "web", "snponly.efi", "10.29.0.15"}, {pools.CatchAllName(stray), "hpe", "undionly.kpxe", "10.28.73.10"},
		} {
			x := s.explain(discovers[i].MAC)
			if x.Silence != "" || x.Assumed != "" || value(x.Values, "node") != want.node || value(x.Values, "pool") != want.pool || !strings.Contains(x.Reply, want.file) || !strings.Contains(x.Reply, want.address) {
				t.Errorf("%s %s: %s, assumed %q, %s of %s, reply\n%s", when, want.node, x.Silence, x.Assumed, value(x.Values, "node"), value(x.Values, "pool"), x.Reply)
			}
		}
	}
	check("now")
	if err := s.Store.Boots.Flush(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	again, err := New(Options{Config: "drover.yaml", State: "state", Log: s.log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Close)
	s = again
	check("after a restart")
}

// value returns a value of a plan.
func value(all []page.Value, field string) string {
	for _, v := range all {
		if v.Field == field {
			return v.Text
		}
	}
	return ""
}
