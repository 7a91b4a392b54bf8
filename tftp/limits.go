package tftp

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
)

// limits counts the transfers under way.
type limits struct {
	all, perClient int // at most

	mu     sync.Mutex
	total  int
	client map[netip.Addr]int
	closed bool
	idle   chan struct{} // closed when it is closed and nothing is under way
}

func newLimits(all, perClient int) *limits {
	return &limits{all: all, perClient: perClient, client: map[netip.Addr]int{}, idle: make(chan struct{})}
}

// enter counts one more transfer, or says why there can be none.
func (l *limits) enter(c netip.Addr) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return errors.New("server stops")
	case l.total >= l.all:
		return fmt.Errorf("already %d transfers", l.total)
	case l.client[c] >= l.perClient:
		return fmt.Errorf("already %d transfers to this client", l.client[c])
	}
	l.total++
	l.client[c]++
	return nil
}

// leave takes back what enter counted.
func (l *limits) leave(c netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.client[c]--; l.client[c] == 0 {
		delete(l.client, c)
	}
	l.signal()
}

// close lets no more in.
func (l *limits) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.signal()
}

// signal closes idle once.
func (l *limits) signal() {
	if !l.closed || l.total > 0 {
		return
	}
	select {
	case <-l.idle:
	default:
		close(l.idle)
	}
}
