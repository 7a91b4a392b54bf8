package page

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"drover/pools"
	"drover/pools/printable"
)

// maxInbox is how many unknown machines the page shows. Invented MACs must
// not make the page long.
const maxInbox = 25

// inbox are the machines that no node declares.
type inbox struct {
	N    int // all of them
	Rows []unknownMachine
}

// unknownMachine is a machine of the inbox.
type unknownMachine struct {
	MAC      pools.MAC
	Last     string // time since it asked
	Count    int
	Firmware string
	Class    string
	Via      string // relay agent, circuit and remote
	Pool     string // empty: it got silence
	Address  string
}

// More is how many are not shown.
func (b inbox) More() int { return b.N - len(b.Rows) }

func newInbox(all []pools.Unknown, now time.Time) inbox {
	b := inbox{N: len(all)}
	for _, u := range all[:min(len(all), maxInbox)] {
		s := unknownMachine{
			MAC: u.MAC, Last: ago(now.Sub(u.Last)), Count: u.Count, Pool: u.Pool,
			Firmware: printable.Quote(string(u.Firmware), 64), Class: printable.Quote(u.Class, 64), Via: via(u),
		}
		if u.Address.IsValid() {
			s.Address = u.Address.String()
		}
		b.Rows = append(b.Rows, s)
	}
	return b
}

// via describes the way of a machine's packets, as far as relay agents sent it.
func via(u pools.Unknown) string {
	var words []string
	if u.Relay.IsValid() {
		words = append(words, "relay "+u.Relay.String())
	}
	if u.Circuit != "" {
		words = append(words, "circuit "+printable.Quote(u.Circuit, 64))
	}
	if u.Remote != "" {
		words = append(words, "remote "+printable.Quote(u.Remote, 64))
	}
	return strings.Join(words, ", ")
}

// span is how full the range of a catch-all pool is.
type span struct {
	Pool   string
	Range  pools.Range
	Leased int
	Size   int
}

// Full reports whether new machines get no address, or soon will not.
func (s span) Full() bool { return s.Leased*10 >= s.Size*9 }

// declined is an address in quarantine.
type declined struct {
	Address netip.Addr
	MAC     pools.MAC
	Why     string
	Left    string // time until it may be leased again
}

// leased is the leases as the page shows them.
type leased struct {
	Spans    []span
	Declined []declined

	now   time.Time
	byMAC map[pools.MAC]pools.Lease // what each machine leased last
}

// newLeased sorts the leases out.
func newLeased(all []pools.Lease, farm *pools.Farm, now time.Time) leased {
	v := leased{now: now, byMAC: make(map[pools.MAC]pools.Lease, len(all))}
	ranges, inRange := map[string]pools.Range{}, map[string]int{}
	for _, p := range farm.Config.Pools {
		ranges[p.Name] = p.Range
	}
	for _, l := range all {
		switch l.State(now) {
		case pools.LeaseActive:
			if r := ranges[l.Pool]; r.IsValid() && r.Contains(l.Address) {
				inRange[l.Pool]++
			}
			v.byMAC[l.MAC] = l
		case pools.LeaseExpired:
			v.byMAC[l.MAC] = l // a machine may go on with an address that it did not renew
		case pools.LeaseDeclined:
			v.Declined = append(v.Declined, declined{l.Address, l.MAC, printable.Quote(l.Declined, 64), ago(l.Expires.Sub(now))})
		}
	}
	slices.SortFunc(v.Declined, func(a, b declined) int { return a.Address.Compare(b.Address) })
	v.Declined = v.Declined[:min(len(v.Declined), maxInbox)]
	for _, p := range farm.Config.Pools {
		if p.CatchAll && p.Range.IsValid() {
			v.Spans = append(v.Spans, span{p.Name, p.Range, inRange[p.Name], size(p.Range)})
		}
	}
	return v
}

// size is how many addresses a range has.
func size(r pools.Range) int {
	a, b := r.First.As4(), r.Last.As4()
	n := 1
	for i := range a {
		n += (int(b[i]) - int(a[i])) << (8 * (3 - i))
	}
	return n
}

// of is the address of a machine that no node declares, and for how long it
// has it.
func (v leased) of(mac pools.MAC) (addr, note string) {
	l, ok := v.byMAC[mac]
	switch {
	case !ok:
		return "", ""
	case l.Active(v.now):
		return l.Address.String(), "leased for " + ago(l.Expires.Sub(v.now))
	}
	return l.Address.String(), "lease expired"
}

// address returns the address of a declared node, and a note when a lease differs
// from it.
func (v leased) address(n pools.NodeInfo) (addr, note string) {
	if n.IP.IsValid() {
		addr = n.IP.String()
	}
	for _, m := range n.MACs {
		l, ok := v.byMAC[m]
		switch {
		case !ok || l.Address == n.IP:
		case addr == "":
			return l.Address.String(), ""
		case !l.Active(v.now):
		default:
			return addr, "still on " + l.Address.String()
		}
	}
	return addr, ""
}

// switched returns the last known power of nodes: the result of the last order for
// each. No machine is asked for it.
func switched(jobs []pools.PowerJob, now time.Time) map[string]string {
	out := map[string]string{}
	for _, job := range jobs {
		for _, n := range job.Nodes {
			if _, newer := out[n.Name]; newer {
				continue
			}
			switch {
			case n.Error != "":
				out[n.Name] = "power " + job.Action + " failed " + ago(now.Sub(n.Time)) + " ago: " + printable.Quote(n.Error, 64)
			case job.Ended.IsZero():
				out[n.Name] = "power " + job.Action + ": " + n.Step
			default:
				out[n.Name] = "was " + n.State + " " + ago(now.Sub(n.Time)) + " ago"
			}
		}
	}
	return out
}
