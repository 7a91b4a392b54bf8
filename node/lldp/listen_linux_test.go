package lldp_test

import (
	"fmt"
	"os"
	"testing"

	"drover/e2e/fixture"
	"drover/e2e/netns"
	"drover/node/lldp"
	"drover/pools"
)

// TestListen: each card hears the switch at its other end. Damaged announcements, frames of
// other protocols, and those that this host sends count for nothing.
func TestListen(t *testing.T) {
	netns.Need(t, "ip")
	id := fmt.Sprintf("drvlldp%d", os.Getpid())
	machine, rack := netns.NewNamespace(t, id+"m"), netns.NewNamespace(t, id+"r")
	for _, n := range []string{"0", "1", "2"} {
		machine.Link(t, "eth"+n, rack, "swp"+n)
		machine.IP(t, "link", "set", "eth"+n, "up")
		rack.IP(t, "link", "set", "swp"+n, "up")
	}
	var l *lldp.Listener
	machine.In(t, func() (err error) {
		l, err = lldp.Listen()
		return err
	})
	announce := func(from netns.Namespace, device, text string) {
		t.Helper()
		if err := from.Announce(device, text); err != nil {
			t.Fatal(err)
		}
	}
	announce(rack, "swp0", chassis+"damaged")
	announce(machine, "eth2", netns.LLDP("oneself", "eth2"))
	announce(rack, "swp0", netns.LLDP("leaf-6", "swp0"))
	announce(rack, "swp0", netns.LLDP("leaf-7", "swp0"))
	announce(rack, "swp1", netns.LLDP("leaf-8", "swp1"))
	var got map[string]pools.Neighbour
	fixture.Eventually(t, "the announcements", func() bool {
		got = l.Heard()
		return len(got) == 2 && got["eth0"].System == "leaf-7"
	})
	if got["eth0"].String() != "leaf-7 swp0" || got["eth1"].String() != "leaf-8 swp1" {
		t.Errorf("got %v", got)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
