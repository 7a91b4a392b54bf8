package config

import (
	"reflect"
	"time"

	"drover/pools"
	"drover/pools/config/compare"
	"drover/pools/config/include"
	"drover/pools/resolve"
)

// setBrake sets the defaults of server.brake.
func setBrake(b *pools.Brake) {
	if b.Nodes == nil {
		b.Nodes = new(5)
	}
	if b.Share == nil {
		b.Share = new(pools.Share(200))
	}
}

// maxBrake bounds server.brake.nodes.
const maxBrake = 1_000_000

// brake checks server.brake.
func (c *checker) brake() {
	if n := *c.cfg.Server.Brake.Nodes; n < 0 || n > maxBrake {
		c.failf("server.brake.nodes", "5, or 0 to let every change through", "server.brake.nodes %d is not from 0 to %d", n, maxBrake)
	}
}

// hold reports whether the content of the file, of which next is made, is held, and keeps that.
// At the start the content of before is in force then.
func (l *Live) hold(r *Reloaded, text *include.Text, next *built, nodes []pools.PoolNode, yes string) bool {
	status, before, starts := l.status.Load(), l.Farm(), false
	var last built
	if before == nil {
		if l.last == nil || l.last.Digest() == text.Digest() {
			return false
		}
		var err error
		if last, err = l.buildFrom(l.last, nodes); err != nil {
			return false // by the rules of this version
		}
		status, before, starts = newStatus(l.last, nil), resolve.NewFarm(last.checked), true
	}
	r.Size = l.sizeOf(before, next)
	active, digest := &l.file, text.Digest()
	if starts {
		active = &last.file
	}
	agrees := digest == status.Text.Digest() || reflect.DeepEqual(active.Config, next.file.Config)
	held := heldBy(status, before, r.Size, digest)
	if held == nil || agrees || digest == yes {
		return false
	}
	if starts {
		l.use(last)
	}
	after := *status
	after.Refused, after.Held = nil, held
	l.status.Store(&after)
	r.After, r.Text, r.Held, r.Size = after.Text.Digest(), after.Text, held, pools.ChangeSize{}
	return true
}

// heldBy returns why a content of the file is held; nil if it is not.
func heldBy(status *Status, before *resolve.Farm, size pools.ChangeSize, digest string) *pools.HeldConfig {
	held := &pools.HeldConfig{SHA256: digest, Since: time.Now().UTC().Truncate(time.Second), Size: size, Rollback: status.Text.Rollback}
	limit, on := before.Config.Server.Brake.Limit(size.Before)
	switch old := status.Held; {
	case held.Rollback > 0:
		held.Why = pools.HeldByRollback
	case old != nil && old.Why == pools.HeldDropped && old.SHA256 == digest:
		held.Why = pools.HeldDropped
	case on && size.Disrupted > limit:
		held.Why, held.Limit = pools.HeldByBrake, limit
	default:
		return nil
	}
	if old := status.Held; old != nil && old.SHA256 == digest && old.Why == held.Why {
		held.Since = old.Since
	}
	return held
}

// sizeOf returns what a farm would do to the nodes of another one.
func (l *Live) sizeOf(before *resolve.Farm, next *built) pools.ChangeSize {
	c := next.checked
	l.place(&c)
	c.Contested = l.contested(&c)
	return compare.Farms(before, resolve.NewFarm(c)).Size()
}

// Drop is the answer no to the change of the file with a digest, which server.brake holds. It
// stays dropped until the file changes again, or the server is started again. The error is
// [pools.ErrNotHeld].
func (l *Live) Drop(digest string) (pools.HeldConfig, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	after := *l.status.Load()
	if after.Held == nil || after.Held.Why != pools.HeldByBrake || after.Held.SHA256 != digest {
		return pools.HeldConfig{}, pools.ErrNotHeld
	}
	dropped := *after.Held
	dropped.Why, dropped.Since = pools.HeldDropped, time.Now().UTC().Truncate(time.Second)
	after.Held = &dropped
	l.status.Store(&after)
	return dropped, nil
}

// Rollback puts a text of the history with a number in force. It stays until the file agrees with
// it, across restarts too. The text is checked as a file is; try makes no change.
func (l *Live) Rollback(text *include.Text, number int, try bool) (r Reloaded, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Before = l.status.Load().Text.Digest()
	nodes, err := l.store.Nodes()
	if err != nil {
		return r, err
	}
	next, err := l.buildFrom(text, nodes)
	if err != nil {
		return r, err
	}
	if r.Size = l.sizeOf(l.Farm(), &next); try {
		return r, nil
	}
	text.Rollback = number
	l.use(next)
	l.status.Store(newStatus(text, l.keep(text)))
	read, err := l.reload("") // the file may agree
	read.Before, read.Size = r.Before, r.Size
	if err != nil {
		read.Text, read.After = text, text.Digest()
	}
	return read, nil
}
