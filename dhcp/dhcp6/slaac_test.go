package dhcp6_test

import (
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv6"

	"drover/dhcp"
	"drover/pools"
	"drover/pools/config"
)

// TestSLAAC: on a network whose routers give the addresses (flag M off), a boot program finds
// its script by an INFORMATION-REQUEST, with which its boot begins. One that asks for an
// address all the same gets the one that it makes itself.
func TestSLAAC(t *testing.T) {
	w := newWorld(t)
	text := strings.NewReplacer(`network: hall, lease: 1h`, `network: hall, slaac: true, lease: 1h`, `, ip6: "fd00:28::10"`, "").Replace(farmConfig)
	farm, err := config.Parse("drover.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	w.server.Farm = farm
	uefi := pxe(7, "PXEClient:Arch:00007:UNDI:003010")
	for _, mode := range []pools.DHCPMode{pools.DHCPFull, pools.DHCPProxy} {
		w.server.Mode = mode
		reply, x := w.send(m1b, message(dhcpv6.MessageTypeInformationRequest, m1b, uefi, ipxe))
		if reply == nil || reply.Options.BootFileURL() != "http://[fd00:28::2]/boot/52-54-00-99-00-02" || x.Decision != dhcp.Informed || !x.Begins() {
			t.Errorf("%s: got %v, %+v", mode, reply, x)
		}
		if reply != nil && reply.Options.OneIANA() != nil {
			t.Errorf("%s: got an address for an INFORMATION-REQUEST", mode)
		}
	}
	system, x := w.send(m1, message(dhcpv6.MessageTypeInformationRequest, m1, with(dhcpv6.OptRequestedOption(23))))
	if system == nil || x.Begins() || system.Options.BootFileURL() != "" {
		t.Errorf("a system: got %v, %+v", system, x)
	}
	w.server.Mode = pools.DHCPFull
	for mac, want := range map[pools.MAC]string{m1: "fd00:28::5054:ff:fe99:1", m1b: "fd00:28::5054:ff:fe99:2"} {
		adv, x := w.send(mac, message(dhcpv6.MessageTypeSolicit, mac, uefi, ia(1)))
		if adv == nil {
			t.Fatalf("silence: %+v", x)
		}
		if a, _, _ := given(t, adv); a != addr(want) {
			t.Errorf("%s: got %s, want %s", mac, a, want)
		}
	}
}
