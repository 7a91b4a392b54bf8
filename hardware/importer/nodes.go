package importer

import (
	"cmp"
	"maps"
	"slices"

	"drover/pools"
)

// CompareNodes returns the changes from the stored nodes to nodes of the config of another
// server. Their names, MACs, addresses and names differ from each other. A stored node
// keeps its pool, its slot, its power, and tags and options that the other config does not
// have. No change is [Missing], because the stored nodes may be of several servers.
func CompareNodes(nodes []pools.PoolNode, stored Stored) []Change {
	d := newDiff(stored)
	d.whole = true
	imported := make([]ImportedNode, len(nodes))
	for i, n := range nodes {
		imported[i] = ImportedNode{PoolNode: n}
	}
	d.compare(imported)
	return d.changes
}

// over returns a node of another config, with the values of the stored node that the other
// config does not have.
func (n ImportedNode) over(old pools.PoolNode) pools.PoolNode {
	node := n.PoolNode
	node.Pool, node.ChassisSlot, node.Power = old.Pool, old.ChassisSlot, cmp.Or(old.Power, n.Power)
	node.Tags = slices.Clone(n.Tags)
	for _, tag := range old.Tags {
		if !slices.Contains(node.Tags, tag) {
			node.Tags = append(node.Tags, tag)
		}
	}
	if len(old.DHCPOptions) > 0 {
		node.DHCPOptions = maps.Clone(old.DHCPOptions)
		maps.Copy(node.DHCPOptions, n.DHCPOptions)
	}
	return node
}
