package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/e2e/netns"
	"drover/pools"
)

// reportsHardware boots a machine with two cards that no node declares, until its hardware is
// in the list of unknown machines, with the switch of each card. At its next boot it is in the
// pool that matches that hardware.
func reportsHardware(ctx context.Context, t *testing.T, s *site.Site, disk lab.Disk) {
	t.Helper()
	const mac, second = "52:54:00:77:04:09", "52:54:00:77:04:19"
	m := lab.Machine{
		Name: "stranger-1", CPUs: 2, Disks: []lab.Disk{disk},
		NICs: []lab.NIC{{MAC: mac, Boot: true}, {MAC: second, Dark: true}},
		DMI:  []string{"type=1,serial=SN1", "type=2,location=c12n1", "type=3,serial=CH1"},
	}
	g := powerOn(t, s, m)
	announce(ctx, t, s, g)
	u := stranger(ctx, t, s, "the hardware of the stranger", func(u pools.Unknown) bool { return u.Inventory != nil })
	v := *u.Inventory
	t.Logf("%.1f s after its first DISCOVER: %s", time.Since(u.First).Seconds(), v)
	if u.MAC.String() != mac || u.Pool != "lobby" || v.Vendor != "QEMU" || v.Serial != "SN1" || v.Chassis != "CH1" || v.Slot != "c12n1" ||
		v.CPUs != 2 || v.Memory < 1<<30 {
		t.Errorf("got %+v in pool %q", v, u.Pool)
	}
	if !slices.ContainsFunc(v.Disks, func(d pools.InventoryDisk) bool {
		return d.Name == "nvme0n1" && d.Serial == "EMPTY" && d.Size == 128<<20
	}) {
		t.Errorf("got disks %+v", v.Disks)
	}
	// The second report, behind the image, has what came later than the first.
	says(ctx, t, g, "tiny: done")
	v = *stranger(ctx, t, s, "the switches of the stranger", func(u pools.Unknown) bool {
		return !slices.ContainsFunc(u.Inventory.NICs, func(n pools.InventoryNIC) bool { return n.LLDP == nil })
	}).Inventory
	var got []string
	for _, n := range v.NICs {
		got = append(got, fmt.Sprintf("%s %v at %s", n.MAC, n.Link, n.LLDP))
	}
	if want := []string{mac + " true at leaf-7 ge-0/0/0", second + " true at leaf-7 ge-0/0/1"}; !slices.Equal(got, want) {
		t.Errorf("got cards %q, want %q", got, want)
	}
	if err := g.PowerOff(); err != nil {
		t.Error(err)
	}
	m.Name = "stranger-2"
	g = powerOn(t, s, m)
	stranger(ctx, t, s, "the stranger in the pool of its rack", func(u pools.Unknown) bool { return u.Pool == "rack-7" })
	if err := g.PowerOff(); err != nil {
		t.Error(err)
	}
}

// announce plays the switch of a machine: five announcements a second to each card, until the
// machine is off or the test ends.
func announce(ctx context.Context, t *testing.T, s *site.Site, g *lab.Guest) {
	t.Helper()
	go func() {
		for ctx.Err() == nil && g.Running() {
			for i, tap := range g.Taps {
				_ = netns.Namespace(s.Name).Announce(tap, netns.LLDP("leaf-7", fmt.Sprintf("ge-0/0/%d", i))) // the tap goes with the machine
			}
			time.Sleep(200 * time.Millisecond)
		}
	}()
}

// stranger waits until the only unknown machine is as is says.
func stranger(ctx context.Context, t *testing.T, s *site.Site, what string, is func(pools.Unknown) bool) (u pools.Unknown) {
	t.Helper()
	fixture.Until(ctx, t, what, func() (bool, error) {
		var all []pools.Unknown
		err := s.Drover.Call(ctx, http.MethodGet, "/api/v1/unknown", nil, &all)
		if err != nil || len(all) != 1 {
			return false, err
		}
		u = all[0]
		return is(u), nil
	})
	return u
}
