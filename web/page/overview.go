package page

import (
	"fmt"
	"slices"
	"strings"

	"drover/internal/printable"
	"drover/pools"
	"drover/web/api"
	"drover/web/page/snapshot"
	"drover/web/page/table"
	"drover/web/page/text"
	"drover/web/page/timeline"
)

// overview is the first page.
type overview struct {
	Total    int
	Counts   []count
	Problems []api.Problem // drover is not ready
	Warnings []api.Problem
	Causes   []trouble
	More     int // causes that are not shown
	Booting  []bootLine
	Waiting  int // boots in progress that are not shown
	Pools    []poolLine
	Ranges   []rangeUse
}

func (overview) title() string { return "Overview" }

// count is the number of machines in a state.
type count struct {
	State string
	N     int
	URL   string
}

// trouble is a cause, with a link to its machines.
type trouble struct {
	snapshot.Cause
	URL string
}

// bootLine is a boot in progress.
type bootLine struct {
	Name, URL   string
	State       string
	Step, Since string
	Steps       [2]int
	Pool        string
}

// poolLine is a pool with its machines by state.
type poolLine struct {
	Name, URL, Cluster, Image string
	N                         int
	Bar                       []timeline.Bar
	States                    string // as text
}

// The limits of the overview.
const (
	maxCauses  = 20
	maxBooting = 12
)

func (p *page) overview(r *request) (any, error) {
	v := overview{Total: len(r.shared.Machines)}
	for _, problem := range r.shared.Problems {
		problem.Problem = printable.Line(problem.Problem, 2*maxText)
		if problem.Warning {
			v.Warnings = append(v.Warnings, problem)
		} else {
			v.Problems = append(v.Problems, problem)
		}
	}
	for _, s := range snapshot.States() {
		if n := r.shared.Counts[s]; n > 0 {
			v.Counts = append(v.Counts, count{s, n, table.To("/nodes", "state", string(s))})
		}
	}
	for _, c := range r.shared.Causes[:min(len(r.shared.Causes), maxCauses)] {
		t := trouble{c, table.To("/nodes", "cause", c.Key)}
		if c.N == 1 {
			t.URL = table.NodePath(c.First)
		}
		v.Causes = append(v.Causes, t)
	}
	v.More = len(r.shared.Causes) - len(v.Causes)
	v.booting(r)
	v.pools(r)
	v.Ranges = ranges(p.api.LeasesOf(r.client), r)
	return v, nil
}

// booting sets the newest boots in progress: those of declared machines first.
func (v *overview) booting(r *request) {
	var all []*snapshot.Machine
	for i := range r.shared.Machines {
		if m := &r.shared.Machines[i]; m.State == string(pools.NodeBooting) {
			all = append(all, m)
		}
	}
	slices.SortStableFunc(all, func(a, b *snapshot.Machine) int {
		if a.CatchAll != b.CatchAll {
			if a.CatchAll {
				return 1
			}
			return -1
		}
		return b.Status.Since.Compare(a.Status.Since)
	})
	shown := all[:min(len(all), maxBooting)]
	v.Waiting = len(all) - len(shown)
	for _, m := range shown {
		v.Booting = append(v.Booting, bootLine{
			Name: m.Name, URL: table.NodePath(m.Name), State: m.State, Step: m.Status.Detail, Since: text.Ago(r.shared.Now.Sub(m.Status.Since)),
			Steps: [2]int{snapshot.Progress(m.Boot), snapshot.UsualSteps()}, Pool: m.Pool,
		})
	}
}

// pools sets the pools, in the order of the config.
func (v *overview) pools(r *request) {
	by := map[string]map[string]int{}
	for i := range r.shared.Machines {
		m := &r.shared.Machines[i]
		if by[m.Pool] == nil {
			by[m.Pool] = map[string]int{}
		}
		by[m.Pool][m.State]++
	}
	for _, pool := range r.pools() {
		line := poolLine{Name: pool.Name, URL: table.To("/nodes", "pool", pool.Name), Cluster: pool.Cluster, Image: pools.ImageName(pool.Image)}
		var words []string
		for _, s := range snapshot.States() {
			n := by[pool.Name][s]
			line.N += n
			if n > 0 {
				words = append(words, fmt.Sprintf("%d %s", n, s))
			}
		}
		line.States = strings.Join(words, ", ")
		at := 0
		for _, s := range snapshot.States() {
			n := by[pool.Name][s]
			if n == 0 {
				continue
			}
			line.Bar = append(line.Bar, timeline.Bar{X: at * timeline.Width / line.N, Width: max(1, n*timeline.Width/line.N), Class: string(s)})
			at += n
		}
		v.Pools = append(v.Pools, line)
	}
}
