package pools

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// PoolNode is a node with the name of its pool. The REST API and the state file have
// nodes in this form.
type PoolNode struct {
	Pool string `json:"pool"` // name of its pool
	Node
}

// NodeInfo is a node of a farm with its origin.
type NodeInfo struct {
	PoolNode
	Source Origin `json:"source"` // the line that declares it, or the API

	// NextBoot is the instruction for the node's next boot. Only the REST API sets it.
	NextBoot NextBoot `json:"nextBoot,omitempty"`
	// Move is set while the node leaves a cluster, likewise.
	Move *Move `json:"move,omitempty"`
	// Status is how the machine is, likewise.
	Status *NodeStatus `json:"status,omitempty"`
	// CatchAll marks a machine of a catch-all pool that no node declares, likewise.
	CatchAll bool `json:"catchall,omitempty"`
}

// Declared reports whether the operator's file declares the node.
func (n NodeInfo) Declared() bool { return n.Source.File != "" }

// Origin returns the origin of a node that no file declares: a chassis, or the API.
func (n PoolNode) Origin() Origin {
	if !n.ChassisSlot.IsZero() {
		return Origin{Path: n.ChassisSlot.String()}
	}
	return Origin{Path: fmt.Sprintf("API (node %q)", n.Name)}
}

const catchAllPrefix = "node-"

// CatchAllName returns the name of a machine that no node declares.
func CatchAllName(m MAC) string { return catchAllPrefix + m.Hex() }

// CatchAllMAC returns the MAC in a name of [CatchAllName]; ok is false for other names.
func CatchAllMAC(name string) (m MAC, ok bool) {
	digits, ok := strings.CutPrefix(name, catchAllPrefix)
	if !ok || len(digits) != 12 || strings.ToLower(digits) != digits {
		return m, false
	}
	_, err := hex.Decode(m[:], []byte(digits))
	return m, err == nil
}

// The errors of a change. Test with errors.Is.
var (
	ErrNotFound = errors.New("no such node")
	ErrExists   = errors.New("a node of that name exists")
)

// NodeChange adds, changes or removes one node.
type NodeChange struct {
	Old *PoolNode `json:"old,omitempty"` // as the client has read it; nil: the node is new
	New *PoolNode `json:"new,omitempty"` // to be stored; nil: the node is removed
}

// NodeBatch is several changes of nodes, of which all are made, or none.
type NodeBatch struct {
	Changes []NodeChange `json:"changes"`
}

// NodesChanged is the answer to a [NodeBatch].
type NodesChanged struct {
	Changed int `json:"changed"` // nodes
}

// NextBootRequest sets the next boot of a node.
type NextBootRequest struct {
	NextBoot string `json:"nextBoot"` // local, rescue or image=NAME
}

// ErrChanged is the error of a change whose Old differs from the stored node. The
// client must read the node again.
var ErrChanged = errors.New("a node was changed meanwhile")
