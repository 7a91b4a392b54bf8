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
		bad.NICs = append(bad.NICs, pools.InventoryNIC{Name: long, MAC: long, Speed: 1 << 30})
	}
	got := bad.Clean()
	if len(got.Vendor) > 70 || strings.ContainsAny(got.Vendor+got.CPU, "\x1b\x00") || got.Serial != "S1" || got.CPUs != 0 || got.Memory != 0 {
		t.Errorf("got %+v", got)
	}
	if len(got.Disks) != 16 || len(got.NICs) != 16 || len(got.Disks[0].Name) > 70 || got.Disks[0].Model != "?" || got.Disks[0].Size != 0 || got.NICs[0].Speed != 1<<24 {
		t.Errorf("got %d disks, %d cards: %+v", len(got.Disks), len(got.NICs), got.Disks[0])
	}
	if bad.Disks[0].Name != long {
		t.Error("the original was changed")
	}
	small := pools.Inventory{Vendor: "HPE", Product: "m710x", CPUs: 8, Memory: 32 << 30, Disks: []pools.InventoryDisk{{Size: 480e9}}, NICs: make([]pools.InventoryNIC, 2)}
	if got, want := small.String(), "HPE m710x, 8 CPUs, 32.0 GiB, 1 disks of 480 GB, 2 network cards"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
