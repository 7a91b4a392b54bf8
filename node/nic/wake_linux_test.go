package nic

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"drover/e2e/fixture"
)

// TestWakeARP: while other cards are up, none of them answers ARP for the address of the boot
// card. The node's own settings are back before its init starts.
func TestWakeARP(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "other0"}, PeerName: "node0", PeerHardwareAddr: testMAC[:]}
		if err := netlink.LinkAdd(veth); err != nil {
			t.Error(err)
			return
		}
		var said fixture.Log
		n, err := Find(t.Context(), testMAC, func() {}, said.Printf)
		if err != nil {
			t.Error(err)
			return
		}
		const dir = "/proc/sys/net/ipv4/conf/all/"
		if err := errors.Join(os.WriteFile(dir+"arp_ignore", []byte("0"), 0), os.WriteFile(dir+"arp_announce", []byte("1"), 0)); err != nil {
			t.Error(err)
		}
		settings := func() (got string) { // not by fixture.ReadFile, which would end another goroutine
			for _, name := range []string{"arp_ignore", "arp_announce"} {
				b, err := os.ReadFile(dir + name)
				if err != nil {
					t.Error(err)
				}
				got += strings.TrimSpace(string(b))
			}
			return got
		}
		n.Wake()
		if got := settings(); got != "12" {
			t.Errorf("awake: arp_ignore and arp_announce are %s, want 1 and 2", got)
		}
		if err := n.Down(); err != nil {
			t.Error(err)
		}
		if got := settings(); got != "01" {
			t.Errorf("down: arp_ignore and arp_announce are %s, want 0 and 1", got)
		}
		if said.String() != "" {
			t.Errorf("it complained: %s", &said)
		}
	})
}
