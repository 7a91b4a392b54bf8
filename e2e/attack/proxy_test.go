package attack_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/e2e/attack"
	"drover/e2e/dhcptest"
	"drover/e2e/netns"
)

// proxyFarm has nodes without addresses: another server gives them. Its %s is for subnets.
const proxyFarm = `server: {interfaces: [br0], address: 10.77.0.1, dhcp: proxy, api: "127.0.0.1:8443"}
%s
tags:
  all: {files: {/etc/secret: {content: "the secret of the tenant\n"}}}
pools:
  - {name: a, image: lab, nodes: [{name: m1, macs: ["52:54:00:77:01:01"]}, {name: m2, macs: ["52:54:00:77:01:02"]}]}
`

// TestForgedInProxyMode (C1) pretends to be a machine whose address drover learns from its
// packets, from hosts that cannot send a frame on the boot network.
func TestForgedInProxyMode(t *testing.T) {
	l := newLab(t)
	for name, subnets := range map[string]string{"with subnets": "subnets: [{cidr: 10.77.0.0/16}]", "without subnets": ""} {
		t.Run(name, func(t *testing.T) {
			s := l.Serve(t, fmt.Sprintf(proxyFarm, subnets), 1<<20)
			for _, from := range []struct {
				name, address string
				net           netns.Namespace
			}{
				{"the routed host", attack.RoutedAddr, l.Routed},
				{"the pod", attack.NodeAddr, l.Pod},
				{"a host on the wire", attack.WireAddr, l.Wire},
			} {
				for _, ports := range [][2]uint16{{68, 67}, {0, 67}, {68, 4011}, {4011, 4011}} {
					pretend(t, from.net, from.address, ports)
					if attack.Steal(t.Context(), from.net, attack.MachineMAC) == nil {
						t.Errorf("%s has the config of m2, by UDP from port %d to %d", from.name, ports[0], ports[1])
					}
				}
			}
			for _, line := range s.Leases() {
				t.Errorf("the server believes %s", line)
			}
			s.WantSmall()
			s.Stop()
			s.Wild = true
		})
	}
}

// pretend sends, in the name of m2, all packets of a machine that boots at an address.
func pretend(t *testing.T, n netns.Namespace, address string, ports [2]uint16) {
	t.Helper()
	server := dhcptest.ServerID(netip.MustParseAddr(attack.ServerAddr))
	for _, mods := range [][]dhcpv4.Modifier{
		{dhcptest.Option(53, 1)},
		{dhcptest.Option(53, 3), dhcptest.Requested(address)},
		{dhcptest.Option(53, 3), dhcptest.Requested(address), server},
		{dhcptest.Option(53, 3), dhcptest.Ciaddr(address)},
		{dhcptest.Option(53, 8), dhcptest.Ciaddr(address)},
		{dhcptest.Option(53, 3), dhcptest.Ciaddr(address), dhcptest.Giaddr(address)},
		{dhcptest.Option(53, 1), dhcptest.Giaddr(address)},
		{dhcptest.Option(53, 3), dhcptest.Requested(address), dhcptest.Giaddr(address)},
	} {
		d := dhcptest.Message(attack.MachineMAC, dhcpv4.MessageTypeDiscover, append(mods, dhcptest.ROM)...)
		if err := attack.Plain(n, ports[0], ports[1], d.ToBytes()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(40 * time.Millisecond) // until the server has read it, most likely
	}
}
