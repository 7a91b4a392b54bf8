package state_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/resolve"
	"drover/state"
)

// The leases of TestKill: more machines than addresses, on a clock that runs
// so fast that leases, offers (30 s) and quarantines (1 h) are over within
// milliseconds, and seconds, of the test.
const (
	crashMachines  = 64
	crashAddresses = 40
	crashLoaders   = 16
	crashSpeed     = 1000
	crashLease     = 20 * time.Second // the shortest; see crashPlan
)

// crashClock is what all processes of a test that began at that time go by.
func crashClock(began time.Time) time.Time { return epoch.Add(time.Since(began) * crashSpeed) }

// crashPlan is the plan of a machine. Some are content with a short lease.
func crashPlan(n int) *resolve.Plan {
	p := plan(n)
	p.Range.Last = addr(crashAddresses)
	p.Lease = pools.Duration(crashLease * time.Duration(1+n%20))
	return p
}

// loadLeases plays its share of the machines. Before it does something it says
// so, and again when that was acknowledged.
func loadLeases(s *state.Store, share int, began time.Time, say func(string, ...any)) {
	for {
		p := crashPlan(share + crashLoaders*rand.IntN(crashMachines/crashLoaders))
		now := crashClock(began)
		a, _, err := s.Leases.Offer(p, netip.Addr{}, now)
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		declined := rand.IntN(150) == 0 && decline(s, p, a, now, say)
		if declined {
			if a, _, err = s.Leases.Offer(p, netip.Addr{}, now); err != nil {
				continue
			}
		}
		if rand.IntN(10) == 0 { // it would rather have another one
			say("end %s", p.MAC)
			a = addr(1 + rand.IntN(crashAddresses))
		}
		say("ask %s", p.MAC)
		if rand.IntN(4) == 0 { // and repeats itself
			_, _ = s.Leases.Commit(p, a, now)
		}
		if err := commit(s.Leases, p, a, now); err != nil {
			continue
		}
		say("lease %s %s %d %d", p.MAC, a, now.UnixNano(), now.Add(p.Lease.D()).UnixNano())
		if declined {
			say("durable %s", p.MAC) // the commit was written behind it
		}
		if rand.IntN(6) == 0 {
			say("end %s", p.MAC)
			s.Leases.Release(p, a, now)
		}
	}
}

func decline(s *state.Store, p *resolve.Plan, a netip.Addr, now time.Time, say func(string, ...any)) bool {
	say("end %s", p.MAC)
	say("decline %s %s %d", p.MAC, a, now.UnixNano())
	return s.Leases.Decline(p, a, "test", now)
}

// span is a time in which an address was acknowledged to be one machine's, or
// in quarantine.
type span struct {
	mac         pools.MAC // zero: quarantine
	from, until time.Time
}

// leaseAck is the lease that a machine was told of last.
type leaseAck struct {
	addr   netip.Addr
	until  time.Time
	asking bool // it asked for another since, and that may be stored or not
}

// leaseAcks is the leases that the load reported.
type leaseAcks struct {
	leases   map[pools.MAC]leaseAck
	declined map[pools.MAC]span // not acknowledged yet, at the address in where
	where    map[pools.MAC]netip.Addr
	spans    map[netip.Addr][]span
	held     int // leases and quarantines that were looked for and found in force
}

func newLeaseAcks() *leaseAcks {
	return &leaseAcks{
		leases: map[pools.MAC]leaseAck{}, declined: map[pools.MAC]span{},
		where: map[pools.MAC]netip.Addr{}, spans: map[netip.Addr][]span{},
	}
}

// read takes a line of the load; false: it is not about leases.
func (a *leaseAcks) read(t *testing.T, line string) bool {
	t.Helper()
	var what, m, at string
	var from, until int64
	n, _ := fmt.Sscan(line, &what, &m, &at, &from, &until)
	mac := pools.MAC{}
	if n >= 2 {
		if err := mac.UnmarshalText([]byte(m)); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
	}
	switch {
	case what == "ask" && n == 2:
		ack, ok := a.leases[mac]
		if ack.asking = true; ok {
			a.leases[mac] = ack
		}
	case what == "end" && n == 2:
		a.cut(mac)
	case what == "lease" && n == 5:
		ip, s := netip.MustParseAddr(at), span{mac: mac, from: time.Unix(0, from), until: time.Unix(0, until)}
		if old, ok := a.leases[mac]; ok && old.addr != ip {
			a.cut(mac) // it left the other one
		}
		a.leases[mac] = leaseAck{addr: ip, until: s.until}
		a.spans[ip] = append(a.spans[ip], s)
	case what == "decline" && n == 4:
		a.declined[mac], a.where[mac] = span{from: time.Unix(0, from), until: time.Unix(0, from).Add(time.Hour)}, netip.MustParseAddr(at)
	case what == "durable" && n == 2:
		a.spans[a.where[mac]] = append(a.spans[a.where[mac]], a.declined[mac])
	default:
		return false
	}
	return true
}

