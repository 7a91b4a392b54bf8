package server

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"drover/dhcp"
	"drover/e2e/fixture"
	"drover/e2e/netns"
	"drover/pools"
)

const ipv6Head = `server:
  interfaces: [srv]
  address: 10.28.0.2
  routerAdvertisements: off
subnets:
  - {cidr: 10.28.0.0/16, router: 10.28.0.1, lease: 1h, network: hall}
  - {cidr: "fd00:28::/64", dns: ["fd00:28::53"], lease: 1h, network: hall}
pools:
`

const ipv6Pools = `
  - name: web
    image: debian-12
    nodes:
      - {name: m1, macs: ["52:54:00:99:00:01"], ip: 10.28.0.10, ip6: "fd00:28::10"}
  - {name: rest, catchall: true, image: debian-12, range6: "fd00:28::100-fd00:28::1ff"}
`

// TestIPv6 has a declared node and a stranger take their addresses by DHCPv6. The stranger's
// lease is in the state, and survives a restart. Both are found by their IPv6 addresses, and
// get URLs of IPv6.
func TestIPv6(t *testing.T) {
	o := newOfficeOf(t, ipv6Head, ipv6Pools, "dhclient")
	o.net.IP(t, "addr", "add", "fd00:28::2/64", "dev", "srv", "nodad")
	d := o.server.DHCP6[0]
	d.OnExchange = func(x dhcp.Exchange) {
		o.server.exchange(x)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.seen = append(o.seen, x)
	}
	o.net.In(t, func() error { o.server.Live.Readdress(); return d.Listen() })
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.net.Do(func() error { return d.Serve(ctx) }) }()
	t.Cleanup(func() { cancel(); <-ended })
	for name, tt := range map[string]struct{ mac, address, node string }{
		"node":     {"52:54:00:99:00:01", "fd00:28::10", "m1"},
		"stranger": {"52:54:00:99:00:77", "fd00:28::100", "node-525400990077"},
	} {
		n := o.host(name)
		n.IP(t, "link", "set", "cli", "address", tt.mac, "up")
		fixture.Eventually(t, "link-local address", func() bool {
			out, err := n.Command("ip", "-6", "addr", "show", "dev", "cli", "scope", "link").CombinedOutput()
			return err == nil && strings.Contains(string(out), "fe80::") && !strings.Contains(string(out), "tentative")
		})
		c := netns.Client{Kind: netns.Dhclient6(), Namespace: n, Device: "cli", Dir: t.TempDir()}
		c.Start(t)
		fixture.Eventually(t, "address of the "+name, func() bool { return o.answered(tt.mac, "REPLY") })
		addr := netip.MustParseAddr(tt.address)
		m, ok := o.server.Machines.At(addr)
		if !ok || m.Plan == nil || m.Plan.Node != tt.node || m.Address != addr || m.Plan.Address != m.Plan.Address6 && !m.Plan.CatchAll {
			t.Fatalf("%s: got %+v, %t", name, m, ok)
		}
		if got := m.Plan.Advertised.URL; got != "http://[fd00:28::2]" {
			t.Errorf("%s: got URL %s", name, got)
		}
		if !o.server.Machines.Serves(addr) {
			t.Errorf("%s is not served", name)
		}
	}
	if all := o.server.Store.Leases6.List(); len(all) != 1 || all[0].Address != netip.MustParseAddr("fd00:28::100") || all[0].Pool != "rest" {
		t.Errorf("got leases %+v", all)
	}
	if all := o.server.Store.Leases.List(); len(all) != 0 {
		t.Errorf("got IPv4 leases %+v", all)
	}
}

// TestNoIPv6: without a subnet of IPv6 there is neither DHCPv6 nor a second TFTP server.
func TestNoIPv6(t *testing.T) {
	o := newOffice(t, false, ipv4Pools)
	if o.server.DHCP6 != nil || o.server.tftp6 != nil {
		t.Errorf("got DHCPv6 %v, TFTP %v", o.server.DHCP6, o.server.tftp6)
	}
}

const ipv4Pools = `
  - {name: lobby, catchall: true, image: debian-12, range: 10.28.72.10-10.28.72.20}
`

// TestScriptOverIPv6 fetches a script by HTTP over IPv6, as iPXE does.
func TestScriptOverIPv6(t *testing.T) {
	o := newOfficeOf(t, ipv6Head, ipv6Pools)
	o.net.IP(t, "addr", "add", "fd00:28::2/64", "dev", "srv", "nodad")
	n := o.host("node")
	n.IP(t, "addr", "add", "fd00:28::10/64", "dev", "cli", "nodad")
	n.IP(t, "link", "set", "cli", "up")
	m1, err := pools.ParseMAC("52:54:00:99:00:01")
	if err != nil {
		t.Fatal(err)
	}
	o.net.In(t, func() error { o.server.Live.Readdress(); return nil })
	o.server.exchange(dhcp.Exchange{Time: time.Now(), MAC: m1, Type: "SOLICIT", Reply: "ADVERTISE", Netboot: true,
		Plan: o.server.Machines.Of6(m1).Plan, Address: netip.MustParseAddr("fd00:28::10")})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	o.net.In(t, func() error {
		l, err := o.server.http.Listen()
		if err == nil {
			go func() { ended <- o.server.http.Serve(ctx, l) }()
		}
		return err
	})
	t.Cleanup(func() { cancel(); <-ended })
	client := http.Client{Transport: &http.Transport{DialContext: n.Dial}}
	resp, err := client.Get("http://[fd00:28::2]/boot/" + m1.Dashed())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(text), "http://[fd00:28::2]/boot/") {
		t.Errorf("got %s, %v:\n%s", resp.Status, err, text)
	}
}
