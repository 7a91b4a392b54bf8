package pools

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// PoolNode is a node together with the name of its pool: what the REST API
// takes and gives, and what the state file keeps.
type PoolNode struct {
	Pool string `json:"pool"`
	Node
}

// NodeInfo is a node of a farm with where it comes from.
type NodeInfo struct {
	PoolNode
	Source Origin `json:"source"` // the line that declares it, or the API

	// NextBoot is what no boot has taken yet; only the REST API fills it in.
	NextBoot NextBoot `json:"nextBoot,omitempty"`
}

// Declared reports whether the operator's file declares the node.
func (n NodeInfo) Declared() bool { return n.Source.File != "" }

// Origin returns where a node that no file declares comes from: a chassis, or the
// API.
func (n PoolNode) Origin() Origin {
	if !n.ChassisSlot.IsZero() {
		return Origin{Path: n.ChassisSlot.String()}
	}
	return Origin{Path: fmt.Sprintf("API (node %q)", n.Name)}
}

const catchAllPrefix = "node-"

// CatchAllName returns the name of a machine that no node declares.
func CatchAllName(m MAC) string { return catchAllPrefix + m.Hex() }

// CatchAllMAC returns the MAC in a name that [CatchAllName] made.
func CatchAllMAC(name string) (m MAC, ok bool) {
	digits, ok := strings.CutPrefix(name, catchAllPrefix)
	if !ok || len(digits) != 12 || strings.ToLower(digits) != digits {
		return m, false
	}
	_, err := hex.Decode(m[:], []byte(digits))
	return m, err == nil
}

// Refusals of a change. Test with errors.Is and errors.AsType.
var (
	ErrNotFound = errors.New("no such node")
	ErrExists   = errors.New("a node of that name exists")
)

// NodeChange is one of several changes of nodes that are made together.
type NodeChange struct {
	Old *PoolNode `json:"old,omitempty"` // as the client has seen it; nil: there is none
	New *PoolNode `json:"new,omitempty"` // as it is to be; nil: it is to be removed
}

// ErrChanged refuses a change of a node that differs from [NodeChange].Old. Read the
// node again, and decide anew.
var ErrChanged = errors.New("a node was changed meanwhile")

// SubnetOf returns the index of the subnet that holds a, or -1.
func (c *Config) SubnetOf(a netip.Addr) int {
	for i, s := range c.Subnets {
		if s.CIDR.IsValid() && s.CIDR.Contains(a) {
			return i
		}
	}
	return -1
}
