package config

import (
	"fmt"
	"slices"
	"time"

	"drover/pools"
	"drover/pools/config/include"
	"drover/pools/resolve"
)

// RetiredStore keeps the nodes that the config has lost, across restarts. Its methods do not wait
// for the disk.
type RetiredStore interface {
	// Retired returns all of them, those that were lost first at the begin.
	Retired() []pools.RetiredNode
	// ChangeRetired keeps the nodes of put under their names, and removes the names in remove.
	ChangeRetired(put []pools.RetiredNode, remove []string)
}

// maxRetired bounds the retired nodes; those that were lost first go first.
const maxRetired = 1 << 16

// retirement is what [Live] knows of nodes that the config has lost.
type retirement struct {
	store   RetiredStore        // nil: no node is retired
	leaving map[string]bool     // names that a request removes now: they are not lost
	before  *resolve.Farm       // of the last server, until [Live.SetRetired]; nil: the same
	now     func() time.Time    // the clock
	all     []pools.RetiredNode // those that were lost first at the begin
}

// setRetire sets the default of server.retire.
func setRetire(s *pools.Server) {
	if s.Retire == nil {
		s.Retire = new(pools.Retention(24 * time.Hour))
	}
}

// maxRetire bounds server.retire.
const maxRetire = 30 * 24 * time.Hour

// retire checks server.retire.
func (c *checker) retire() {
	if r := c.cfg.Server.Retire; r.D() > maxRetire {
		c.failf("server.retire", "24h, or 0 to forget nodes at once", "server.retire %s is longer than 30 days", r)
	}
}

// SetRetired gives the table of retired nodes to the farm. From then on a node that the config
// loses is retired for server.retire, and so are those that it lost since the last server ended.
func (l *Live) SetRetired(store RetiredStore, now func() time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retired.store, l.retired.now, l.retired.all = store, now, store.Retired()
	before := l.retired.before
	if l.retired.before = nil; before == nil {
		before = l.Farm()
	}
	l.farm.Store(l.retire(before, l.Farm()))
}

// retire returns the next farm with the nodes that are retired: those before that have not
// returned and whose time is not over, and those that it has lost.
func (l *Live) retire(before, next *resolve.Farm) *resolve.Farm {
	r := &l.retired
	if r.store == nil {
		return next
	}
	keep, now := *next.Config.Server.Retire, r.now().UTC().Truncate(time.Second)
	var put []pools.RetiredNode
	var remove []string
	all := slices.Clone(r.all)
	if before != nil && before != next && keep > 0 {
		for _, n := range before.Lost(next) {
			if r.leaving[n.Name] {
				continue
			}
			retired := pools.RetiredNode{PoolNode: n.PoolNode, From: n.Source.Position(), Since: now}
			put, all = append(put, retired), append(all, retired)
		}
	}
	newest := map[string]int{}
	for i, n := range all {
		newest[n.Name] = i
	}
	kept := all[:0]
	for i, n := range all {
		if n.Since.After(now) { // the clock was ahead
			n.Since = now
		}
		n.Until = n.Since.Add(keep.D())
		switch {
		case newest[n.Name] != i:
		case i < len(all)-maxRetired, !now.Before(n.Until), next.HasMachine(&n.PoolNode):
			remove = append(remove, n.Name)
		default:
			kept = append(kept, n)
		}
	}
	r.all = kept
	r.store.ChangeRetired(put, remove)
	return next.WithRetired(kept)
}

// ExpireRetired forgets the retired nodes whose time is over, and reports whether there were any.
func (l *Live) ExpireRetired() bool {
	return l.changeRetired(func(n *pools.RetiredNode) bool { return !l.retired.now().Before(n.Until) }) > 0
}

// ForgetRetired forgets retired nodes before their time: all names, or none if one is not retired.
// The error wraps [pools.ErrNotRetired].
func (l *Live) ForgetRetired(names ...string) error {
	for _, name := range names {
		if !l.Farm().IsRetired(name) {
			return fmt.Errorf("%w: %q", pools.ErrNotRetired, name)
		}
	}
	l.changeRetired(func(n *pools.RetiredNode) bool { return slices.Contains(names, n.Name) })
	return nil
}

// changeRetired forgets the retired nodes for which gone returns true, and returns their number.
func (l *Live) changeRetired(gone func(*pools.RetiredNode) bool) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	var kept []pools.RetiredNode
	var remove []string
	for i := range l.retired.all {
		if n := &l.retired.all[i]; gone(n) {
			remove = append(remove, n.Name)
		} else {
			kept = append(kept, *n)
		}
	}
	if len(remove) > 0 {
		l.retired.all = kept
		l.retired.store.ChangeRetired(nil, remove)
		l.farm.Store(l.Farm().WithRetired(kept))
	}
	return len(remove)
}

// leaving returns the names of the nodes that a request removes, or renames.
func (b *batch) leaving() map[string]bool {
	names := map[string]bool{}
	for _, name := range b.remove {
		names[name] = true
	}
	return names
}

// farmBefore returns the farm that the last server had, where its config was another than the text
// that is read now; nil otherwise.
func (l *Live) farmBefore(nodes []pools.PoolNode) *resolve.Farm {
	if l.last == nil {
		return nil
	}
	if now, err := include.Read(l.source.File); err == nil && now.Digest() == l.last.Digest() {
		return nil
	}
	farm, _ := newFarm(decodeText(l.last).with(l.desired, nodes, allWait))
	return farm
}
