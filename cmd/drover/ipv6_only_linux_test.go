package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/dhcp/bootprogram"
	"drover/dhcp/dhcp6"
	"drover/e2e/fixture"
	"drover/pools"
)

const ipv6OnlyFarm = `server: {interfaces: [eth1], routerAdvertisements: managed}
subnets: [{cidr: "fd00:77::/64", domain: example.org}]
pools:
  - name: web
    image: debian-12
    nodes:
      - {name: a, macs: ["52:54:00:00:77:01"], ip6: "fd00:77::50"}
  - {name: rest, catchall: true, image: debian-12, range6: "fd00:77::100-fd00:77::1ff"}
`

// TestServerWithoutIPv4 runs the server on a host whose interface has no IPv4 address: it is
// ready, gives addresses by DHCPv6, and serves scripts and files that name its IPv6 address.
// drover check has no warning, and drover explain shows the answer by DHCPv6. When the
// interface has gone, the server is not ready.
func TestServerWithoutIPv4(t *testing.T) {
	y := newYard(t, ipv6OnlyFarm)
	loaders := filepath.Join(y.dir, "state", "loaders")
	if err := os.MkdirAll(loaders, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"undionly.kpxe", "snponly.efi"} {
		if err := os.WriteFile(filepath.Join(loaders, name), []byte(strings.Repeat("x", 1000)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a := y.wire("eth1", "fd00:77::1/64", "52:54:00:00:77:01")
	fixture.Eventually(t, "the server's address is no longer tentative", func() bool {
		out, err := y.net.Command("ip", "-6", "addr", "show", "dev", "eth1", "tentative").Output()
		return err == nil && len(out) == 0
	})
	y.start()
	y.readyz(http.StatusOK)
	fixture.WantNoText(t, "the log", y.said(), "interface=eth1 ") // of DHCPv4, which would wait for an address

	firmware := bootprogram.Discover{MAC: a.mac, Firmware: pools.UEFIx64}
	a.advertised(&firmware, "tftp://[fd00:77::1]/snponly.efi")
	firmware.IPXE = true
	script := "http://[fd00:77::1]" + pools.ScriptPath + a.mac.Dashed()
	a.advertised(&firmware, script)
	a.IP(t, "addr", "add", "fd00:77::50/64", "dev", "cli", "nodad")
	text := a.get6(script)
	fixture.WantText(t, "the script", text, "drover.url=http://[fd00:77::1] ")
	fixture.WantText(t, "the script for all machines", a.get6("http://[fd00:77::1]"+finderPath), "http://[fd00:77::1]/")
	kernel := stormKernel.FindString(text)
	for _, url := range []string{"http://[fd00:77::1]" + kernel, "tftp://[fd00:77::1]" + kernel, "tftp://[fd00:77::1]/snponly.efi"} {
		if got := len(a.get6(url)); got != 1000 {
			t.Errorf("%s has %d bytes", url, got)
		}
	}

	if got := y.drover("check"); strings.Contains(got, "warning") || !strings.Contains(got, ": ok: ") {
		t.Errorf("drover check: %s", got)
	}
	for mac, want := range map[string][]string{
		"52:54:00:00:77:01": {"DHCPv6: SOLICIT is answered with ADVERTISE", "fd00:77::50 for 43200 s", "tftp://[fd00:77::1]/snponly.efi", "address of eth1"},
		"52:54:00:00:99:99": {"DHCPv6: SOLICIT is answered with ADVERTISE", "fd00:77::100 is leased when it asks", "tftp://[fd00:77::1]/snponly.efi"},
	} {
		got := y.drover("explain", mac)
		for _, w := range want {
			fixture.WantText(t, "drover explain "+mac, got, w)
		}
	}
	y.net.IP(t, "link", "del", "eth1")
	y.readyz(http.StatusServiceUnavailable)
}

// readyz waits until the server answers that it is ready, or that it is not.
func (y *yard) readyz(want int) {
	y.t.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: y.net.Dial, DisableKeepAlives: true}, Timeout: 30 * time.Second}
	fixture.Retry(y.t, "/readyz", func() error {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://127.0.0.1:8443/readyz", http.NoBody)
		if err != nil {
			return err
		}
		token, err := os.ReadFile(filepath.Join(y.dir, "state", "api.token"))
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode != want {
			err = fmt.Errorf("%s: %s", resp.Status, text)
		}
		return err
	})
}

// drover runs another command on the config of the server, in its namespace.
func (y *yard) drover(args ...string) string {
	y.t.Helper()
	out, err := y.net.Command(filepath.Join(y.dir, "drover"), append(args, "-c", filepath.Join(y.dir, "drover.yaml"))...).CombinedOutput()
	if err != nil {
		y.t.Errorf("drover %s: %v", args[0], err)
	}
	return string(out)
}

// advertised sends SOLICITs until the ADVERTISE has a boot file.
func (p *plot) advertised(d *bootprogram.Discover, file string) {
	p.t.Helper()
	var conn *net.UDPConn
	fixture.Retry(p.t, "a link-local address", func() error {
		return p.Do(func() (err error) {
			conn, err = net.ListenUDP("udp6", &net.UDPAddr{IP: net.ParseIP(p.linkLocal()), Zone: "cli", Port: dhcp6.ClientPort})
			return err
		})
	})
	defer conn.Close()
	b := make([]byte, 2048)
	fixture.Retry(p.t, "an ADVERTISE with "+file, func() error {
		if _, err := conn.WriteToUDP(d.Solicit(), &net.UDPAddr{IP: net.ParseIP("ff02::1:2"), Zone: "cli", Port: dhcp6.ServerPort}); err != nil {
			return err
		}
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		n, err := conn.Read(b)
		if err != nil {
			return err
		}
		options, err := dhcp6.Describe(b[:n])
		for _, o := range options {
			if o.Name == "boot file" && o.Value == file {
				return nil
			}
		}
		if err == nil {
			err = fmt.Errorf("got %+v", options)
		}
		return err
	})
}

// linkLocal returns the address of the form EUI-64.
func (p *plot) linkLocal() string {
	m := p.mac
	ip := net.IP{0xfe, 0x80, 0, 0, 0, 0, 0, 0, m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]}
	return ip.String()
}

// get6 gets a URL with an IPv6 address, whose brackets curl takes for a pattern.
func (p *plot) get6(url string) (text string) {
	p.t.Helper()
	fixture.Retry(p.t, url, func() error {
		out, err := p.Command("curl", "-g", "-sS", "--fail", "--max-time", "30", url).CombinedOutput()
		text = string(out)
		return err
	})
	return text
}
