package attack_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/e2e/attack"
	"drover/e2e/dhcptest"
)

// TestForgedAddresses (H1) broadcasts REQUESTs in the name of m2, from a host on the boot
// network, for addresses that m2 must never get: the DNS server's, the router's, the
// server's, another node's, one of a range, and one that the attacker has.
func TestForgedAddresses(t *testing.T) {
	l := newLab(t)
	s := l.Serve(t, fmt.Sprintf(attack.Farm, ""), 1<<20)
	machine := m2(l)
	boots(t, machine)
	l.Wire.IP(t, "addr", "add", attack.FreeAddr+"/16", "dev", "eth0")
	wire, err := attack.NewWire(l.Wire)
	if err != nil {
		t.Fatal(err)
	}
	defer wire.Close()
	everybody, server := netip.MustParseAddr("255.255.255.255"), netip.MustParseAddr(attack.ServerAddr)
	for _, address := range []string{attack.DNSAddr, attack.RouterAddr, attack.ServerAddr, attack.NodeAddr, attack.PortIP, "10.77.72.200", attack.FreeAddr, "10.77.0.0", "10.77.255.255"} {
		for _, to := range []netip.Addr{everybody, server} {
			for _, from := range []netip.Addr{netip.IPv4Unspecified(), netip.MustParseAddr(address)} {
				for _, mods := range [][]dhcpv4.Modifier{
					{dhcptest.Requested(address)},
					{dhcptest.Ciaddr(address)},
					{dhcptest.Requested(address), dhcptest.ServerID(server)},
					{dhcptest.Requested(address), dhcptest.ServerID(netip.MustParseAddr("10.77.0.9"))},
				} {
					d := dhcptest.Message(attack.MachineMAC, dhcpv4.MessageTypeRequest, mods...)
					p := attack.Packet{From: netip.AddrPortFrom(from, 68), To: netip.AddrPortFrom(to, 67), Payload: d.ToBytes()}
					if err := wire.Send(attack.ServerMAC, p); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		time.Sleep(300 * time.Millisecond) // until the server has asked by ARP, most likely
		for _, line := range s.Leases() {
			if strings.Contains(line, attack.MachineMAC.String()) {
				t.Errorf("the server believes %s", line)
			}
		}
	}
	steals(t, l)
	machine.Lease(t, false)
	if machine.Address != attack.MachineIP {
		t.Errorf("m2 gets address %s, want its own %s", machine.Address, attack.MachineIP)
	}
}
