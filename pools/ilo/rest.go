package ilo

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"drover/pools"
)

// Paths of the REST interface of a chassis manager. It is what iLO 4 had before
// Redfish.
const (
	restSystems = "/rest/v1/Systems"
	restSummary = "/rest/v1/SystemsSummary"
)

// maxMembers bounds what a collection may hold; it may link in circles.
const maxMembers = 4 * Cartridges * NodesEach

// ScrapeREST asks a chassis over REST what it holds. Whether a chassis tells
// MACs this way depends on its firmware; one that does not is [ErrUnreadable],
// and is to be asked over SSH.
func ScrapeREST(ctx context.Context, s *Site) (*Inventory, error) {
	links, err := s.collection(ctx, restSystems)
	if err != nil {
		return nil, err
	}
	inv := &Inventory{Nodes: []Node{}}
	seen := map[Slot]bool{}
	macs := 0
	for _, link := range links {
		var t tree
		if err := s.call(ctx, http.MethodGet, link, nil, &t); err != nil {
			return nil, err
		}
		slot, ok := slotOf(link, t)
		switch {
		case !ok:
			inv.Warnings = append(inv.Warnings, Note{Text: fmt.Sprintf("%s names no slot", clip(link))})
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
		return nil, fmt.Errorf("%w: %s tells no MACs over REST (use --via ssh)", ErrUnreadable, s.Address)
	}
	slices.SortFunc(inv.Nodes, func(a, b Node) int { return a.Compare(b.Slot) })
	return inv, nil
}

// collection returns the links to all members of a collection.
func (s *Site) collection(ctx context.Context, at string) ([]string, error) {
	var out []string
	visited := map[string]bool{}
	for at != "" && !visited[at] && len(out) <= maxMembers {
		visited[at] = true
		var t tree
		if err := s.call(ctx, http.MethodGet, at, nil, &t); err != nil {
			return nil, err
		}
		for _, link := range t.members() {
			if key := strings.ToLower(link); !visited[key] {
				visited[key] = true
				out = append(out, link)
			}
		}
		at = t.next()
	}
	if len(out) > maxMembers {
		return nil, fmt.Errorf("%w: %s: a collection of more than %d members", ErrUnreadable, s.Address, maxMembers)
	}
	return out, nil
}

// slotOf finds out which slot a system is in: its link ends in C7N1, and its
// name is "Cartridge 7 Node 1".
func slotOf(link string, t tree) (Slot, bool) {
	if slot, ok := slotForm(path.Base(strings.TrimSuffix(link, "/"))); ok {
		return slot, slot.valid()
	}
	return slotInName(t.get("Name").text())
}

// slotInName takes the second and the fourth word of a name.
func slotInName(name string) (Slot, bool) {
	words := strings.Fields(name)
	if len(words) < 4 {
		return Slot{}, false
	}
	x, okX := digits(words[1])
	y, okY := digits(words[3])
	slot := Slot{x, y}
	return slot, okX && okY && slot.valid()
}

func restNode(slot Slot, t tree) (Node, error) {
	n := Node{
		Slot: slot, Maker: t.get("Manufacturer").text(), Product: t.get("Model").text(),
		Serial: t.get("SerialNumber").text(), AssetTag: t.get("AssetTag").text(), Health: t.get("Status", "Health").text(),
	}
	n.Power, _ = parseState(powerWord(t))
	for i, m := range t.get("HostCorrelation", "HostMACAddress").list() {
		mac, ok, err := cardMAC(m.text())
		if err != nil {
			return n, fmt.Errorf("NIC %d: %w", i+1, err)
		}
		if ok {
			n.NICs = append(n.NICs, NIC{Number: i + 1, MAC: mac})
		}
	}
	return n, nil
}

// powerWord is the power state of a system: Power is the older name.
func powerWord(t tree) string { return cmp.Or(t.get("PowerState").text(), t.get("Power").text()) }

// cardMAC reads the MAC of a card; ok is false for a card that has none.
func cardMAC(s string) (mac pools.MAC, ok bool, err error) {
	if noValue(s) || unset(s) {
		return mac, false, nil
	}
	mac, err = pools.ParseMAC(s)
	return mac, err == nil, err
}
