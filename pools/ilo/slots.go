package ilo

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// Slots asks a chassis over its command line which slots have a node.
func Slots(ctx context.Context, r Runner) ([]Slot, error) {
	const command = "show node list"
	text, err := r.Run(ctx, command)
	if err != nil {
		return nil, err
	}
	p := parser{nodes: map[Slot]*found{}}
	all, rest := tables(clean(text))
	for _, t := range all {
		if err := p.table(t); err != nil {
			return nil, err
		}
	}
	if !p.list {
		if err := refusal(rest); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: no list of nodes in the answer to %q", ErrUnreadable, command)
	}
	maps.DeleteFunc(p.nodes, func(_ Slot, f *found) bool { return f.empty || f.bad })
	return slices.SortedFunc(maps.Keys(p.nodes), Slot.Compare), nil
}

// SlotsREST asks a chassis over REST which slots have a node.
func SlotsREST(ctx context.Context, s *Site) ([]Slot, error) {
	links, err := s.collection(ctx, restSystems)
	if err != nil {
		return nil, err
	}
	var out []Slot
	for _, link := range links {
		if slot, ok := slotOf(link, tree{}); ok {
			out = append(out, slot)
		}
	}
	slices.SortFunc(out, Slot.Compare)
	return slices.Compact(out), nil
}
