package pools_test

import (
	"strings"
	"testing"

	"drover/pools"
)

// TestInventoryClean: an inventory comes from a machine that may lie.
func TestInventoryClean(t *testing.T) {
	long := strings.Repeat("x", 1000)
	bad := pools.Inventory{Vendor: "\x1b[2J" + long, Serial: " S1\n", CPUs: -5, Memory: -1, CPU: "a\x00b"}
	for range 100 {
		bad.Disks = append(bad.Disks, pools.InventoryDisk{Name: long, Model: "\a", Size: -1})
		bad.NICs = append(bad.NICs, pools.InventoryNIC{Name: long, MAC: long, Speed: 1 << 30, LLDP: &pools.Neighbour{System: long, Port: "\x1b[2J"}})
	}
	got := bad.Clean()
	if len(got.Vendor) > 70 || strings.ContainsAny(got.Vendor+got.CPU, "\x1b\x00") || got.Serial != "S1" || got.CPUs != 0 || got.Memory != 0 {
		t.Errorf("got %+v", got)
	}
	if len(got.Disks) != 16 || len(got.NICs) != 16 || len(got.Disks[0].Name) > 70 || got.Disks[0].Model != "?" || got.Disks[0].Size != 0 || got.NICs[0].Speed != 1<<24 {
		t.Errorf("got %d disks, %d cards: %+v", len(got.Disks), len(got.NICs), got.Disks[0])
	}
	if n := got.NICs[0].LLDP; len(n.System) > 70 || n.Port != "?[2J" {
		t.Errorf("got neighbour %+v", n)
	}
	if bad.Disks[0].Name != long || bad.NICs[0].LLDP.System != long {
		t.Error("the original was changed")
	}
	small := pools.Inventory{Vendor: "HPE", Product: "m710x", CPUs: 8, Memory: 32 << 30, Disks: []pools.InventoryDisk{{Size: 480e9}}, NICs: make([]pools.InventoryNIC, 2)}
	if got, want := small.String(), "HPE m710x, 8 CPUs, 32.0 GiB, 1 disks of 480 GB, 2 network cards"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	small.Chassis, small.Slot = "CH9", "12"
	small.NICs[0] = pools.InventoryNIC{Name: "eth0", LLDP: &pools.Neighbour{System: "leaf-7", Chassis: "02:00:00:00:00:01", Port: "ge-0/0/7"}}
	small.NICs[1] = pools.InventoryNIC{Name: "eth1", LLDP: &pools.Neighbour{Chassis: "02:00:00:00:00:02", Port: "4"}}
	want := "HPE m710x, chassis CH9, slot 12, 8 CPUs, 32.0 GiB, 1 disks of 480 GB, 2 network cards, eth0 at leaf-7 ge-0/0/7, eth1 at 02:00:00:00:00:02 4"
	if got := small.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
