package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/e2e/netns"
)

// TestIPv6 has a machine take its address by DHCPv6 from a server in a namespace, and fetch
// files by TFTP and HTTP over IPv6. Then another interface takes the name of the server's.
func TestIPv6(t *testing.T) {
	netns.Need(t, "dhclient")
	y := newYard(t, `server: {interfaces: [eth1], routerAdvertisements: managed}
subnets: [{cidr: 10.77.0.0/16, network: hall}, {cidr: "fd00:77::/64", network: hall}]
pools:
  - name: web
    image: debian-12
    nodes:
      - {name: a, macs: ["52:54:00:00:77:01"], ip: 10.77.0.50, ip6: "fd00:77::50"}
`)
	loaders := filepath.Join(y.dir, "state", "loaders")
	if err := os.MkdirAll(loaders, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(loaders, "snponly.efi"), []byte(strings.Repeat("x", 100_000)), 0o644); err != nil {
		t.Fatal(err)
	}
	a := y.wire("eth1", "10.77.0.1/16", "52:54:00:00:77:01")
	y.net.IP(t, "addr", "add", "fd00:77::1/64", "dev", "eth1", "nodad")
	y.start()
	boots := func() {
		t.Helper()
		fixture.Eventually(t, "link-local address", func() bool {
			out, err := a.Command("ip", "-6", "addr", "show", "dev", "cli", "scope", "link").CombinedOutput()
			return err == nil && strings.Contains(string(out), "fe80::") && !strings.Contains(string(out), "tentative")
		})
		c := netns.Client{Kind: netns.Dhclient6(), Namespace: a.Namespace, Device: "cli", Dir: t.TempDir()}
		c.Start(t)
		fixture.Eventually(t, "address by DHCPv6", func() bool {
			out, err := a.Command("ip", "-6", "addr", "show", "dev", "cli").CombinedOutput()
			return err == nil && strings.Contains(string(out), "fd00:77::50/")
		})
		c.Kill()
		a.IP(t, "route", "replace", "fd00:77::/64", "dev", "cli")
		for _, url := range []string{"tftp://[fd00:77::1]/snponly.efi", "http://[fd00:77::1]/loaders/snponly.efi"} {
			file := filepath.Join(t.TempDir(), "file")
			fixture.Eventually(t, url, func() bool {
				out, err := a.Command("curl", "-sS", "-g", "--fail", "--max-time", "20", "-o", file, url).CombinedOutput()
				info, missing := os.Stat(file)
				if err != nil {
					t.Logf("%s: %v: %s", url, err, out)
				}
				return err == nil && missing == nil && info.Size() == 100_000
			})
		}
	}
	boots()

	y.net.IP(t, "link", "del", "eth1")
	y.net.Link(t, "eth1", a.Namespace, "cli")
	y.net.IP(t, "addr", "add", "10.77.0.1/16", "dev", "eth1")
	y.net.IP(t, "link", "set", "eth1", "up")
	y.net.IP(t, "addr", "add", "fd00:77::1/64", "dev", "eth1", "nodad")
	a.up()
	boots()
}
