package hardware_test

import (
	"fmt"
	"testing"

	"drover/hardware"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
)

// fixed is a farm that does not change.
type fixed struct{ farm *resolve.Farm }

func (f fixed) Farm() *resolve.Farm { return f.farm }

// TestPlaces: a node is in the slot of its place, else in the one that has its name.
func TestPlaces(t *testing.T) {
	farm, err := config.Parse("drover.yaml", []byte(`server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16}]
pools: [{name: compute, image: debian-12}]
chassis:
  - {name: m1, address: ilo-m1, passwordFile: pass, pool: compute}
  - {name: m2, address: ilo-m2, passwordFile: pass, pool: compute, nameTemplate: "rack-{{.Cartridge}}-{{.Node}}"}
`))
	if err != nil {
		t.Fatal(err)
	}
	s := hardware.New()
	s.Farm = fixed{farm}
	for _, tt := range []struct {
		name, chassis, slot string
		want                string
	}{
		{"n1", "", "", ""},
		{"n1", "m1", "c3n1", "chassis m1 c3n1"},
		{"m1c4n1", "", "", "chassis m1 c4n1"},
		{"m1c4n1", "m2", "c5n2", "chassis m2 c5n2"},
		{"rack-7-1", "", "", "chassis m2 c7n1"},
		{"rack-7-1", "m9", "c1n1", ""},
		{"rack-46-1", "", "", ""},
	} {
		n := pools.NodeInfo{PoolNode: pools.PoolNode{Node: pools.Node{Name: tt.name, ChassisSlot: pools.ChassisSlot{Chassis: tt.chassis, Slot: tt.slot}}}}
		if got := fmt.Sprint(s.Places([]pools.NodeInfo{n})[0]); got != tt.want {
			t.Errorf("%s in %q %s: got %q, want %q", tt.name, tt.chassis, tt.slot, got, tt.want)
		}
	}
}
