// Package proxy relays TCP connections to the pods behind a Service.
//
//	p := proxy.Proxy{Log: log}
//	go cluster.Follow(ctx, port, p.Set) // the pods, whenever they change
//	p.Serve(ctx, listeners...)
//
// A connection is accepted whether or not there is a pod, and waits for one: so a client
// sees no refused connection while a Deployment replaces its pods. A pod that refuses is
// passed over; pods that end get connections only while none is ready. Connections that
// exist stay with their pod.
//
// The package does not know how pods are found.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"drover/internal/lograte"
	"drover/internal/wait"
	"drover/kube/backends"
)

// The defaults of a [Proxy].
const (
	maxConnections = 4096
	dialTimeout    = 2 * time.Second
	patience       = 15 * time.Second
	drain          = 30 * time.Second

	retryInterval = 100 * time.Millisecond // between two rounds of all pods
	avoidTime     = 5 * time.Second        // for a pod that did not answer
)

// Proxy relays connections. Its zero value is of use with a Log.
type Proxy struct {
	Log            *slog.Logger
	MaxConnections int           // at a time; further ones wait to be accepted
	DialTimeout    time.Duration // for a pod
	Patience       time.Duration // how long a connection waits for a pod
	Drain          time.Duration // how long connections may go on after the end of ctx

	mu      sync.Mutex
	state   backends.State
	changed chan struct{} // closed with the next change of state
	busy    map[netip.AddrPort]int
	avoid   map[netip.AddrPort]time.Time // pods that did not answer, until then
}

// Set sets the pods.
func (p *Proxy) Set(s backends.State) {
	p.mu.Lock()
	before := p.state
	p.state = s
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
	p.mu.Unlock()
	if s.Problem != "" && s.Problem != before.Problem {
		p.Log.Warn("connections wait: no ready pod", "problem", s.Problem)
	} else if len(s.Backends) > 0 && len(before.Backends) == 0 {
		p.Log.Info("the Service has ready pods", "pods", len(s.Backends))
	}
}

// Serve accepts connections until ctx is done, and then waits for those that exist. It
// closes the listeners, which are of TCP.
func (p *Proxy) Serve(ctx context.Context, listeners ...net.Listener) error {
	limit := make(chan struct{}, cmp.Or(p.MaxConnections, maxConnections))
	// Connections outlive ctx, by Drain.
	relaying, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	end := context.AfterFunc(ctx, func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	})
	defer end()
	lines := &lograte.Limiter{Log: p.Log}
	var accepting, connections sync.WaitGroup
	for _, l := range listeners {
		accepting.Go(func() {
			p.accept(ctx, l, limit, lines, func(c *net.TCPConn) {
				connections.Go(func() {
					p.relay(relaying, c, lines)
					<-limit
				})
			})
		})
	}
	accepting.Wait()
	drained := make(chan struct{})
	go func() {
		connections.Wait()
		close(drained)
	}()
	select {
	case <-drained:
	case <-time.After(cmp.Or(p.Drain, drain)):
		stop() // it closes what is left
		<-drained
	}
	return context.Cause(ctx)
}

// accept accepts connections until ctx is done.
func (p *Proxy) accept(ctx context.Context, l net.Listener, limit chan struct{}, lines *lograte.Limiter, serve func(*net.TCPConn)) {
	for {
		select {
		case limit <- struct{}{}:
		case <-ctx.Done():
			return
		}
		c, err := l.Accept()
		if err == nil {
			serve(c.(*net.TCPConn))
			continue
		}
		<-limit
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return
		}
		if lines.Allow(slog.LevelWarn, "accept") {
			p.Log.Warn("accepting a connection failed", "err", err) // no file descriptors, say
		}
		if wait.Sleep(ctx, retryInterval) != nil {
			return
		}
	}
}

// relay serves a connection, until both sides have ended or ctx is done.
func (p *Proxy) relay(ctx context.Context, client *net.TCPConn, lines *lograte.Limiter) {
	defer client.Close()
	pod, to, err := p.dial(ctx)
	if err != nil {
		if lines.Allow(slog.LevelWarn, "no pod") {
			p.Log.Warn("no pod accepted the connection", "client", client.RemoteAddr().String(), "err", err)
		}
		_ = client.SetLinger(0) // a reset: an end would look like an empty answer
		return
	}
	defer p.release(to)
	defer pod.Close()
	stop := context.AfterFunc(ctx, func() {
		_ = client.Close()
		_ = pod.Close()
	})
	defer stop()
	var other sync.WaitGroup
	other.Go(func() { pass(pod, client) })
	pass(client, pod)
	other.Wait()
}

// pass copies what one side sends to the other, and its end. After an error both are
// reset, as a broken connection would be.
func pass(to, from *net.TCPConn) {
	if _, err := to.ReadFrom(from); err != nil {
		for _, c := range []*net.TCPConn{to, from} {
			_ = c.SetLinger(0)
			_ = c.Close()
		}
		return
	}
	_ = to.CloseWrite() // if it is closed already, there is nothing to end
}

// dial connects to a pod, and waits for one if there is none.
func (p *Proxy) dial(ctx context.Context) (*net.TCPConn, netip.AddrPort, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(p.Patience, patience))
	defer cancel()
	d := net.Dialer{Timeout: cmp.Or(p.DialTimeout, dialTimeout)}
	last := errors.New("the Service has no pod that takes connections")
	for {
		all, changed := p.candidates()
		for _, to := range all {
			c, err := d.DialContext(ctx, "tcp", to.String())
			if err == nil {
				p.take(to)
				return c.(*net.TCPConn), to, nil
			}
			if ctx.Err() != nil {
				return nil, to, last
			}
			last = err
			p.fail(to)
		}
		// Without pods, a change brings one; those that refuse may come back without.
		again, stop := context.WithTimeout(ctx, retryInterval)
		select {
		case <-changed:
		case <-again.Done():
		}
		stop()
		if ctx.Err() != nil {
			return nil, netip.AddrPort{}, last
		}
	}
}

// candidates returns the pods in the order to try them, and a channel that is closed when
// they change: first those that answered and are ready, the least busy first.
func (p *Proxy) candidates() ([]netip.AddrPort, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	now := time.Now()
	order := make([]netip.AddrPort, len(p.state.Backends))
	rank := map[netip.AddrPort]int{}
	for i, b := range p.state.Backends {
		order[i] = b.Address
		rank[b.Address] = p.busy[b.Address]
		if !b.Ready {
			rank[b.Address] += 1 << 20
		}
		if now.Before(p.avoid[b.Address]) {
			rank[b.Address] += 1 << 21
		}
	}
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	slices.SortStableFunc(order, func(a, b netip.AddrPort) int { return rank[a] - rank[b] })
	return order, p.changed
}

func (p *Proxy) take(to netip.AddrPort) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy == nil {
		p.busy = map[netip.AddrPort]int{}
	}
	p.busy[to]++
	delete(p.avoid, to)
}

func (p *Proxy) release(to netip.AddrPort) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy[to]--; p.busy[to] == 0 {
		delete(p.busy, to)
	}
}

// fail notes that a pod did not answer.
func (p *Proxy) fail(to netip.AddrPort) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.avoid == nil {
		p.avoid = map[netip.AddrPort]time.Time{}
	}
	now := time.Now()
	for a, until := range p.avoid {
		if now.After(until) {
			delete(p.avoid, a)
		}
	}
	p.avoid[to] = now.Add(avoidTime)
}
