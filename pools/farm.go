package pools

import "time"

// Farm is a config that was checked as a whole, with the nodes added over the
// API. It does not change.
type Farm struct {
	Config Config
	Source string // the file it was read from

	added []PoolNode
}

// NodeInfo is a node of a farm with where it comes from.
type NodeInfo struct {
	PoolNode
	Source Origin `json:"source"` // the line that declares it, or the API
}

// Declared tells whether the operator's file declares the node.
func (n NodeInfo) Declared() bool { return n.Source.File != "" }

// Load reads and checks the config file at path, together with nodes added over
// the API. What is wrong is returned all at once, as [Errors].
func Load(path string, added ...PoolNode) (*Farm, error) { panic("being written") }

// Nodes returns every node, declared ones first, in order.
func (f *Farm) Nodes() []NodeInfo { panic("being written") }

// Node returns the node of that name.
func (f *Farm) Node(name string) (NodeInfo, bool) { panic("being written") }

// Resolve answers the one question: what is this machine to do? It returns nil
// when the machine is none of ours. It is safe for concurrent use.
func (f *Farm) Resolve(q Query) *Plan { panic("being written") }

// Cluster returns the cluster of that name.
func (f *Farm) Cluster(name string) (Cluster, bool) { panic("being written") }

func (f *Farm) with(added []PoolNode) (*Farm, error) { panic("being written") }

var _ = time.Second
