package snapshot

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"

	"drover/internal/printable"
	"drover/pools"
	"drover/pools/boots"
	"drover/web/api"
)

// Failing is the state of a machine whose boot is in progress and has reported an error. The
// other states are those of the API.
const Failing = "failing"

// States returns all states, in the order of the overview.
func States() []string {
	return []string{Failing, string(pools.NodeStuck), string(pools.NodeMoving), string(pools.NodeBooting), string(pools.NodeReady), string(pools.NodeOnline), string(pools.NodeNew), string(pools.NodeIgnored)}
}

func stateOf(m *api.Machine) string {
	s := m.Status.State
	if (s == pools.NodeBooting || s == pools.NodeStuck) && m.Boot != nil && m.Boot.Error != "" {
		return Failing
	}
	return string(s)
}

// Cause is something that is wrong with one machine or more.
type Cause struct {
	Key   string // in the URL
	Stray bool   // of machines that no node declares: anyone can invent them
	State string
	Text  string
	N     int
	First string // name of the first machine
}

// compareCauses puts what concerns declared machines first, then what concerns the most machines.
func compareCauses(a, b Cause) int {
	if a.Stray != b.Stray {
		if a.Stray {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.State, b.State), cmp.Compare(a.Text, b.Text))
}

// maxText bounds an error, in bytes.
const maxText = 300

// group sets what is wrong with a machine, and adds it to the cause of that.
func (m *Machine) group(groups map[string]*Cause) {
	common := ""
	switch {
	case m.State == Failing:
		step := ""
		for _, s := range m.Boot.Steps {
			if s.Error != "" {
				step = string(s.Step) + ": "
			}
		}
		m.Problem = step + printable.Line(m.Boot.Error, maxText)
		common = step + m.generalize(printable.Line(m.Boot.Error, maxText))
	case m.State == string(pools.NodeStuck):
		m.Problem = "no progress after " + string(m.Boot.Stuck.After)
		common = m.Problem
	case m.Move != nil && (m.Move.Step == pools.MoveHeld || m.Move.Step == pools.MoveStays):
		m.Problem = printable.Line(m.Move.Summary(), maxText)
		common = m.generalize(m.Problem)
	default:
		return
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%t", m.State, m.Status.Cluster, common, m.CatchAll))
	m.Cause = hex.EncodeToString(sum[:6])
	c := groups[m.Cause]
	if c == nil {
		c = &Cause{Key: m.Cause, Stray: m.CatchAll, State: m.State, Text: m.Problem, First: m.Name}
		groups[m.Cause] = c
	}
	if c.N++; c.N > 1 {
		c.Text = common
	}
}

// generalize returns an error without what differs between machines: the name, the MACs and
// the addresses of this one, and numbers such as durations become "…". Addresses of others
// stay.
func (m *Machine) generalize(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		n := strings.IndexFunc(text, func(r rune) bool { return !isWord(r) })
		if n < 0 {
			n = len(text)
		}
		if n == 0 {
			n = strings.IndexFunc(text, isWord)
			if n < 0 {
				n = len(text)
			}
			b.WriteString(text[:n])
		} else {
			word := text[:n]
			if core := strings.Trim(word, ".:-_"); m.isOwn(core) {
				word = strings.Replace(word, core, "…", 1)
			}
			b.WriteString(word)
		}
		text = text[n:]
	}
	return b.String()
}

// isWord reports whether r is part of a name, an address or a number.
func isWord(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune(".:-_", r)
}

// isOwn reports whether a word is of this machine or this error alone.
func (m *Machine) isOwn(word string) bool {
	if word == "" {
		return false
	}
	if word == m.Name {
		return true
	}
	if addr, err := netip.ParseAddr(word); err == nil {
		return addr == m.Status.Address || addr == m.IP || addr == m.IP6
	}
	if at, err := netip.ParseAddrPort(word); err == nil {
		return at.Addr() == m.Status.Address || at.Addr() == m.IP || at.Addr() == m.IP6
	}
	if _, err := pools.ParseMAC(word); err == nil {
		return true
	}
	return word[0] >= '0' && word[0] <= '9'
}

// usualSteps are the steps of most boots.
var usualSteps = func() (all []boots.Step) {
	for _, s := range boots.Steps() {
		if !s.Optional {
			all = append(all, s.Step)
		}
	}
	return all
}()

// UsualSteps returns the number of steps of most boots.
func UsualSteps() int { return len(usualSteps) }

// Progress returns how many of the usual steps a boot has reached.
func Progress(b *boots.Record) (n int) {
	last, ok := b.Furthest()
	if !ok {
		return 0
	}
	for _, s := range usualSteps {
		if s.Rank() <= last.Step.Rank() {
			n++
		}
	}
	return n
}
