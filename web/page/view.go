package page

import (
	"context"
	"fmt"
	"slices"
	"time"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/machines"
	"drover/web/answer"
	"drover/web/api"
)

// view is the content of the page.
type view struct {
	Farm     string // name of the config file
	Time     string
	Poll     int // seconds until the page refreshes
	Problems []api.Problem
	Warnings []api.Problem
	Counts   []count
	Trouble  []row // the rows that need attention
	Rows     []row
	More     int // machines that no node declares and that are not shown
	Inbox    inbox
	Leased   leased
	Form     *form // nil: none is open
	Changes  bool  // the session may change something
}

// count is one number of the summary.
type count struct {
	State state
	N     int
}

// state is the state of a machine. It is also the CSS class of its row.
type state string

const (
	ready   state = "ready"   // its last boot has ended
	booting state = "booting" // its boot is in progress
	stuck   state = "stuck"   // its boot has made no progress for too long
	failing state = "failing" // its last report was an error
	unseen  state = "unseen"  // no boot is recorded
)

// row is a machine on the page.
type row struct {
	Name, Pool, Cluster, Image string

	Address string
	Note    string // about the address
	MACs    []pools.MAC
	Next    pools.NextBoot // pending
	Source  string         // drover.yaml:41, API, or unknown hardware
	Known   bool           // a node declares it
	Power   string         // last known, "was on 3 min ago"
	State   state
	Step    string   // the last step reached
	Since   string   // time since it
	Took    string   // "24 s after discover"; empty for the first step
	Usual   string   // of a stuck boot: "usually 12 s"
	Move    string   // as [pools.Move.Summary] returns it
	Strip   []string // the CSS class of each step
	Error   string
	Steps   []timelineStep
}

// timelineStep is a line of a timeline.
type timelineStep struct {
	Step   boots.Step
	After  string // seconds since the boot began
	Detail string
	Error  string
}

func (p *page) view(ctx context.Context) view {
	farm, now := p.api.Farm.Farm(), p.api.Now()
	moves := p.moves()
	v := view{Farm: farm.Source, Time: now.UTC().Format("2006-01-02 15:04:05 UTC")}
	for _, problem := range p.api.Ready(ctx) {
		if problem.Warning {
			v.Warnings = append(v.Warnings, problem)
		} else {
			v.Problems = append(v.Problems, problem)
		}
	}
	power := lastPower(p.api.Power.Jobs(), now)
	v.Leased, v.Inbox = newLeased(p.api.Leases.List(), farm, now), newInbox(p.api.Unknowns.List(), now)
	inPool := map[string]pools.Pool{}
	for _, pool := range farm.Config.Pools {
		inPool[pool.Name] = pool
	}
	all, more := bounded(machines.List(farm, boots.MarkStuck(p.api.Boots.List(), now)))
	v.More = more
	for _, m := range all {
		n := m.Node
		r := row{Name: n.Name, Pool: n.Pool, MACs: n.MACs, Known: !m.Unknown}
		if m.Unknown {
			r.Cluster, r.Image, r.Source = m.Boot.Cluster, m.Boot.Image, "unknown hardware"
			r.Address, r.Note = v.Leased.of(m.Boot.MAC)
		} else {
			r.Cluster, r.Image, r.Source = inPool[n.Pool].Cluster, inPool[n.Pool].Image, source(n)
			r.Address, r.Note = v.Leased.address(n)
			r.Power, r.Next, r.Move = power[n.Name], p.api.NextBoots.Pending(n.Name), moves[n.Name]
		}
		r.boot(m.Boot, now)
		v.Rows = append(v.Rows, r)
	}
	v.summarize()
	return v
}

// boot sets the fields about the machine's boot.
func (r *row) boot(b boots.Record, now time.Time) {
	for _, s := range boots.Steps() {
		class := outcome(b, s.Step)
		if class != "" || !s.Optional { // no gap for the many boots that skip a step
			r.Strip = append(r.Strip, class)
		}
	}
	r.State = unseen
	if len(b.Steps) == 0 {
		return
	}
	for _, s := range b.Steps {
		r.Steps = append(r.Steps, timelineStep{s.Step, seconds(s.Time.Sub(b.Started)), s.Detail, s.Error})
	}
	at := b.Started
	if last, ok := b.Furthest(); ok {
		at, r.Step = last.Time, string(last.Step)
	}
	r.Since, r.Error = ago(now.Sub(at)), b.Error
	if at.After(b.Started) {
		r.Took = fmt.Sprintf("%s after %s", seconds(at.Sub(b.Started)), b.Steps[0].Step)
	}
	switch {
	case b.Ended():
		r.State = ready
	case b.Error != "":
		r.State = failing
	case b.Stuck != nil:
		r.State, r.Usual = stuck, usually(*b.Stuck)
	default:
		r.State = booting
	}
}

// outcome returns the CSS class of a step on the strip: done, failing, or empty for a
// step that the boot has not reached.
func outcome(b boots.Record, step boots.Step) string {
	if _, ok := b.Reached(step); ok {
		return "done"
	}
	if b.Error != "" && slices.ContainsFunc(b.Steps, func(s boots.StepTime) bool { return s.Step == step }) {
		return string(failing)
	}
	return ""
}

// usually returns the usual duration of the step in other boots, as text; "" when it is
// not known.
func usually(s boots.Stuck) string {
	if s.Usual == 0 {
		return ""
	}
	return "usually " + seconds(s.Usual.D())
}

// moves returns the summaries of all moves, by the new name of the node.
func (p *page) moves() map[string]string {
	m := map[string]string{}
	for _, move := range p.api.Moves() {
		m[move.As] = move.Summary()
	}
	return m
}

func (v *view) summarize() {
	n := map[state]int{}
	for _, r := range v.Rows {
		n[r.State]++
		if r.State == stuck || r.State == failing {
			v.Trouble = append(v.Trouble, r)
		}
	}
	for _, s := range []state{ready, booting, stuck, failing, unseen} {
		if n[s] > 0 {
			v.Counts = append(v.Counts, count{s, n[s]})
		}
	}
	v.Poll = 3 + len(v.Rows)/200 // a page of thousands of machines is large
}

func source(n pools.NodeInfo) string {
	switch where := answer.Where(n.Source); {
	case where != "":
		return where
	case !n.ChassisSlot.IsZero():
		return n.ChassisSlot.String()
	}
	return "API"
}

// seconds formats a duration within a boot: "1.5 s", "24 s".
func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", max(d, 0).Seconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

// ago formats a long duration in one unit: "90 s", "5 min", "3 h", "4 days".
func ago(d time.Duration) string {
	switch d = max(d, 0); {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}
