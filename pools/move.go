package pools

import "time"

// Move is a node whose machine the config has moved to another cluster or renamed,
// while its Node is still in the old cluster.
type Move struct {
	Node   string    `json:"node"`         // in From
	From   string    `json:"from"`         // cluster
	To     string    `json:"to,omitempty"` // cluster; empty: none
	As     string    `json:"as"`           // the new name of the node
	Step   MoveStep  `json:"step"`
	Detail string    `json:"detail,omitempty"` // the reason for waiting
	Since  time.Time `json:"since"`
}

// MoveStep is the progress of a [Move].
type MoveStep string

// The steps of a move. No step reboots the machine: the operator starts its next boot.
const (
	MoveBegun   MoveStep = "begun"   // not cordoned yet
	MoveDrains  MoveStep = "drains"  // cordoned; its pods are being evicted
	MoveHeld    MoveStep = "held"    // the drain timeout is over, and pods are left
	MoveDrained MoveStep = "drained" // the Node is deleted when its kubelet is gone
	MoveStays   MoveStep = "stays"   // drover cannot prove that it made the Node, so it changes nothing
)

// Summary returns the move as one line of text: "moving from a to b: drains, 2 pods
// left".
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
