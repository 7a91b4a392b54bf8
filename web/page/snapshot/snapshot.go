// Package snapshot has all machines at a moment, with what is wrong with them: machines with
// the same fault are one [Cause].
//
// The package does not know how a page looks.
package snapshot

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"drover/internal/wait"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
	"drover/web/api"
	"drover/web/auth"
)

// Snapshot is all machines at a moment. Its users share it and must not change it.
type Snapshot struct {
	Farm     *resolve.Farm
	Now      time.Time
	Machines []Machine
	ByName   map[string]*Machine
	Records  []boots.Record // of all boots, the newest first
	Counts   map[string]int // of machines, by their state
	Causes   []Cause        // what is wrong with machines, with declared ones first, then the most frequent
	Unknowns []pools.Unknown
	Problems []api.Problem
}

// Machine is a machine of a [Snapshot].
type Machine struct {
	api.Machine
	State   string      // as the API has it, or [Failing]; also a CSS class
	InPool  *pools.Pool // as the config has it; nil: it has none of that name
	Cause   string      // key of a [Cause]; empty: nothing is wrong with it
	Problem string      // what is wrong with it, as text
}

// perStep is the number of machines that are looked at between two steps of a [wait.Pace].
const perStep = 100

// New returns what an API knows now of the machines of a farm, as far as a client may see them. It
// gives way at a pace; nil: it does not.
func New(a *api.API, farm *resolve.Farm, by auth.Client, pace *wait.Pace) *Snapshot {
	s := &Snapshot{
		Farm: farm, Now: a.Now(), Counts: map[string]int{},
		Unknowns: a.UnknownsOf(by), Problems: a.Ready(context.Background()),
	}
	inPool := map[string]*pools.Pool{}
	for i := range farm.Config.Pools {
		inPool[farm.Config.Pools[i].Name] = &farm.Config.Pools[i]
	}
	all, records := a.Machines(by, pace)
	s.Records = records
	s.Machines, s.ByName = make([]Machine, len(all)), make(map[string]*Machine, len(all))
	groups := map[string]*Cause{}
	for i := range all {
		if i%perStep == 0 {
			pace.Step()
		}
		m := &s.Machines[i]
		m.Machine, m.InPool = all[i], inPool[all[i].Pool]
		m.State = stateOf(&all[i])
		s.ByName[m.Name] = m
		s.Counts[m.State]++
		m.group(groups)
	}
	for _, c := range groups {
		s.Causes = append(s.Causes, *c)
	}
	slices.SortFunc(s.Causes, compareCauses)
	return s
}

// SearchText returns what a search finds a machine by, in lower case.
func (m *Machine) SearchText() string {
	var b []byte
	add := func(words ...string) {
		for _, w := range words {
			if w != "" {
				b = append(append(b, w...), '\n')
			}
		}
	}
	add(m.Name, m.Pool, m.State, m.Status.Cluster, m.Status.Image, m.ChassisSlot.String())
	add(m.Tags...)
	for _, a := range []netip.Addr{m.Status.Address, m.IP} {
		if a.IsValid() {
			b = append(a.AppendTo(b), '\n')
		}
	}
	for _, mac := range m.MACs {
		add(mac.String(), mac.Dashed(), mac.Hex())
	}
	return strings.ToLower(string(b))
}
