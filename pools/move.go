package pools

import "time"

// Move is a node whose machine the config has given to another cluster, or
// another name, while its Node is still in the cluster before.
type Move struct {
	Node   string    `json:"node"`         // in From
	From   string    `json:"from"`         // cluster
	To     string    `json:"to,omitempty"` // cluster; empty: none
	As     string    `json:"as"`           // the node that the machine is now
	Step   MoveStep  `json:"step"`
	Detail string    `json:"detail,omitempty"` // what it waits for
	Since  time.Time `json:"since"`
}

// MoveStep is how far a node is on its way out of a cluster.
type MoveStep string

// The steps. Those before MoveDrained keep their pods; none of them does
// anything to the machine, whose next boot is the operator's.
const (
	MoveBegun   MoveStep = "begun"   // not cordoned yet
	MoveDrains  MoveStep = "drains"  // cordoned; its pods are evicted
	MoveHeld    MoveStep = "held"    // the time limit is over, and pods are left
	MoveDrained MoveStep = "drained" // waits until its kubelet is gone, then its Node is deleted
	MoveStays   MoveStep = "stays"   // drover cannot prove that it made the Node, so it touches nothing
)

// Summary returns one line for people: from where to where, and how far.
func (m Move) Summary() string {
	to := m.To
	if to == "" {
		to = "no cluster"
	}
	s := "moving from " + m.From + " to " + to
	if m.From == m.To {
		s = "moving in " + m.From + " from " + m.Node + " to " + m.As
	}
	s += ": " + string(m.Step)
	if m.Detail != "" {
		s += ", " + m.Detail
	}
	return s
}
