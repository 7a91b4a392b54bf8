package state_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/resolve"
	"drover/state"
)

// ownAddr is the one address that is reserved in the stories of the model: for
// the node of machines 7 and 8.
var ownAddr = addr(3)

func modelPlan(n int) *resolve.Plan {
	p := plan(n)
	if n >= 7 {
		p.Node, p.Address, p.Range, p.Matched = "fixed", ownAddr, pools.Range{}, "clientID"
	}
	return p
}

// model is what [state.Leases] should do, without any search or file.
type model struct {
	at     map[netip.Addr]modelLease
	offers map[pools.MAC]modelOffer
}

type modelLease struct {
	mac      pools.MAC
	node     string
	until    time.Time // zero when it was released
	declined bool
}

type modelOffer struct {
	addr  netip.Addr
	until time.Time
}

func (m *model) offered(mac pools.MAC, a netip.Addr, now time.Time) bool {
	o := m.offers[mac]
	return o.addr == a && now.Before(o.until)
}

func (m *model) offeredToOther(mac pools.MAC, a netip.Addr, now time.Time) bool {
	for other := range m.offers {
		if other != mac && m.offered(other, a, now) {
			return true
		}
	}
	return false
}

func (m *model) inForce(a netip.Addr, now time.Time) bool { return now.Before(m.at[a].until) }

func (m *model) holds(mac pools.MAC, a netip.Addr, now time.Time) bool {
	l := m.at[a]
	return l.mac == mac && !l.declined && m.inForce(a, now)
}

// offerable reports whether a can be offered to the machine of p.
func (m *model) offerable(p *resolve.Plan, a netip.Addr, now time.Time) bool {
	return m.inRange(p, a, now) && (m.holds(p.MAC, a, now) || !m.inForce(a, now))
}

func (m *model) inRange(p *resolve.Plan, a netip.Addr, now time.Time) bool {
	return p.Range.Contains(a) && a != ownAddr && !m.offeredToOther(p.MAC, a, now)
}

// left reports whether a is in quarantine and the machine of p can get no other address.
func (m *model) left(p *resolve.Plan, a netip.Addr, now time.Time) bool {
	for b := addr(0); b != addr(8); b = b.Next() {
		if m.offerable(p, b, now) {
			return m.offered(p.MAC, a, now)
		}
	}
	return m.inRange(p, a, now) && m.at[a].declined
}

func (m *model) offer(p *resolve.Plan, a netip.Addr, now time.Time) {
	if o := m.offers[p.MAC]; o.addr != a || o.until.Sub(now) <= 15*time.Second {
		m.offers[p.MAC] = modelOffer{a, now.Add(30 * time.Second)}
	}
}

func (m *model) commit(p *resolve.Plan, a netip.Addr, now time.Time) bool {
	own, l := a == p.Address, m.at[a]
	switch {
	case a == ownAddr && !own, m.offeredToOther(p.MAC, a, now):
		return false
	case m.inForce(a, now) && l.declined && !own && !m.offered(p.MAC, a, now):
		return false
	case m.inForce(a, now) && !l.declined && l.mac != p.MAC && (!own || l.node != p.Node):
		return false
	}
	delete(m.offers, p.MAC)
	if spare := l.until.Sub(now.Add(50 * time.Second)); m.holds(p.MAC, a, now) && 0 <= spare && spare <= 10*time.Second {
		return true
	}
	for old, l := range m.at {
		if l.mac == p.MAC && !l.declined {
			delete(m.at, old)
		}
	}
	m.at[a] = modelLease{mac: p.MAC, node: p.Node, until: now.Add(time.Minute)}
	return true
}

func (m *model) end(a netip.Addr, now time.Time) bool {
	l, ok := m.at[a], m.inForce(a, now)
	if l.until = (time.Time{}); ok {
		m.at[a] = l
	}
	return ok
}

func (m *model) decline(mac pools.MAC, a netip.Addr, now time.Time) bool {
	if !m.offered(mac, a, now) && !m.holds(mac, a, now) {
		return false
	}
	delete(m.offers, mac)
	m.at[a] = modelLease{mac: mac, until: now.Add(time.Hour), declined: true}
	return true
}

