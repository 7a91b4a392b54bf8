package hardware

import (
	"drover/hardware/importer"
	"drover/pools"
	"drover/pools/resolve"
)

// slotIndex finds the slots of nodes in the chassis of the config.
type slotIndex struct {
	farm   *resolve.Farm
	namers map[string]*importer.Namer // by chassis
}

func newSlotIndex(farm *resolve.Farm) slotIndex {
	x := slotIndex{farm, map[string]*importer.Namer{}}
	for _, c := range farm.Config.Chassis {
		if n, err := importer.NewNamer(c, false); err == nil { // the config was checked
			x.namers[c.Name] = n
		}
	}
	return x
}

// find returns the chassis and the slot of a node. It returns false for a node that is
// in no chassis of the config.
func (x slotIndex) find(n pools.NodeInfo) (pools.Chassis, pools.Slot, bool) {
	if n.ChassisSlot.Chassis != "" {
		c, ok := x.farm.Chassis(n.ChassisSlot.Chassis)
		slot, parsed := pools.ParseSlot(n.ChassisSlot.Slot)
		return c, slot, ok && parsed
	}
	for name, namer := range x.namers {
		if slot, ok := namer.SlotOf(n); ok {
			c, ok := x.farm.Chassis(name)
			return c, slot, ok
		}
	}
	return pools.Chassis{}, pools.Slot{}, false
}

// Places returns where nodes are in the chassis of the config, in their order: where
// [Service.Switch] would switch them. It is the zero ChassisSlot for a node in none.
func (s *Service) Places(nodes []pools.NodeInfo) []pools.ChassisSlot {
	slots := newSlotIndex(s.Farm.Farm())
	out := make([]pools.ChassisSlot, len(nodes))
	for i, n := range nodes {
		if c, slot, ok := slots.find(n); ok {
			out[i] = pools.ChassisSlot{Chassis: c.Name, Slot: slot.String()}
		}
	}
	return out
}

// target is a management processor, with the nodes of a job that it switches.
type target struct {
	lock    string         // name in locks; empty: no processor can switch the node
	chassis *pools.Chassis // nil: a processor of one machine
	node    pools.NodeInfo // the machine of such a processor
	at      []int          // indexes into the nodes of the job
	slots   []pools.Slot   // of these nodes, in a chassis
}

// keep leaves only the nodes for whose index wanted returns true.
func (t *target) keep(wanted func(i int) bool) {
	var at []int
	var slots []pools.Slot
	for k, i := range t.at {
		if !wanted(i) {
			continue
		}
		at = append(at, i)
		if t.chassis != nil {
			slots = append(slots, t.slots[k])
		}
	}
	t.at, t.slots = at, slots
}

// targets groups nodes by the management processor that switches them.
func targets(farm *resolve.Farm, nodes []pools.NodeInfo) []*target {
	slots := newSlotIndex(farm)
	byChassis := map[string]*target{}
	var out []*target
	for i, n := range nodes {
		if n.Power != nil {
			out = append(out, &target{lock: "machine " + n.Name, node: n, at: []int{i}})
			continue
		}
		c, slot, ok := slots.find(n)
		if !ok {
			out = append(out, &target{node: n, at: []int{i}})
			continue
		}
		t := byChassis[c.Name]
		if t == nil {
			t = &target{lock: "chassis " + c.Name, chassis: &c}
			byChassis[c.Name] = t
			out = append(out, t)
		}
		t.at, t.slots = append(t.at, i), append(t.slots, slot)
	}
	return out
}
