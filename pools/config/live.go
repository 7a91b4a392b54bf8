package config

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"drover/internal/atomicfile"
	"drover/pools"
	"drover/pools/config/access"
	"drover/pools/config/declared"
	"drover/pools/config/include"
	"drover/pools/resolve"
)

// NodeStore keeps the nodes added over the API.
type NodeStore interface {
	// Nodes returns all of them, in any order.
	Nodes() ([]pools.PoolNode, error)
	// ChangeNodes stores the nodes of put under their names, and removes the nodes
	// with the names of remove. It returns when the changes are durable. After an
	// error nothing is changed. Removing a node that does not exist is no error.
	ChangeNodes(put []pools.PoolNode, remove []string) error
}

// copyPatience is how long a start or a reload waits for the disk. That it has no copy yet is
// reported, and no reason to keep machines waiting.
const copyPatience = 2 * time.Second

// DeclaredError is the error of a change of a node that the operator's file declares.
type DeclaredError struct {
	Name  string
	Where pools.Origin
}

func (e *DeclaredError) Error() string {
	return fmt.Sprintf("node %q is declared in %s: change it there", e.Name, e.Where.Position())
}

// Live is the farm in force, and the only way to change it. Each change, a reload of
// the file or a change of nodes over the API, builds and checks a new farm. The changed
// nodes are stored, and then the new farm replaces the old one. After an error the old
// farm stays in force. Reading never blocks.
type Live struct {
	source   Source
	copy     atomicfile.Kept // of the file
	store    NodeStore
	mu       sync.Mutex // held by changes
	file     decoded
	desired  []*declared.Object              // the newest versions
	choice   atomic.Pointer[declared.Choice] // of them, and of the versions that were in force before
	refitted atomic.Bool                     // see [Live.Refitted]
	checked  resolve.Checked
	started  pools.Server
	ipv4     bool                                 // there was a subnet of IPv4 at the start
	ipv6     bool                                 // likewise of IPv6
	leases   func(netip.Addr) (pools.Lease, bool) // nil: no lease is known
	farm     atomic.Pointer[resolve.Farm]
	status   atomic.Pointer[Status]
	watch    atomic.Pointer[include.Watch] // of the files as they were read last
	retired  retirement
	first    Reloaded      // what the start has changed
	last     *include.Text // at the start, in force when the last server ended; nil: none is known
}

// NewLive reads the config of source and the nodes of store. If the file is refused, the copy
// of its last good content is put in force, where source has one; last are the objects that
// were in force when the last server ended.
func NewLive(source Source, store NodeStore, last ...*declared.Object) (*Live, error) {
	l := &Live{source: source, store: store, desired: last}
	l.copy.Path, l.copy.Mode, l.copy.Patience = source.Copy, 0o600, copyPatience
	l.choice.Store(&declared.Choice{InForce: last})
	l.last = source.lastText()
	if nodes, err := store.Nodes(); err == nil {
		l.retired.before = l.farmBefore(nodes)
	}
	var err error
	l.first, err = l.ReloadSized("")
	l.last = nil
	return l, err
}

// Farm returns the farm in force.
func (l *Live) Farm() *resolve.Farm { return l.farm.Load() }

// Status returns the state of the config file.
func (l *Live) Status() Status {
	s := *l.status.Load()
	if s.Unkept != nil && l.copy.Stored() { // by now
		s.Unkept = nil
	}
	return s
}

// Watch returns the files of the config as they were read last.
func (l *Live) Watch() *include.Watch { return l.watch.Load() }

// Reload reads the config file again. The ports in URLs stay those of the start, because
// the listeners do not change before a restart. A file that is in conflict with objects in
// force is an error, except at the start: then the file counts. A change that server.brake holds
// is none, see [Status.Held].
func (l *Live) Reload() error {
	_, err := l.ReloadSized("")
	return err
}

// Reloaded is what a reload has changed.
type Reloaded struct {
	Before, After string // digests of the content in force
	Size          pools.ChangeSize
	Text          *include.Text     // in force
	Held          *pools.HeldConfig // the content of the file, if it is not in force
}

// ReloadSized is [Live.Reload], and returns what it has changed. An operator has said yes to the
// content of the file with the digest yes: nothing holds it.
func (l *Live) ReloadSized(yes string) (Reloaded, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reload(yes)
}

// Started returns what the start has changed: it put the first content in force.
func (l *Live) Started() Reloaded { return l.first }

func (l *Live) reload(yes string) (r Reloaded, err error) {
	if s := l.status.Load(); s != nil && s.Text != nil {
		r.Before = s.Text.Digest()
	}
	nodes, err := l.store.Nodes()
	if err != nil {
		return r, err
	}
	var next built
	read, err := include.Read(l.source.File)
	text, refused, err := l.source.choose(read, err, l.Farm() == nil, func(text *include.Text) (err error) {
		next, err = l.buildFrom(text, nodes)
		return err
	})
	l.watch.Store(read.Watch())
	if refused != nil {
		status := l.status.Load().refuse(refused)
		if err == nil { // of the copy
			status.Text = text
		}
		l.status.Store(status)
	}
	if err != nil {
		return r, err
	}
	if refused == nil && l.hold(&r, text, &next, nodes, yes) {
		return r, nil
	}
	l.use(next)
	if refused == nil {
		l.status.Store(newStatus(text, l.keep(text)))
	}
	r.Text = l.status.Load().Text
	r.After = r.Text.Digest()
	return r, nil
}

// Readdress puts a farm in force that has the addresses that this host has now. It reports
// whether they differ from those before.
func (l *Live) Readdress() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.checked
	c.Local, c.Local6 = Locals(l.started.Interfaces), Locals6(l.started.Interfaces)
	if slices.Equal(c.Local, l.checked.Local) && slices.Equal(c.Local6, l.checked.Local6) {
		return false
	}
	l.swap(c)
	return true
}

// NeedsRestart reports whether the server section of the config differs from that of
// the start, whose listeners are in use, or whether there are subnets of a family that had
// none then.
func (l *Live) NeedsRestart() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &l.checked.Config
	return access.Restarts(l.started, c.Server) || c.HasIPv4() && !l.ipv4 || c.HasIPv6() && !l.ipv6
}

// swap puts the farm of a checked config in force.
func (l *Live) swap(c resolve.Checked) {
	c.Contested = l.contested(&c)
	l.put(c)
	// Until the farm was in force, other machines could still lease its addresses.
	if now := l.contested(&c); !slices.Equal(now, c.Contested) {
		c.Contested = now
		l.put(c)
	}
}

func (l *Live) put(c resolve.Checked) {
	l.checked = c
	l.farm.Store(l.retire(l.Farm(), resolve.NewFarm(c)))
}
