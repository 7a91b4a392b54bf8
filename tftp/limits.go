package tftp

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/time/rate"
)

// limits decides which transfers run at a time. Clients that are not known have a share
// of their own, so that they cannot keep known ones from their files. Where it is full, a
// new transfer displaces the oldest one whose client has not answered yet: requests with
// forged addresses take no place for longer than a client needs to answer.
type limits struct {
	perClient, perNetwork int

	requests *rate.Limiter // of unknown clients

	mu       sync.Mutex
	closed   bool
	all      crowd
	unknown  crowd
	networks map[netip.Prefix]*crowd // of unknown clients
	clients  map[netip.Addr]*crowd
	running  sync.WaitGroup // the transfers whose files are not closed yet
}

// ticket is the place of a transfer.
type ticket struct {
	session *session
	client  netip.Addr
	known   bool
	booting bool
	stage   stage
}

// stage says how much a client has shown of itself.
type stage int

const (
	opening stage = iota // its file is being opened: it had no chance to answer
	offered              // the first packet was sent
	proved               // it has answered
	left                 // the place was given up
)

// crowd is a group of transfers of which there may be a number at a time.
type crowd struct {
	most    int
	tickets []*ticket // the oldest first
}

// Shares of the transfers at a time.
const (
	unknownShare = 4    // unknown clients together get the fourth part
	networkShare = 2    // unknown clients of one network get half of that
	unknownRate  = 1000 // requests of unknown clients in a second: each costs a socket
	maxUnproved  = 2    // transfers to a booting client that get a block in advance, see credit
)

// newLimits returns the limits for a number of transfers at a time, in all and for one
// client.
func newLimits(all, perClient int) *limits {
	unknown := max(1, all/unknownShare)
	return &limits{
		perClient: perClient, perNetwork: max(1, unknown/networkShare),
		requests: rate.NewLimiter(unknownRate, unknownRate),
		all:      crowd{most: all}, unknown: crowd{most: unknown},
		networks: map[netip.Prefix]*crowd{}, clients: map[netip.Addr]*crowd{},
	}
}

// errFull is the error for a request for which there is no room.
var errFull = errors.New("too many transfers")

// acquire gives a transfer its place. If that place was taken from another transfer,
// acquire returns that. trusted reports whether the client gets its first block in
// advance; see credit.
func (l *limits) acquire(t *ticket) (displaced *session, trusted bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, false, errors.New("server stops")
	}
	if !t.known && !l.requests.Allow() {
		return nil, false, fmt.Errorf("%w: %d requests a second of unknown clients", errFull, unknownRate)
	}
	own := l.clients[t.client]
	if own == nil {
		own = &crowd{most: l.perClient}
	}
	victim, err := l.room(t, own)
	if err != nil {
		return nil, false, err
	}
	if victim != nil {
		l.leave(victim)
		displaced = victim.session
	}
	l.clients[t.client] = own // leave may have removed it
	for _, c := range l.crowds(t) {
		c.tickets = append(c.tickets, t)
	}
	l.running.Add(1)
	return displaced, t.booting && own.unproved() <= maxUnproved, nil
}

// room returns the transfer that has to leave for a new one; nil if there is room.
func (l *limits) room(t *ticket, own *crowd) (victim *ticket, err error) {
	if own.full() {
		if victim = own.silent(); victim == nil {
			err = fmt.Errorf("%w: %d of this client", errFull, own.most)
		}
		return victim, err
	}
	if !t.known {
		if network := l.networks[networkOf(t.client)]; network != nil && network.full() {
			if victim = network.silent(); victim == nil {
				err = fmt.Errorf("%w: %d of unknown clients of %s", errFull, network.most, networkOf(t.client))
			}
			return victim, err
		}
		if l.unknown.full() {
			if victim = l.unknown.silent(); victim == nil {
				err = fmt.Errorf("%w: %d of unknown clients", errFull, l.unknown.most)
			}
			return victim, err
		}
	}
	if !l.all.full() {
		return nil, nil
	}
	victim = l.unknown.silent()
	if victim == nil {
		victim = l.all.silent()
	}
	if victim == nil && t.known {
		victim = l.unknown.oldest()
	}
	if victim == nil {
		err = fmt.Errorf("%w: %d", errFull, l.all.most)
	}
	return victim, err
}

// crowds returns the groups of a transfer.
func (l *limits) crowds(t *ticket) []*crowd {
	all := []*crowd{&l.all, l.clients[t.client]}
	if t.known {
		return all
	}
	prefix := networkOf(t.client)
	network := l.networks[prefix]
	if network == nil {
		network = &crowd{most: l.perNetwork}
		l.networks[prefix] = network
	}
	return append(all, &l.unknown, network)
}

// networkOf returns the network of an address, as far as hosts of other organisations
// are not in it: 256 addresses, or a subnet of IPv6.
func networkOf(addr netip.Addr) netip.Prefix {
	bits := 24
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits) // the zero Prefix for an address that is not valid
	return p
}

// leave gives up the place of a transfer.
func (l *limits) leave(t *ticket) {
	if t.stage == left {
		return
	}
	t.stage = left
	for _, c := range l.crowds(t) {
		if i := slices.Index(c.tickets, t); i >= 0 {
			c.tickets = slices.Delete(c.tickets, i, i+1)
		}
	}
	if len(l.clients[t.client].tickets) == 0 {
		delete(l.clients, t.client)
	}
	if n := networkOf(t.client); l.networks[n] != nil && len(l.networks[n].tickets) == 0 {
		delete(l.networks, n)
	}
}

// reached records that a transfer has come to a stage.
func (l *limits) reached(t *ticket, s stage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.stage != left {
		t.stage = s
	}
}

// release ends a transfer that acquire has given a place.
func (l *limits) release(t *ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leave(t)
	l.running.Done()
}

// close refuses all further transfers. The returned channel is closed when no transfer is
// under way.
func (l *limits) close() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	idle := make(chan struct{})
	go func() { l.running.Wait(); close(idle) }()
	return idle
}

func (c *crowd) full() bool { return len(c.tickets) >= c.most }

// silent returns the oldest transfer whose client has not answered; nil if all have.
func (c *crowd) silent() *ticket {
	i := slices.IndexFunc(c.tickets, func(t *ticket) bool { return t.stage == offered })
	if i < 0 {
		return nil
	}
	return c.tickets[i]
}

// oldest returns the oldest transfer; nil if there is none.
func (c *crowd) oldest() *ticket {
	if len(c.tickets) == 0 {
		return nil
	}
	return c.tickets[0]
}

// unproved returns the number of transfers whose clients have not answered.
func (c *crowd) unproved() (n int) {
	for _, t := range c.tickets {
		if t.stage < proved {
			n++
		}
	}
	return n
}
