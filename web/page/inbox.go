package page

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/machines"
	"drover/pools/printable"
	"drover/pools/resolve"
)

// maxInbox bounds the unknown machines on the page, so that invented MACs do not make
// the page long.
const maxInbox = 25

// maxUnknownRows bounds the machines in the list that no node declares, likewise.
const maxUnknownRows = 100

// bounded returns the machines to show, and the number of those left out. Of the machines
// that no node declares it shows the ones whose boots got furthest, then the newest.
func bounded(all []machines.Status) (shown []machines.Status, more int) {
	known := slices.IndexFunc(all, func(m machines.Status) bool { return m.Unknown })
	if known < 0 || len(all)-known <= maxUnknownRows {
		return all, 0
	}
	slices.SortFunc(all[known:], func(a, b machines.Status) int {
		return cmp.Or(cmp.Compare(furthest(b), furthest(a)), boots.NewestFirst(a.Boot, b.Boot))
	})
	shown = all[:known+maxUnknownRows]
	slices.SortFunc(shown[known:], func(a, b machines.Status) int { return strings.Compare(a.Node.Name, b.Node.Name) })
	return shown, len(all) - len(shown)
}

// furthest returns the rank of the last step that the newest boot of a machine reached.
func furthest(m machines.Status) int {
	last, _ := m.Boot.Furthest()
	return last.Step.Rank()
}

// inbox is the section of the page with the unknown machines.
type inbox struct {
	N    int // number of all unknown machines
	Rows []unknownMachine
}

// unknownMachine is a row of the inbox.
type unknownMachine struct {
	MAC      pools.MAC
	Last     string // time since its last DISCOVER
	Count    int
	Firmware string
	Class    string
	Hardware string // as the machine reported it
	Via      string // relay agent, circuit and remote
	Pool     string // empty: it got no answer
	Address  string
}

// More returns the number of machines that are not shown.
func (b inbox) More() int { return b.N - len(b.Rows) }

func newInbox(all []pools.Unknown, now time.Time) inbox {
	b := inbox{N: len(all)}
	for _, u := range all[:min(len(all), maxInbox)] {
		s := unknownMachine{
			MAC: u.MAC, Last: ago(now.Sub(u.Last)), Count: u.Count, Pool: u.Pool,
			Firmware: printable.Quote(string(u.Firmware), 64), Class: printable.Quote(u.Class, 64), Via: via(u),
		}
		if u.Inventory != nil {
			s.Hardware = printable.Quote(u.Inventory.String(), 256)
		}
		if u.Address.IsValid() {
			s.Address = u.Address.String()
		}
		b.Rows = append(b.Rows, s)
	}
	return b
}

// via returns the relay agent, circuit and remote of a machine as text.
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

// rangeUse is the use of the range of a catch-all pool.
type rangeUse struct {
	Pool   string
	Range  pools.Range
	Leased int
	Size   int
}

// Full reports whether at least 90 % of the range is leased.
func (u rangeUse) Full() bool { return u.Leased*10 >= u.Size*9 }

// declined is an address in quarantine.
type declined struct {
	Address netip.Addr
	MAC     pools.MAC
	Why     string
	Left    string // time until it may be leased again
}

// leased is the section of the page with the leases.
type leased struct {
	Spans    []rangeUse
	Declined []declined

	now   time.Time
	byMAC map[pools.MAC]pools.Lease // the last lease of each machine
}

// newLeased returns the section for all leases at now.
func newLeased(all []pools.Lease, farm *resolve.Farm, now time.Time) leased {
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
			v.byMAC[l.MAC] = l // a machine may still use an address that it did not renew
		case pools.LeaseDeclined:
			v.Declined = append(v.Declined, declined{l.Address, l.MAC, printable.Quote(l.Declined, 64), ago(l.Expires.Sub(now))})
		}
	}
	slices.SortFunc(v.Declined, func(a, b declined) int { return a.Address.Compare(b.Address) })
	v.Declined = v.Declined[:min(len(v.Declined), maxInbox)]
	for _, p := range farm.Config.Pools {
		if p.CatchAll && p.Range.IsValid() {
			v.Spans = append(v.Spans, rangeUse{p.Name, p.Range, inRange[p.Name], size(p.Range)})
		}
	}
	return v
}

// size returns the number of addresses in a range.
func size(r pools.Range) int {
	a, b := r.First.As4(), r.Last.As4()
	n := 1
	for i := range a {
		n += (int(b[i]) - int(a[i])) << (8 * (3 - i))
	}
	return n
}

// of returns the leased address of an unknown machine, and a note with the remaining
// lease time. Both are "" without a lease.
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

// lastPower returns the last known power state of nodes, as text by name. It is the
// result of the last job; the state is not read again.
func lastPower(jobs []pools.PowerJob, now time.Time) map[string]string {
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
