package dhcpd_test

import (
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"drover/dhcp/dhcpd"
	"drover/e2e/netns"
	"drover/pools"
	"drover/pools/resolve"
)

// TestRealClients lets DHCP clients of other projects live through all
// that can happen to a lease.
func TestRealClients(t *testing.T) {
	for _, kind := range []netns.Kind{netns.Dhclient(), netns.Udhcpc(), netns.Dhcpcd(), netns.Networkd()} {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			n := newNeighborhood(t, kind)
			for _, tt := range []struct {
				name string
				mac  pools.MAC
				run  func(*neighborhood, pools.MAC)
			}{
				{"takes a fixed address", web1, (*neighborhood).fixed},
				{"takes it on the second NIC", web1b, (*neighborhood).fixed},
				{"leases, renews, rebinds and releases", stray, (*neighborhood).leased},
				{"starts again with its address", web1, (*neighborhood).reboots},
				{"comes from another network", web1, (*neighborhood).moves},
				{"gets nothing", foreign, (*neighborhood).nothing},
			} {
				t.Run(tt.name, func(t *testing.T) {
					n.t = t
					n.plug(tt.mac)
					n.client.Dir = t.TempDir()
					tt.run(n, tt.mac)
				})
			}
		})
	}
}

// neighborhood is a rack with one client, and a server that can pretend to be
// on another network.
type neighborhood struct {
	*rack
	client    *netns.Client
	leases    *leases
	elsewhere atomic.Bool
}

func newNeighborhood(t *testing.T, kind netns.Kind) *neighborhood {
	t.Helper()
	n := &neighborhood{client: &netns.Client{Kind: kind, Device: "cli"}}
	n.rack = newRack(t, kind.Program)
	n.client.Namespace = netns.Namespace(n.cli)
	var s *dhcpd.Server
	s, n.leases = newServer()
	s.Machines = tenants{n.leases}
	s.Workers = 1 // else a client's REQUEST can be told of before the OFFER that it answers
	s.Farm = farmFunc(func(p *resolve.Plan) {
		p.Lease = pools.Duration(kind.Lease)
		if n.elsewhere.Load() {
			p.Address = netip.MustParseAddr("10.99.0.7")
			p.Subnet.CIDR, p.Subnet.Router = netip.MustParsePrefix("10.99.0.0/16"), netip.MustParseAddr("10.99.0.1")
		}
	})
	n.serve(s)
	return n
}

// tenants are the machines of a neighborhood: web1, and those that have leases.
type tenants struct{ leases *leases }

func (t tenants) Owns(a netip.Addr, m pools.MAC) (owned, own bool) {
	if a.String() == "10.28.36.1" || a.String() == "10.99.0.7" {
		return true, t.Declares(m)
	}
	held, ok := t.leases.Holds(m, noon)
	return ok && held == a, ok && held == a
}

func (t tenants) Leased(m pools.MAC) []netip.Addr {
	if held, ok := t.leases.Holds(m, noon); ok {
		return []netip.Addr{held}
	}
	return nil
}

func (tenants) Declares(m pools.MAC) bool { return m == web1 || m == web1b }

// takes starts the client and sees it get an address.
func (n *neighborhood) takes(m pools.MAC, address string) {
	n.t.Helper()
	n.client.Start(n.t)
	n.expect(m, "DISCOVER OFFER", "REQUEST ACK")
	got := n.client.Wait(n.t, netns.Bound)
	want := map[string]string{
		"address": address, "mask": "255.255.0.0", "server": "10.28.0.2",
		"router": "10.28.0.1", "dns": "10.28.0.1 10.28.0.9", "hostname": farm{}.Resolve(resolve.Query{MAC: m}).Node,
	}
	if n.elsewhere.Load() {
		want["router"] = "10.99.0.1"
	}
	for k, v := range want {
		if got[k] != v {
			n.t.Errorf("client has %s=%q, want %q", k, got[k], v)
		}
	}
}

func (n *neighborhood) fixed(m pools.MAC) { n.takes(m, "10.28.36.1") }

