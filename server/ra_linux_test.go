package server

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"drover/e2e/fixture"
)

const raPools = "- {name: lobby, image: i, catchall: true, range: 10.28.1.1-10.28.1.9}\n"

// serveRA runs the server of router advertisements until the test ends.
func (o *office) serveRA() {
	o.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.net.Do(func() error { return o.server.RA[0].Serve(ctx) }) }()
	o.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			o.t.Error(err)
		}
	})
}

// A Linux host on a network without a router has its solicitation answered, and the
// metrics have that.
func TestRouterAdvertisements(t *testing.T) {
	o := newOffice(t, false, raPools)
	if len(o.server.RA) != 1 {
		t.Fatalf("got %d servers of router advertisements, want one for each interface", len(o.server.RA))
	}
	o.serveRA()
	host := o.host("h1")
	host.IP(t, "link", "set", "cli", "up")
	metrics := func() string {
		w := httptest.NewRecorder()
		o.server.Web.Metrics.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return w.Body.String()
	}
	fixture.Eventually(t, "an answer is counted", func() bool {
		return strings.Contains(metrics(), `drover_router_discovery_packets_total{result="answered",type="solicitation"}`)
	})
	fixture.WantText(t, "the metrics", metrics(), `drover_other_routers{interface="srv"} 0`, `drover_router_discovery_kernel_drops_total{interface="srv"} 0`)
}

// The field switches them off.
func TestRouterAdvertisementsOff(t *testing.T) {
	head := strings.Replace(fmt.Sprintf(officeHead, false), "interfaces: [srv]", "interfaces: [srv]\n  routerAdvertisements: off", 1)
	if o := newOfficeOf(t, head, raPools); len(o.server.RA) != 0 {
		t.Errorf("got %d servers of router advertisements", len(o.server.RA))
	}
}

// With managed a Linux host learns that the declared network is on the link. It makes no
// address of it, and gains no default route.
func TestRouterAdvertisementsManaged(t *testing.T) {
	head := strings.Replace(fmt.Sprintf(officeHead, false), "interfaces: [srv]", "interfaces: [srv]\n  routerAdvertisements: managed", 1)
	head = strings.Replace(head, "subnets:\n", "subnets:\n  - {cidr: \"fd00:28::/64\"}\n  - {cidr: \"fd00:29::/64\"}\n", 1)
	o := newOfficeOf(t, head, raPools)
	o.net.IP(t, "addr", "add", "fd00:28::2/64", "dev", "srv", "nodad")
	got := o.server.managed([]netip.Addr{netip.MustParseAddr("10.28.0.2"), netip.MustParseAddr("fd00:28::2")})
	if !got.Managed || !got.Other || got.Lifetime != 0 || len(got.Prefixes) != 1 || got.Prefixes[0].Autonomous {
		t.Errorf("got %+v", got)
	}
	if got := o.server.managed([]netip.Addr{netip.MustParseAddr("fd00:30::2")}); !got.Empty() {
		t.Errorf("without an address in a declared network: got %+v", got)
	}
	o.serveRA()
	host := o.host("h1")
	for _, set := range []string{"accept_ra=1", "autoconf=1", "accept_ra_defrtr=1"} {
		if out, err := host.Command("sysctl", "-w", "net.ipv6.conf.cli."+set).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	host.IP(t, "link", "set", "cli", "up")
	query := func(args ...string) string {
		out, err := host.Command("ip", append([]string{"-6"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	fixture.Eventually(t, "the network is on the link", func() bool { return strings.Contains(query("route"), "fd00:28::/64 dev cli") })
	if got := query("addr", "show", "dev", "cli", "scope", "global") + query("route", "show", "default"); got != "" {
		t.Errorf("the host has gained %s", got)
	}
}
