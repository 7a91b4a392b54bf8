package pools

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// PoolNode is a node together with the name of its pool: what the REST API
// takes and gives, and what the state file keeps.
type PoolNode struct {
	Pool string `json:"pool"`
	Node
}

// NodeStore keeps the nodes added over the API.
type NodeStore interface {
	// Nodes returns all of them, in any order.
	Nodes() ([]PoolNode, error)
	// ChangeNodes stores nodes under their names and removes those of other
	// names, durably, before it returns: all of it or, when it returns an
	// error, nothing. To remove one that is not there is no error.
	ChangeNodes(put []PoolNode, remove []string) error
}

// Refusals of a change. Test with errors.Is and errors.AsType.
var (
	ErrNotFound = errors.New("no such node")
	ErrExists   = errors.New("a node of that name exists")
)

// DeclaredError refuses a change of a node that the operator's file declares.
type DeclaredError struct {
	Name  string
	Where Origin
}

func (e *DeclaredError) Error() string {
	return fmt.Sprintf("node %q is declared in %s: change it there", e.Name, e.Where.Place())
}

// Live is the farm in force, and the one way to change it. Whatever changes (a
// reload of the file, a node over the API), the whole farm is built and
// checked anew, what must last is stored, and only then is the new farm
// swapped in; a bad change leaves the old one in force. Reading never blocks.
type Live struct {
	// Recall tells who a machine was found to be when DHCP last gave it an
	// address. It is asked for a MAC that no node declares when there is
	// nothing but the MAC: neither an HTTP request nor a renewal tells the port
	// of the switch. Set it before the first Resolve; nil: nobody remembers.
	Recall func(MAC) (Identity, bool)

	// NextBoot tells what the node of that name does at its next boot; empty:
	// as its pool says. Set it before the first Resolve; nil: there are none.
	NextBoot func(node string) NextBoot

	path  string
	store NodeStore
	mu    sync.Mutex // held by changes
	farm  atomic.Pointer[Farm]
}

// NewLive reads the config file at path and the nodes of store.
func NewLive(path string, store NodeStore) (*Live, error) {
	l := &Live{path: path, store: store}
	return l, l.Reload()
}

// Farm returns the farm in force.
func (l *Live) Farm() *Farm { return l.farm.Load() }

// Resolve asks the farm in force.
func (l *Live) Resolve(q Query) *Plan {
	f := l.Farm()
	p := f.Resolve(l.recall(f, q))
	if p != nil && l.NextBoot != nil {
		p.apply(l.NextBoot(p.Node)) // the plan is nobody else's yet
	}
	return p
}

// recall adds to a query who the machine was found to be before.
func (l *Live) recall(f *Farm, q Query) Query {
	if l.Recall != nil && q.recalls() && f.byMAC[q.MAC] == nil {
		q.Known, _ = l.Recall(q.MAC)
	}
	return q
}

// WhyNot asks the farm in force why it has no plan.
func (l *Live) WhyNot(q Query) string {
	f := l.Farm()
	return f.WhyNot(l.recall(f, q))
}

// Reload reads the config file again.
func (l *Live) Reload() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	nodes, err := l.store.Nodes()
	if err != nil {
		return err
	}
	farm, err := Load(l.path, nodes...)
	if err != nil {
		return err
	}
	if old := l.Farm(); old != nil {
		// The listeners stay where they are until a restart, so nodes must be
		// sent there.
		farm.address, farm.url = old.address, old.url
	}
	l.farm.Store(farm)
	return nil
}

// AddNode adds a node; it is resolved from the next packet on. It returns
// [ErrExists], a [*DeclaredError] or an [Errors] when it refuses.
func (l *Live) AddNode(n PoolNode) error {
	return l.change(n.Name, func(nodes []PoolNode, i int) ([]PoolNode, error) {
		if i >= 0 {
			return nil, fmt.Errorf("%w: %q", ErrExists, n.Name)
		}
		return append(nodes, n), nil
	}, func() error { return l.store.ChangeNodes([]PoolNode{n}, nil) })
}

// UpdateNode passes the node of that name to edit and puts what it returns in
// its place. A name cannot be changed.
func (l *Live) UpdateNode(name string, edit func(PoolNode) (PoolNode, error)) error {
	var changed PoolNode
	return l.change(name, func(nodes []PoolNode, i int) (_ []PoolNode, err error) {
		if i < 0 {
			return nil, fmt.Errorf("%w: %q", ErrNotFound, name)
		}
		if changed, err = edit(nodes[i]); err != nil {
			return nil, err
		}
		if changed.Name != name {
			return nil, fmt.Errorf("node %q cannot be renamed to %q: remove it and add it anew", name, changed.Name)
		}
		nodes[i] = changed
		return nodes, nil
	}, func() error { return l.store.ChangeNodes([]PoolNode{changed}, nil) })
}

// RemoveNode removes a node that was added over the API.
func (l *Live) RemoveNode(name string) error {
	return l.change(name, func(nodes []PoolNode, i int) ([]PoolNode, error) {
		if i < 0 {
			return nil, fmt.Errorf("%w: %q", ErrNotFound, name)
		}
		return slices.Delete(nodes, i, i+1), nil
	}, func() error { return l.store.ChangeNodes(nil, []string{name}) })
}

// change is the path of every change of nodes: edit a copy of the API's nodes
// (i is the index of the one named, or -1), check the farm as a whole,
// persist, swap.
func (l *Live) change(name string, edit func(nodes []PoolNode, i int) ([]PoolNode, error), persist func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.Farm()
	if n, ok := old.Node(name); ok && n.Declared() {
		return &DeclaredError{Name: name, Where: n.Source}
	}
	nodes := slices.Clone(old.added)
	i := slices.IndexFunc(nodes, func(n PoolNode) bool { return n.Name == name })
	nodes, err := edit(nodes, i)
	if err != nil {
		return err
	}
	farm, err := old.with(nodes)
	if err != nil {
		return err
	}
	if err := persist(); err != nil {
		return err
	}
	l.farm.Store(farm)
	return nil
}
