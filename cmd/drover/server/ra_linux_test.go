package server

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"drover/e2e/fixture"
)

const raPools = "- {name: lobby, image: i, catchall: true, range: 10.28.1.1-10.28.1.9}\n"

// A Linux host on a network without a router has its solicitation answered, and the
// metrics have that.
func TestRouterAdvertisements(t *testing.T) {
	o := newOffice(t, false, raPools)
	if len(o.server.RA) != 1 {
		t.Fatalf("got %d servers of router advertisements, want one for each interface", len(o.server.RA))
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.net.Do(func() error { return o.server.RA[0].Serve(ctx) }) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
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
