package e2e_test

import (
	"context"
	"net/netip"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/pcap"
	"drover/e2e/lab/site"
	"drover/e2e/netns"
	"drover/pools"
	"drover/pools/boots"
)

// TestProxy boots machines that get only an address from dnsmasq on another host. drover
// in proxy mode sends them their boot file.
func TestProxy(t *testing.T) {
	b := build(t)
	if _, err := exec.LookPath("dnsmasq"); err != nil {
		t.Fatal(err)
	}
	const rack = "drover-e2e-proxy"
	s := open(t, b, site.Config{Name: rack, Farm: "testdata/proxy.yaml"})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	capture := record(ctx, t, s, "wire")
	addressServer(t, netns.Namespace(rack))

	for _, m := range []lab.Machine{
		{Name: "n3", Firmware: lab.BIOS, NICs: card("52:54:00:77:03:01")},
		{Name: "n4", Firmware: lab.UEFI, NICs: card("52:54:00:77:04:01")},
	} {
		t.Run(string(m.Firmware), func(t *testing.T) {
			mac := m.NICs[0].MAC
			g := powerOn(t, s, m)
			fixture.Until(ctx, t, m.Name+" has its image", func() (bool, error) {
				return reached(bootOf(ctx, t, s, mac), boots.StepImage), nil
			})
			t.Logf("%.1f s after power-on", time.Since(g.Started).Seconds())
			logBoot(ctx, t, s, mac)
			if got := leaseOf(ctx, t, s, mac); !foreignRange.Contains(got) {
				t.Errorf("drover takes %s for the address of %s, want one of dnsmasq's", got, m.Name)
			}
		})
	}
	gaveNoAddress(t, capture())
}

// foreignRange has the addresses of dnsmasq.
var foreignRange = netip.MustParsePrefix("10.77.0.64/26")

// addressServer runs dnsmasq on a host of its own in the rack's network.
func addressServer(t *testing.T, rack netns.Namespace) {
	t.Helper()
	host := neighbor(t, rack, "dhcp")
	host.IP(t, "addr", "add", "10.77.0.9/24", "dev", "eth0")
	host.Daemon(t, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--user=root", "--port=0", "--no-hosts", "--no-ping",
		"--log-facility=-", "--log-dhcp", "--dhcp-leasefile="+filepath.Join(t.TempDir(), "leases"),
		"--dhcp-range=10.77.0.65,10.77.0.126,255.255.255.0,1h", "--dhcp-option=option:router,10.77.0.1")
}

// leaseOf returns the address that drover has for a machine.
func leaseOf(ctx context.Context, t *testing.T, s *site.Site, mac string) netip.Addr {
	t.Helper()
	var leases []pools.Lease
	if err := s.Drover.Call(ctx, "GET", "/api/v1/leases", nil, &leases); err != nil {
		t.Fatal(err)
	}
	for _, l := range leases {
		if l.MAC.String() == mac {
			return l.Address
		}
	}
	return netip.Addr{}
}

// gaveNoAddress fails the test unless drover answered DHCP, without an address.
func gaveNoAddress(t *testing.T, file string) {
	t.Helper()
	answers := 0
	for frame := range frames(t, file) {
		p, ok := pcap.Parse(frame)
		if !ok || p.TCP || p.Src.Addr().String() != "10.77.0.1" || p.Src.Port() != 67 && p.Src.Port() != 4011 {
			continue
		}
		d, err := dhcpv4.FromBytes(p.Payload)
		if err != nil {
			t.Fatal(err)
		}
		answers++
		if !d.YourIPAddr.IsUnspecified() {
			t.Errorf("drover gave an address:\n%s", d.Summary())
		}
	}
	if answers == 0 {
		t.Error("drover answered no DHCP: there is nothing to look at")
	}
}
