package moonshot

import (
	"fmt"
	"maps"
	"slices"

	"drover/hardware/bmc"
	"drover/pools"
)

// parseSlots reads the slots that have a node from the output of "show node list".
func parseSlots(command, text string) ([]pools.Slot, error) {
	p, rest, err := parseTables(text)
	if err != nil {
		return nil, err
	}
	if !p.list {
		if err := refusal(rest); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: no list of nodes in the answer to %q", bmc.ErrUnreadable, command)
	}
	maps.DeleteFunc(p.nodes, func(_ pools.Slot, f *found) bool { return f.empty || f.bad })
	return slices.SortedFunc(maps.Keys(p.nodes), pools.Slot.Compare), nil
}