// FuzzLeases plays random stories on a small range, with the store and with
// the model. Two bytes are a step: what and how much later, who and where.
func FuzzLeases(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		story := make([]byte, 400)
		for i := range story {
			story[i] = byte(random.Uint32())
		}
		f.Add(story)
	}
	f.Fuzz(func(t *testing.T, story []byte) {
		dir := t.TempDir()
		s := open(t, dir)
		plan := reserving(3, modelPlan)
		m := &model{at: map[netip.Addr]modelLease{}, offers: map[pools.MAC]modelOffer{}}
		now := epoch
		for i := 0; i+1 < len(story) && i < 400; i += 2 {
			later := int(story[i] >> 3)
			if later == 31 {
				later = 40 * 60
			}
			now = now.Add(time.Duration(later) * time.Second)
			n, a := int(story[i+1]&7)+1, addr(int(story[i+1]>>3)&7)
			step := fmt.Sprintf("step %d, %s, machine %d, %s", i/2, now.Sub(epoch), n, a)
			now = m.play(t, s.Leases, step, story[i]&7, plan(n), a, now)
			unique(t, s.Leases)
		}
		want := fmt.Sprint(s.Leases.List())
		if got := fmt.Sprint(reopen(t, s, dir).Leases.List()); got != want {
			t.Errorf("after a restart:\ngot  %s\nwant %s", got, want)
		}
	})
}

// play has both take a step, and returns the time after it.
func (m *model) play(t *testing.T, l *state.Leases, step string, what byte, p *resolve.Plan, a netip.Addr, now time.Time) time.Time {
	t.Helper()
	same := func(what string, got, want bool) {
		t.Helper()
		if got != want {
			t.Fatalf("%s: %s: got %t, want %t", step, what, got, want)
		}
	}
	switch what {
	case 0:
		l.Release(p, a, now)
		if m.holds(p.MAC, a, now) {
			m.end(a, now)
		}
	case 1:
		same("Decline", l.Decline(p, a, "test", now), m.decline(p.MAC, a, now))
	case 2:
		if holder := m.at[a].mac; holder != p.MAC {
			same("End of another's", l.End(a, p.MAC, now), false)
		}
		same("End", l.End(a, m.at[a].mac, now), m.end(a, now))
	case 3, 4:
		_, err := l.Commit(p, a, now)
		same("Commit", err == nil, m.commit(p, a, now))
	case 5:
		l.Leave(p.MAC, netip.Addr{}, now)
		for own := range m.at {
			if m.holds(p.MAC, own, now) {
				m.end(own, now)
			}
		}
	default:
		got, err := m.offerBy(t, l, step, p, a, &now)
		if err == nil && what == 7 {
			_, err := l.Commit(p, got, now)
			same("Commit of the offer", err == nil, m.commit(p, got, now))
		}
	}
	got, ok := l.Holds(p.MAC, now)
	for own := range m.at {
		if m.holds(p.MAC, own, now) {
			same("Holds "+own.String(), ok && got == own, true)
			return now
		}
	}
	same("Holds", ok, false)
	return now
}

// offerBy has the store offer an address and looks whether it could.
func (m *model) offerBy(t *testing.T, l *state.Leases, step string, p *resolve.Plan, want netip.Addr, now *time.Time) (netip.Addr, error) {
	t.Helper()
	got, _, err := l.Offer(p, want, *now)
	if err != nil {
		// It looks for a free address no more than once a second.
		*now = now.Add(time.Second)
		got, _, err = l.Offer(p, want, *now)
	}
	if err != nil {
		if !errors.Is(err, pools.ErrRefused) {
			t.Fatalf("%s: %v", step, err)
		}
		for a := addr(0); a != addr(8); a = a.Next() {
			if m.offerable(p, a, *now) || m.left(p, a, *now) {
				t.Fatalf("%s: got no offer, but %s can be had", step, a)
			}
		}
		return got, err
	}
	if !m.offerable(p, got, *now) && !m.left(p, got, *now) {
		t.Fatalf("%s: got an offer of %s, which cannot be had", step, got)
	}
	for own := range m.at {
		if m.holds(p.MAC, own, *now) && got != own && m.offerable(p, own, *now) {
			t.Fatalf("%s: got an offer of %s, but it holds %s", step, got, own)
		}
	}
	m.offer(p, got, *now)
	return got, nil
}