func (n *neighborhood) leased(m pools.MAC) {
	n.client.Keep = false
	n.takes(m, "10.28.72.10")

	n.client.Renew(n.t)
	n.expect(m, "REQUEST ACK")
	n.client.Wait(n.t, netns.Renewed)

	// The way to the server breaks: no host has this MAC. Only a broadcast gets
	// through.
	n.ip("-n", n.cli, "neigh", "replace", serverAddr.String(), "lladdr", "02:00:00:00:00:ff", "nud", "permanent", "dev", "cli")
	n.client.Renew(n.t)
	n.expect(m, "REQUEST ACK")
	n.client.Wait(n.t, netns.Rebound)
	// A client that sets its address anew removes the entry; flush accepts that.
	n.ip("-n", n.cli, "neigh", "flush", "to", serverAddr.String(), "dev", "cli", "nud", "all")

	n.client.Release(n.t)
	n.expect(m, "RELEASE ")
	if a, ok := n.leases.Holds(m, noon); ok {
		n.t.Errorf("after the RELEASE %s still has %s", m, a)
	}
}

func (n *neighborhood) reboots(m pools.MAC) {
	n.client.Keep = true
	n.takes(m, "10.28.36.1")
	n.client.Kill()
	n.client.Start(n.t)
	if !n.client.Says(netns.Rebooted) {
		n.expect(m, "DISCOVER OFFER", "REQUEST ACK")
		n.client.Wait(n.t, netns.Bound)
		return
	}
	n.expect(m, "REQUEST ACK")
	if got, want := n.client.Wait(n.t, netns.Rebooted)["address"], "10.28.36.1"; got != want {
		n.t.Errorf("got address %q, want %q", got, want)
	}
}

// moves takes a lease on another network. There the client is unplugged, and
// here plugged in: it has to be told that its address is none of this network.
func (n *neighborhood) moves(m pools.MAC) {
	n.client.Keep = true
	n.elsewhere.Store(true)
	n.takes(m, "10.99.0.7")
	if n.client.Says(netns.Rebooted) {
		n.client.Kill()
	}
	n.elsewhere.Store(false)
	if n.client.Says(netns.Rebooted) {
		n.client.Start(n.t)
	} else {
		n.client.Renew(n.t) // it does not start with the old address, but renews it
	}
	n.expect(m, "REQUEST NAK", "DISCOVER OFFER", "REQUEST ACK")
	n.client.Wait(n.t, netns.Refused)
	if got, want := n.client.Wait(n.t, netns.Bound)["address"], "10.28.36.1"; got != want {
		n.t.Errorf("got address %q, want %q", got, want)
	}
}

func (n *neighborhood) nothing(m pools.MAC) {
	n.client.Start(n.t)
	n.expect(m, "DISCOVER ", "DISCOVER ")
	n.client.Kill()
	if said := n.client.Said(); strings.Contains(said, "event=BOUND") || strings.Contains(said, "event=bound") {
		n.t.Error("the client got a lease")
	}
}

// TestRealClientAsROM lets udhcpc ask as UEFI firmware does.
func TestRealClientAsROM(t *testing.T) {
	n := newNeighborhood(t, netns.Udhcpc())
	n.plug(web1)
	n.client.Dir = filepath.Join(t.TempDir(), "rom")
	n.client.Start(t, "-q", "-V", "PXEClient:Arch:00007:UNDI:003000", "-x", "93:0007", "-B")
	x := n.expect(web1, "DISCOVER OFFER", "REQUEST ACK")
	got := n.client.Wait(t, netns.Bound)
	for k, v := range map[string]string{
		"address": "10.28.36.1", "siaddr": "10.28.0.2", "boot_file": "snponly.efi", "tftp": "10.28.0.2", "bootfile": "snponly.efi",
	} {
		if got[k] != v {
			t.Errorf("client has %s=%q, want %q", k, got[k], v)
		}
	}
	if !x.Netboot || x.Firmware != pools.UEFIx64 || x.IPXE {
		t.Errorf("got exchange %+v, want it from firmware %q", x, pools.UEFIx64)
	}
}
