package pools

import (
	"net/netip"
	"time"
)

// NodeStatus is how a machine is, as a running server knows it.
type NodeStatus struct {
	State   NodeState  `json:"state"`
	Since   time.Time  `json:"since,omitzero"`    // of its newest step
	Detail  string     `json:"detail,omitempty"`  // the step that it is at, and what is wrong
	Address netip.Addr `json:"address,omitzero"`  // in use: its own, or a leased one
	Cluster string     `json:"cluster,omitempty"` // of its last boot
	Image   string     `json:"image,omitempty"`   // of its last boot
	Booted  time.Time  `json:"booted,omitzero"`   // when its last boot began
	// Generation is the digest of the image that its last boot got; empty: it is not known.
	Generation string `json:"generation,omitempty"`
	// Outdated reports whether a boot now, as its pool says, would get another generation.
	Outdated bool `json:"outdated,omitempty"`
	// LastReady is the digest of the generation that was last Ready on it, or online without a cluster.
	LastReady string `json:"lastReady,omitempty"`
	// FellBack is the digest of a generation in place of which it boots LastReady, since its boots of it
	// have failed; empty: it boots what its pool says. FellBackAt is since when.
	FellBack   string    `json:"fellBack,omitempty"`
	FellBackAt time.Time `json:"fellBackAt,omitzero"`
	// Power is its power state, as the last power job saw it at PowerSeen; empty: none has.
	Power     string    `json:"power,omitempty"`
	PowerSeen time.Time `json:"powerSeen,omitzero"`
	PoolTags  []string  `json:"poolTags,omitempty"` // tags that it has from its pool
}

// NodeState is a word for how a machine is.
type NodeState string

// The states of nodes.
const (
	NodeNew     NodeState = "new"     // no boot of it is known
	NodeIgnored NodeState = "ignored" // it gets no answer
	NodeBooting NodeState = "booting"
	NodeStuck   NodeState = "stuck"  // its boot makes no progress
	NodeOnline  NodeState = "online" // its image runs; it joins no cluster
	NodeReady   NodeState = "ready"  // its Node was Ready
	NodeMoving  NodeState = "moving" // it leaves a cluster
)

// NodeStates returns all states.
func NodeStates() []NodeState {
	return []NodeState{NodeNew, NodeIgnored, NodeBooting, NodeStuck, NodeOnline, NodeReady, NodeMoving}
}
