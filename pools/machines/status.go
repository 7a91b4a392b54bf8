package machines

import (
	"bytes"
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
)

// Status is a machine with its newest boot.
type Status struct {
	Node pools.NodeInfo // without declared MACs: with the MACs that booted as it
	Boot boots.Record   // with an empty ID if no boot is known
	// Unknown is set for hardware that no node declares. Its name and pool are
	// those of its boot.
	Unknown bool
}

// List joins the nodes of a farm with the boots, which are sorted newest first.
// The nodes come first, in their order; the unknown hardware that booted follows,
// by name.
func List(f *resolve.Farm, records []boots.Record) []Status {
	newest := map[pools.MAC]boots.Record{}
	booted := map[string][]pools.MAC{} // by name of the node
	for _, r := range records {
		if _, older := newest[r.MAC]; !older {
			newest[r.MAC] = r
			booted[r.Node] = append(booted[r.Node], r.MAC)
		}
	}
	var all []Status
	for _, n := range f.Nodes() {
		if len(n.MACs) == 0 {
			n.MACs = booted[n.Name]
			slices.SortFunc(n.MACs, func(a, b pools.MAC) int { return bytes.Compare(a[:], b[:]) })
		}
		s := Status{Node: n}
		for _, mac := range n.MACs {
			if r, ok := newest[mac]; ok && r.ID > s.Boot.ID {
				s.Boot = r
			}
			delete(newest, mac)
		}
		all = append(all, s)
	}
	known := len(all)
	for mac, r := range newest {
		n := pools.PoolNode{Pool: r.Pool, Node: pools.Node{Name: r.Node, MACs: []pools.MAC{mac}}}
		all = append(all, Status{Node: pools.NodeInfo{PoolNode: n}, Boot: r, Unknown: true})
	}
	slices.SortFunc(all[known:], func(a, b Status) int { return strings.Compare(a.Node.Name, b.Node.Name) })
	return all
}
