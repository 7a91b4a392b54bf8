package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"drover/pools"
)

// merge returns the machines, each once: other servers have one entry for each network
// card, or for each family of addresses. Entries that contradict each other are conflicts.
func (f *Farm) merge() (machines []*Machine) {
	byMAC, byIP := map[pools.MAC]*Machine{}, map[netip.Addr]*Machine{}
	for _, m := range f.machines {
		if len(m.MACs) == 0 && m.Match.IsZero() {
			machines = append(machines, m) // it will be left out, and stands for no other
			continue
		}
		first := byIP[cmp.Or(m.IP, m.IP6)]
		for _, mac := range m.MACs {
			first = cmp.Or(byMAC[mac], first)
		}
		if first == nil {
			first = m
			machines = append(machines, m)
		} else if why := f.join(first, m); why != "" {
			f.clash(m.At, "machine %s: %s of machine %s in %s", m, why, first, first.At.Position())
			if m.Ignore && !first.Ignore {
				f.Close(m.At, "ignore "+m.String())
			}
			continue
		}
		for _, mac := range first.MACs {
			byMAC[mac] = first
		}
		for _, a := range []netip.Addr{first.IP, first.IP6} {
			if a.IsValid() {
				byIP[a] = first
			}
		}
	}
	return machines
}

// join adds the entry m of a machine to an earlier one. It returns the reason when the two
// contradict each other.
func (f *Farm) join(first, m *Machine) string {
	sameCard := slices.ContainsFunc(m.MACs, func(mac pools.MAC) bool { return slices.Contains(first.MACs, mac) })
	switch {
	case first.IP.IsValid() && m.IP.IsValid() && first.IP != m.IP, first.IP6.IsValid() && m.IP6.IsValid() && first.IP6 != m.IP6:
		return "it has a MAC"
	case !sameCard && (len(m.MACs) == 0 || len(first.MACs) == 0):
		return "it has the address"
	case f.Apart && !sameCard && m.Name != "" && first.Name != "" && !strings.EqualFold(m.Name, first.Name):
		return "it has the address"
	case m.Pool != "" && first.Pool != "" && m.Pool != first.Pool:
		return fmt.Sprintf("it is of pool %q", m.Pool)
	case !first.Match.IsZero() && !m.Match.IsZero() && first.Match != m.Match:
		return "it has another match, and the address"
	}
	if !sameCard || !strings.EqualFold(cmp.Or(m.Name, first.Name), first.Name) {
		f.Taken(m.At, "pools[].nodes[]; machine "+m.String()+" is one node with "+first.String()+" of "+first.At.Position()+": they share a card or an address")
	}
	first.Name = cmp.Or(first.Name, m.Name)
	if !first.IP.IsValid() {
		first.IP = m.IP
	}
	if !first.IP6.IsValid() {
		first.IP6 = m.IP6
	}
	if first.Match.IsZero() {
		first.Match = m.Match
	}
	first.MACs = Union(first.MACs, m.MACs)
	first.Tags = Union(first.Tags, m.Tags)
	first.Ignore = first.Ignore || m.Ignore
	if m.scope != nil && first.scope != nil {
		m.scope.heirs = append(m.scope.heirs, first.scope)
	} else if m.scope != nil {
		first.scope = m.scope
	}
	first.Power = cmp.Or(first.Power, m.Power)
	if len(m.DHCPOptions) > 0 {
		all := maps.Clone(m.DHCPOptions)
		maps.Copy(all, first.DHCPOptions)
		first.DHCPOptions = all
	}
	return ""
}

// Union returns a with the items of b that it does not have.
func Union[T comparable](a, b []T) []T {
	for _, v := range b {
		if !slices.Contains(a, v) {
			a = append(a, v)
		}
	}
	return a
}
