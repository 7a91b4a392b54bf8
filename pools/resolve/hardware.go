package resolve

import (
	"slices"

	"drover/pools"
)

// MatchesHardware reports whether the pool of a machine can depend on the hardware that it
// has reported. If not, [Query.Hardware] is not needed.
func (f *Farm) MatchesHardware() bool {
	return slices.ContainsFunc(f.catchalls, func(e *entry) bool {
		return e.matcher != nil && (e.matcher.reported != nil || e.matcher.dmi != nil || e.matcher.lldp != nil)
	})
}

// matchesHardware reports whether the hardware of a machine meets the conditions of vendor,
// product and switch port. A machine that has reported none meets no condition.
func (m *matcher) matchesHardware(v *pools.Inventory) bool {
	if m.dmi == nil && m.lldp == nil {
		return true
	}
	if v == nil || m.dmi != nil && !m.dmi.matches(v.DMI()) {
		return false
	}
	return m.lldp == nil || slices.ContainsFunc(v.NICs, func(n pools.InventoryNIC) bool {
		return n.LLDP != nil && m.lldp.matches(n.LLDP.String())
	})
}
