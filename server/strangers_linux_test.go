package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/e2e/dhcptest"
	"drover/pools"
)

// TestStrangersSilenceNoRouter: a stranger leases, releases and declines in the name of the MAC
// of a router, and even its own address cannot make the router a machine. What the router
// forwards for others counts as before: packets of relay agents on the wire and behind it, and
// the renewals of machines.
func TestStrangersSilenceNoRouter(t *testing.T) {
	const farMAC, farIP, taken = "52:54:00:00:00:04", "10.29.1.7", "10.28.72.33"
	withFar := strings.Replace(farmlandPools, "      - {name: m2,", `      - {name: far, macs: ["`+farMAC+`"], ip: `+farIP+"}\n      - {name: m2,", 1)
	release := func(f *farmland, m pools.MAC) {
		f.send(f.router, taken, 67, dhcptest.Message(m, typeRelease, dhcptest.Ciaddr(taken)))
		f.judged(m, 1)
	}
	for name, takes := range map[string]func(*farmland, pools.MAC){
		"nothing": func(*farmland, pools.MAC) {},
		"a lease": func(f *farmland, m pools.MAC) { f.leases(f.t, m, taken) },
		"a lease that it returns": func(f *farmland, m pools.MAC) {
			f.leases(f.t, m, taken)
			release(f, m)
		},
		"a release alone":               release,
		"a lease of the remote network": func(f *farmland, m pools.MAC) { f.leases(f.t, m, "10.29.72.33") },
		"a lease, and the router uses the address": func(f *farmland, m pools.MAC) {
			f.leases(f.t, m, taken)
			f.router.IP(f.t, "addr", "add", taken+"/16", "dev", "cli")
			f.router.IP(f.t, "addr", "add", "10.28.0.1/16", "dev", "cli") // as the config says
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFarmland(t, fmt.Sprintf(officeHead, false), withFar)
			takes(f, dhcptest.MAC(routerMAC))
			f.judgeNothing()
			m2 := dhcptest.MAC(otherMAC)
			for _, src := range []string{"10.28.0.254", "10.29.0.9"} {
				relayed := func(d *dhcpv4.DHCPv4) { dhcptest.Giaddr(src)(d); d.HopCount = 1 }
				f.send(f.router, src, 67, dhcptest.Message(m2, typeDiscover, dhcptest.ROM, relayed))
				if got := f.judged(m2, 1)[0]; got == dhcp.Spoofed {
					t.Errorf("relayed by %s: got %q", src, got)
				}
			}
			far := dhcptest.MAC(farMAC)
			f.send(f.router, farIP, 67, dhcptest.Message(far, typeRequest, dhcptest.Ciaddr(farIP)))
			if got := f.judged(far, 1)[0]; got != dhcp.Acknowledged {
				t.Errorf("a renewal behind the router: got %q, want %q", got, dhcp.Acknowledged)
			}
		})
	}
}
