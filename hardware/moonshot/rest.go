package moonshot

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"drover/hardware/bmc"
	"drover/hardware/redfish"
	"drover/internal/printable"
	"drover/pools"
)

// restSystems is the collection of nodes in the REST interface of a chassis manager. The
// interface is that of iLO 4 before Redfish.
const restSystems = "/rest/v1/Systems"

// readREST reads the inventory over REST. It fails for firmware that has no MACs there.
func readREST(ctx context.Context, c *redfish.Client) (*Inventory, error) {
	links, err := c.Collection(ctx, restSystems)
	if err != nil {
		return nil, err
	}
	inv := &Inventory{Nodes: []Node{}}
	seen := map[pools.Slot]bool{}
	macs := 0
	for _, link := range links {
		t, err := c.Get(ctx, link)
		if err != nil {
			return nil, err
		}
		slot, ok := slotOf(link, t)
		switch {
		case !ok:
			inv.Warnings = append(inv.Warnings, Note{Text: fmt.Sprintf("%s names no slot", printable.Line(link, maxShown))})
			continue
		case seen[slot]:
			continue
		}
		seen[slot] = true
		n, err := restNode(slot, t)
		if err != nil {
			inv.Problems = append(inv.Problems, Note{Slot: slot, Text: err.Error()})
			continue
		}
		macs += len(n.NICs)
		inv.Nodes = append(inv.Nodes, n)
	}
	if macs == 0 {
		return nil, fmt.Errorf("%w: %s tells no MACs over REST (use --via ssh)", bmc.ErrUnreadable, c.Address)
	}
	slices.SortFunc(inv.Nodes, func(a, b Node) int { return a.Compare(b.Slot) })
	return inv, nil
}

// slotsREST reads the slots that have a node over REST.
func slotsREST(ctx context.Context, c *redfish.Client) ([]pools.Slot, error) {
	links, err := c.Collection(ctx, restSystems)
	if err != nil {
		return nil, err
	}
	var out []pools.Slot
	for _, link := range links {
		if slot, ok := slotOf(link, redfish.Tree{}); ok {
			out = append(out, slot)
		}
	}
	slices.SortFunc(out, pools.Slot.Compare)
	return slices.Compact(out), nil
}

// slotOf returns the slot of a system: its link ends in C7N1, or its name is
// "Cartridge 7 Node 1".
func slotOf(link string, t redfish.Tree) (pools.Slot, bool) {
	if slot, ok := pools.ParseSlot(path.Base(strings.TrimSuffix(link, "/"))); ok {
		return slot, slot.Valid()
	}
	return slotInName(t.Get("Name").Text())
}

// slotInName reads the second and the fourth word of a name.
func slotInName(name string) (pools.Slot, bool) {
	words := strings.Fields(name)
	if len(words) < 4 {
		return pools.Slot{}, false
	}
	slot, ok := pools.ParseSlot("c" + words[1] + "n" + words[3])
	return slot, ok && slot.Valid()
}

func restNode(slot pools.Slot, t redfish.Tree) (Node, error) {
	n := Node{
		Slot: slot, Maker: t.Get("Manufacturer").Text(), Product: t.Get("Model").Text(),
		Serial: t.Get("SerialNumber").Text(), AssetTag: t.Get("AssetTag").Text(), Health: t.Get("Status", "Health").Text(),
	}
	n.Power = redfish.PowerState(t)
	macs := t.Get("HostCorrelation", "HostMACAddress").List()
	if len(macs) > bmc.MaxCards {
		return n, fmt.Errorf("%d network cards, more than %d", len(macs), bmc.MaxCards)
	}
	for i, m := range macs {
		mac, ok, err := bmc.CardMAC(m.Text())
		if err != nil {
			return n, fmt.Errorf("NIC %d: %w", i+1, err)
		}
		if ok {
			n.NICs = append(n.NICs, NIC{Number: i + 1, MAC: mac})
		}
	}
	return n, nil
}
