package api

import (
	"drover/pools"
	"drover/web/auth"
)

// hasOptions reports whether a node has options of its power, which can have passwords. Only
// the config file can declare such a node.
func hasOptions(n *pools.PoolNode) bool { return n.Power != nil && len(n.Power.Options) > 0 }

func withoutOptions(n pools.PoolNode) pools.PoolNode {
	if hasOptions(&n) {
		power := *n.Power
		power.Options = nil
		n.Power = &power
	}
	return n
}

// shown returns a node as a client may see it.
func shown(n pools.PoolNode, by auth.Client) pools.PoolNode {
	if by.SeesSecrets() {
		return n
	}
	return withoutOptions(n)
}

// shownNodes returns all nodes as clients see them that see no secrets.
func (a *API) shownNodes() []pools.NodeInfo {
	all := a.allNodes()
	for i := range all {
		all[i].PoolNode = withoutOptions(all[i].PoolNode)
	}
	return all
}
