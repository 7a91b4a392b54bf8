// Package authz decides what a client that is limited to pools may do: it changes and switches
// nodes of its pools, and makes nodes only of machines that no other pool has.
//
// Such nodes have the tags of these pools alone, which bring files, passwords and keys with
// them, and no address that another pool leases or that is part of the network: a router, a name
// server, a relay agent, the server.
//
// A machine is in a pool by its MAC, which has a lease there, asked last in that catch-all pool or
// fits its match, and by its slot in a chassis. Other identities, such as the port of its relay agent, are known
// only once it boots: a node with such a match alone could be any machine.
//
// The package does not know what a change does, or how machines are switched.
package authz

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"drover/pools"
	"drover/pools/resolve"
	"drover/web/answer"
	"drover/web/auth"
)

// Places returns where nodes are in the chassis of the config, in their order: by the place
// that they have, or else by their name. It is the zero ChassisSlot for a node in none.
type Places func(nodes []pools.NodeInfo) []pools.ChassisSlot

// Machines is what is known of machines. Every field must be set.
type Machines struct {
	Farm     *resolve.Farm
	Places   Places
	Unknowns func() []pools.Unknown
	Leases   func() []pools.Lease // of all pools, also expired ones
	Now      time.Time
}

// Change returns an error with status 403 if a client must not make one of the changes: it
// changes a node of another pool, or takes a machine that another pool has.
func (m *Machines) Change(by auth.Client, changes []pools.NodeChange) error {
	if !by.Limited() {
		return nil
	}
	macs := map[pools.MAC]bool{}
	for _, c := range changes {
		for _, n := range []*pools.PoolNode{c.Old, c.New} {
			if n == nil {
				continue
			}
			if err := by.May(n.Pool); err != nil {
				return err
			}
			for _, mac := range n.MACs {
				macs[mac] = true
			}
		}
	}
	var placed []pools.NodeInfo
	for _, c := range changes {
		if c.Old != nil {
			for _, mac := range c.Old.MACs {
				delete(macs, mac)
			}
		}
		if err := identified(by, c); err != nil {
			return err
		}
		if err := m.scope(by, c); err != nil {
			return err
		}
		if c.New != nil && (c.Old == nil || c.Old.Name != c.New.Name || c.Old.ChassisSlot != c.New.ChassisSlot) {
			placed = append(placed, pools.NodeInfo{PoolNode: *c.New})
		}
	}
	if err := m.place(by, placed); err != nil {
		return err
	}
	if err := m.quota(by, changes); err != nil {
		return err
	}
	return m.take(by, macs)
}

// identified returns an error for a node that the change makes known by its match alone. The
// leases of such a node are found by its name.
func identified(by auth.Client, c pools.NodeChange) error {
	n, old := c.New, c.Old
	switch {
	case n == nil || len(n.MACs) > 0 || n.Match.IsZero():
		return nil
	case old != nil && len(old.MACs) == 0 && old.Match == n.Match && old.Name == n.Name:
		return nil
	}
	return &answer.Error{
		Code: http.StatusForbidden, Name: answer.CodeForbidden, Field: "match", Remedy: "give it the MACs of its machine; a node without MACs is for a client without pools",
		Msg: fmt.Sprintf("node %q has a match and no MACs, so that it could take a machine of any pool, and %q is limited to the pools %q", n.Name, by.Name, by.Pools),
	}
}

// place returns an error if one of these nodes, which are new where they are, is in a chassis
// of another pool, or in the slot of another pool's node.
func (m *Machines) place(by auth.Client, nodes []pools.NodeInfo) error {
	if len(nodes) == 0 {
		return nil
	}
	places := m.Places(nodes)
	for i, p := range places {
		n := &nodes[i]
		if p.IsZero() {
			p = n.ChassisSlot // it may be in the config tomorrow
		}
		if p.IsZero() {
			continue
		}
		c, ok := m.Farm.Chassis(p.Chassis)
		if !ok {
			return &answer.Error{
				Code: http.StatusForbidden, Name: answer.CodeForbidden, Field: "place", Remedy: "leave the place out; one that is not in the config is for a client without pools",
				Msg: fmt.Sprintf("node %q is in %s, and the config has no such chassis, so that its pool is not known", n.Name, p),
			}
		}
		if err := by.May(c.Pool); err != nil {
			return inSlot(err, n.Name, p, "choose another name and place; a node of this chassis is for a client with its pool, or without pools")
		}
	}
	return slots(by, m.Farm, m.Places, nodes, places)
}

// Switch returns an error with status 403 if a client must not switch one of these nodes: it
// is of another pool, or its slot is also that of another pool's node.
func Switch(by auth.Client, farm *resolve.Farm, places Places, names []pools.PowerNode) error {
	if !by.Limited() {
		return nil
	}
	var inChassis []pools.NodeInfo
	for _, n := range names {
		node, ok := farm.Node(n.Name)
		if !ok {
			return fmt.Errorf("%w: %q", pools.ErrNotFound, n.Name)
		}
		if err := by.May(node.Pool); err != nil {
			return err
		}
		if node.Power == nil {
			inChassis = append(inChassis, node)
		}
	}
	return slots(by, farm, places, inChassis, places(inChassis))
}

// slots returns an error if a node of another pool is in one of the slots at of nodes.
func slots(by auth.Client, farm *resolve.Farm, places Places, nodes []pools.NodeInfo, at []pools.ChassisSlot) error {
	in := map[pools.ChassisSlot]string{}
	for i, p := range at {
		if !p.IsZero() {
			in[p] = nodes[i].Name
		}
	}
	if len(in) == 0 {
		return nil
	}
	all := farm.Nodes()
	for i, p := range places(all) {
		if name, ok := in[p]; ok {
			if err := by.May(all[i].Pool); err != nil {
				return inSlot(err, name, p, fmt.Sprintf("it is the slot of node %q: ask a client with its pool, or without pools", all[i].Name))
			}
		}
	}
	return nil
}

// inSlot adds the slot of a node to an error of [auth.Client.May].
func inSlot(err error, node string, p pools.ChassisSlot, remedy string) error {
	if e, ok := errors.AsType[*answer.Error](err); ok {
		return &answer.Error{Code: e.Code, Name: e.Name, Field: "place", Remedy: remedy, Msg: fmt.Sprintf("node %q is in %s: %s", node, p, e.Msg)}
	}
	return err
}

// take returns an error if one of the machines with these MACs is in a pool that the client
// must not change: that in which it asked last, or of its lease, or that takes it by its MAC.
func (m *Machines) take(by auth.Client, macs map[pools.MAC]bool) error {
	if len(macs) == 0 {
		return nil
	}
	for _, u := range m.Unknowns() {
		if !macs[u.MAC] || u.Pool == "" {
			continue
		}
		if err := by.May(u.Pool); err != nil {
			return err
		}
	}
	for _, l := range m.Leases() {
		if !macs[l.MAC] || !l.Active(m.Now) {
			continue
		}
		if err := by.May(l.Pool); err != nil {
			return err
		}
	}
	for mac := range macs {
		if err := m.Farm.ClaimMAC(mac, by.May); err != nil {
			return err
		}
	}
	return nil
}
