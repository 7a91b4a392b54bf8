package authz_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/resolve"
	"drover/web/api/authz"
	"drover/web/auth"
)

// machines is a farm with the pools red and blue, each with a tag of its own, and nodes of red.
func machines(added ...pools.PoolNode) *authz.Machines {
	cfg := pools.Config{
		Subnets: []pools.Subnet{{CIDR: netip.MustParsePrefix("10.28.0.0/16")}},
		Tags:    map[string]pools.Tag{"red": {}, "blue": {}},
		Pools:   []pools.Pool{{Name: "red", Tags: []string{"red"}}, {Name: "blue", Tags: []string{"blue"}}},
	}
	return &authz.Machines{
		Farm:     resolve.NewFarm(resolve.Checked{Config: cfg, Added: added}),
		Places:   func(nodes []pools.NodeInfo) []pools.ChassisSlot { return make([]pools.ChassisSlot, len(nodes)) },
		Unknowns: func() []pools.Unknown { return nil },
		Leases:   func() []pools.Lease { return nil },
	}
}

var red = auth.Client{Kind: auth.ByToken, Name: "red", Role: pools.RoleOperator, Pools: []string{"red"}}

func node(i int, tags ...string) pools.PoolNode {
	return pools.PoolNode{Pool: "red", Node: pools.Node{
		Name: fmt.Sprintf("n%d", i), MACs: []pools.MAC{{2, 0, 0, 0, byte(i >> 8), byte(i)}}, IP: netip.AddrFrom4([4]byte{10, 28, byte(i >> 8), byte(i)}), Tags: tags,
	}}
}

// TestTagsOfMachine: the tags that another client gave a node stay with its machine, since they
// bring files and passwords.
func TestTagsOfMachine(t *testing.T) {
	old := node(1, "blue")
	change := func(edit func(*pools.PoolNode)) pools.NodeChange {
		n := node(1, "blue")
		edit(&n)
		return pools.NodeChange{Old: &old, New: &n}
	}
	for _, tt := range []struct {
		name   string
		change pools.NodeChange
		ok     bool
	}{
		{"another card", change(func(n *pools.PoolNode) { n.MACs = []pools.MAC{{2, 0, 0, 0, 9, 9}} }), false},
		{"one more card", change(func(n *pools.PoolNode) { n.MACs = append(n.MACs, pools.MAC{2, 0, 0, 0, 9, 9}) }), false},
		{"a match", change(func(n *pools.PoolNode) { n.Match.UUID = "4c4c4544-0000-1000-8000-000000000001" }), false},
		{"another name, another card", change(func(n *pools.PoolNode) { n.Name, n.MACs = "n2", []pools.MAC{{2, 0, 0, 0, 9, 9}} }), false},
		{"another card without the tag", change(func(n *pools.PoolNode) { n.MACs, n.Tags = []pools.MAC{{2, 0, 0, 0, 9, 9}}, []string{"red"} }), true},
		{"another address", change(func(n *pools.PoolNode) { n.IP = netip.MustParseAddr("10.28.9.9") }), true},
		{"gone", pools.NodeChange{Old: &old}, true},
		{"new with it", pools.NodeChange{New: &old}, false},
	} {
		if err := machines(old).Change(red, []pools.NodeChange{tt.change}); (err == nil) != tt.ok {
			t.Errorf("%s: got error %v", tt.name, err)
		}
	}
}

// TestDelegateNames: such a client gives nodes of a pool only names that the pool delegates, in each
// way to get one. A name that another client gave stays with its machine.
func TestDelegateNames(t *testing.T) {
	own, others, second := node(1), node(2), node(3)
	own.Name, others.Name, second.Pool = "red-1", "cp1", "green"
	m := machines(own, others)
	m.Farm.Config.Pools[0].DelegateNames = pools.Strings{"red-*", "*-spare"}
	m.Farm.Config.Pools = append(m.Farm.Config.Pools, pools.Pool{Name: "green"})
	by := red
	by.Pools = []string{"red", "green"}
	change := func(old pools.PoolNode, edit func(*pools.PoolNode)) pools.NodeChange {
		n := old
		edit(&n)
		return pools.NodeChange{Old: &old, New: &n}
	}
	named := func(name string) func(*pools.PoolNode) { return func(n *pools.PoolNode) { n.Name = name } }
	added := func(name string) pools.NodeChange {
		n := node(9)
		n.Name = name
		return pools.NodeChange{New: &n}
	}
	for _, tt := range []struct {
		name   string
		change pools.NodeChange
		ok     bool
	}{
		{"new", added("red-9"), true},
		{"new, the second pattern", added("a-spare"), true},
		{"new, another", added("cp9"), false},
		{"new, with the pattern inside", added("a-red-9"), false},
		{"renamed", change(own, named("red-2")), true},
		{"renamed to another", change(own, named("cp9")), false},
		{"another name that stays", change(others, func(n *pools.PoolNode) { n.IP = netip.MustParseAddr("10.28.9.9") }), true},
		{"another name for another machine", change(others, func(n *pools.PoolNode) { n.MACs = []pools.MAC{{2, 0, 0, 0, 9, 9}} }), false},
		{"from a pool of all names", change(second, func(n *pools.PoolNode) { n.Pool = "red" }), false},
		{"into it", change(others, func(n *pools.PoolNode) { n.Pool = "green" }), true},
		{"gone", pools.NodeChange{Old: &others}, true},
	} {
		err := m.Change(by, []pools.NodeChange{tt.change})
		if (err == nil) != tt.ok || err != nil && !strings.Contains(err.Error(), "red-*, *-spare") {
			t.Errorf("%s: got error %v", tt.name, err)
		}
		if err := m.Change(auth.Client{Role: pools.RoleOperator}, []pools.NodeChange{tt.change}); err != nil {
			t.Errorf("%s, by a client without pools: %v", tt.name, err)
		}
	}
}

// TestQuota: a client that is limited to a pool cannot fill the server with nodes, and may always
// make fewer.
func TestQuota(t *testing.T) {
	const most = 4096
	var all []pools.PoolNode
	for i := range most - 1 {
		all = append(all, node(i+1))
	}
	m := machines(all...)
	a, b := node(most), node(most+1)
	if err := m.Change(red, []pools.NodeChange{{New: &a}}); err != nil {
		t.Error(err)
	}
	err := m.Change(red, []pools.NodeChange{{New: &a}, {New: &b}})
	if err == nil || !strings.Contains(err.Error(), "4096 at most") {
		t.Errorf("one too many: got error %v", err)
	}
	if err := m.Change(red, []pools.NodeChange{{Old: &all[0]}, {New: &a}, {New: &b}}); err != nil {
		t.Errorf("in place of another: %v", err)
	}
	if err := m.Change(auth.Client{Name: "all", Role: pools.RoleOperator}, []pools.NodeChange{{New: &a}, {New: &b}}); err != nil {
		t.Errorf("a client without pools: %v", err)
	}
}
