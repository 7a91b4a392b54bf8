package main

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/state"
)

// TestKill kills the server at random instants while clients lease, renew and release
// addresses; there are more clients than addresses. After each kill every acknowledged
// lease is on disk and active, a new server confirms it, and no address has two
// clients.
func TestKill(t *testing.T) {
	rounds := fixture.Attack(200, 1000)
	if testing.Short() {
		rounds = 20
	}
	c := newCrowd(t, "10.28.72.1-10.28.72.200")
	g := &guests{crowd: c, rand: rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano()))), held: map[pools.MAC]netip.Addr{}, doing: map[pools.MAC]step{}}
	for i := range 300 {
		m := pools.MAC{2}
		binary.BigEndian.PutUint32(m[2:], uint32(i))
		g.macs = append(g.macs, m)
	}
	for range rounds {
		c.start()
		g.confirm()
		g.live(g.rand.IntN(100))
		g.compare()
		if t.Failed() {
			t.FailNow()
		}
	}
	if g.acks < 10*rounds || g.renewals < rounds || g.releases < rounds {
		t.Errorf("that was too little: %d ACKs, of them %d of renewals, and %d RELEASEs", g.acks, g.renewals, g.releases)
	}
	t.Logf("%d kills, %d ACKs, of them %d of renewals, %d RELEASEs, %d held at the end", rounds, g.acks, g.renewals, g.releases, len(g.held))
}

// guests are DHCP clients that remember their leases.
type guests struct {
	*crowd
	rand  *rand.Rand
	macs  []pools.MAC
	xid   uint32
	held  map[pools.MAC]netip.Addr // from an ACK, and not released since
	doing map[pools.MAC]step       // the last message of a client that waits for an answer or pauses

	acks, renewals, releases int
}

// step is the last message of a guest.
type step struct {
	xid   uint32
	until time.Time // it sends no other before
}

// live runs the guests until they had so many answers, and then kills the server while they go
// on. It returns when the server is dead and its last answer is read.
func (g *guests) live(answers int) {
	killed := make(chan struct{})
	var once sync.Once
	for {
		if answers <= 0 {
			once.Do(func() {
				time.AfterFunc(time.Duration(g.rand.IntN(3000))*time.Microsecond, func() { defer close(killed); g.kill() })
			})
		}
		select {
		case <-killed:
			for g.hear(10 * time.Millisecond) {
			}
			clear(g.doing)
			return
		default:
		}
		for range 8 {
			g.act(g.macs[g.rand.IntN(len(g.macs))])
		}
		for g.hear(200 * time.Microsecond) {
			answers--
		}
	}
}

// act sends the next message of a guest, unless it waits.
func (g *guests) act(m pools.MAC) {
	now := time.Now()
	if now.Before(g.doing[m].until) {
		return
	}
	g.xid++
	g.doing[m] = step{g.xid, now.Add(time.Second)}
	a, ok := g.held[m]
	switch {
	case !ok:
		g.send(dhcpMessage(m, g.xid, dhcpDiscover))
	case g.rand.IntN(2) == 0:
		g.send(dhcpMessage(m, g.xid, dhcpRequest, dhcpField{0, a}))
	default:
		// A RELEASE has no answer. From here on another client may get the address.
		delete(g.held, m)
		g.releases++
		g.send(dhcpMessage(m, g.xid, dhcpRelease, dhcpField{0, a}, dhcpField{54, crowdServer.Addr()}))
	}
}

// hear handles one answer, and reports whether there was one.
func (g *guests) hear(d time.Duration) bool {
	a, ok := g.receive(d)
	if !ok {
		return false
	}
	if last, waits := g.doing[a.mac]; !waits || last.xid != a.xid {
		return true
	}
	switch a.kind {
	case dhcpOffer:
		g.send(dhcpMessage(a.mac, a.xid, dhcpRequest, dhcpField{50, a.addr}, dhcpField{54, crowdServer.Addr()}))
		return true
	case dhcpACK:
		g.acknowledged(a)
	case dhcpNAK:
		if was, ok := g.held[a.mac]; ok {
			g.t.Errorf("%s renews %s and gets a NAK", a.mac, was)
		}
	}
	delete(g.doing, a.mac)
	return true
}

// acknowledged records the address of an ACK, and fails if it is another client's.
func (g *guests) acknowledged(a dhcpAnswer) {
	g.acks++
	if was, ok := g.held[a.mac]; ok {
		g.renewals++
		if was != a.addr {
			g.t.Errorf("%s holds %s and is given %s", a.mac, was, a.addr)
		}
	}
	for m, addr := range g.held {
		if addr == a.addr && m != a.mac {
			g.t.Errorf("%s is given %s, which %s holds", a.mac, a.addr, m)
		}
	}
	g.held[a.mac] = a.addr
}

// compare fails unless every lease of the guests is on disk.
func (g *guests) compare() {
	g.t.Helper()
	store, err := state.Open(g.state(), state.Options{})
	if err != nil {
		g.t.Fatal(err)
	}
	now := time.Now()
	active := map[netip.Addr]pools.MAC{}
	for _, l := range store.Leases.List() {
		if l.Active(now) {
			active[l.Address] = l.MAC
		}
	}
	if err := store.Close(); err != nil {
		g.t.Error(err)
	}
	for m, a := range g.held {
		if active[a] != m {
			g.t.Errorf("%s has an ACK for %s; on disk it belongs to %q", m, a, active[a])
		}
	}
}

// confirm requests the address of every guest with a lease again, from the new server,
// as a client does after its reboot.
func (g *guests) confirm() {
	g.t.Helper()
	missing := maps.Clone(g.held)
	for patience := time.Now().Add(2 * time.Minute); len(missing) > 0; {
		if time.Now().After(patience) {
			g.t.Errorf("no answer to %v", missing)
			return
		}
		for m, a := range missing {
			g.send(dhcpMessage(m, 1, dhcpRequest, dhcpField{50, a}))
		}
		for {
			a, ok := g.receive(500 * time.Millisecond)
			if !ok {
				break
			}
			want, waits := missing[a.mac]
			if a.xid != 1 || !waits {
				continue
			}
			if a.kind != dhcpACK || a.addr != want {
				g.t.Errorf("%s asks again for its %s: got type %d, %s", a.mac, want, a.kind, a.addr)
			}
			if delete(missing, a.mac); len(missing) == 0 {
				break
			}
		}
	}
}