// cut forgets the lease of a machine that gives it up: when exactly others can
// have the address is not known.
func (a *leaseAcks) cut(mac pools.MAC) {
	own := a.leases[mac].addr
	a.spans[own] = slices.DeleteFunc(a.spans[own], func(s span) bool { return s.mac == mac })
	delete(a.leases, mac)
}

// check looks for what was acknowledged in the state as it was found.
func (a *leaseAcks) check(t *testing.T, l *state.Leases, now time.Time) {
	t.Helper()
	unique(t, l)
	byAddr, byMAC := map[netip.Addr]pools.Lease{}, map[pools.MAC]pools.Lease{}
	for _, lease := range l.List() {
		byAddr[lease.Address] = lease
		if lease.Declined == "" {
			byMAC[lease.MAC] = lease
		}
	}
	for mac, want := range a.leases {
		got, ok := byMAC[mac]
		switch at := byAddr[want.addr]; {
		case ok && want.asking:
		case ok && got.Address == want.addr && !got.Released && !got.Expires.Before(want.until):
			if now.Before(want.until) {
				a.held++
			}
		case at.MAC != mac && at.Address.IsValid() && !begin(at).Before(want.until): // it had expired
		case !at.Address.IsValid() && !now.Before(want.until): // and who got it left it again
		default:
			t.Errorf("lease %s of %s until %s is lost; there is %+v and %+v", want.addr, mac, want.until, got, at)
		}
	}
	for ip, spans := range a.spans {
		a.held += inForce(t, spans, byAddr[ip], now)
		overlap(t, ip, spans)
	}
	a.prune(now)
}

// inForce counts the quarantines of an address that are in force, and looks
// whether they are known. A lease may have followed, when nothing else was left, and its
// machine may have left the address.
func inForce(t *testing.T, spans []span, got pools.Lease, now time.Time) (n int) {
	t.Helper()
	for _, s := range spans {
		if !s.mac.IsZero() || !now.Before(s.until) {
			continue
		}
		if n++; got.Address.IsValid() && begin(got).Before(s.from) {
			t.Errorf("a quarantine until %s is lost; there is %+v", s.until, got)
		}
	}
	return n
}

// overlap looks whether an address was two machines' at a time.
func overlap(t *testing.T, ip netip.Addr, spans []span) {
	t.Helper()
	for i, s := range spans {
		for _, o := range spans[:i] {
			yields := s.mac.IsZero() && !o.from.Before(s.from) || o.mac.IsZero() && !s.from.Before(o.from)
			if !yields && s.mac != o.mac && s.from.Before(o.until) && o.from.Before(s.until) {
				t.Errorf("%s was given to %s from %s to %s and to %s from %s to %s", ip, s.mac, s.from, s.until, o.mac, o.from, o.until)
			}
		}
	}
}

// begin is when a lease or quarantine of the load began, or for one that was
// released at most that.
func begin(l pools.Lease) time.Time {
	switch {
	case l.Released:
		return l.Expires
	case l.Declined != "":
		return l.Expires.Add(-time.Hour)
	}
	for n := range crashMachines {
		if p := crashPlan(n); p.MAC == l.MAC {
			return l.Expires.Add(-p.Lease.D() - min(p.Lease.D()/5, time.Minute))
		}
	}
	return time.Time{}
}

// prune forgets the spans that nothing can overlap with any more.
func (a *leaseAcks) prune(now time.Time) {
	for ip, spans := range a.spans {
		a.spans[ip] = slices.DeleteFunc(spans, func(s span) bool { return now.After(s.until.Add(time.Hour)) })
	}
}
