package page

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"drover/internal/printable"
	"drover/pools"
	"drover/pools/config/mistake"
	"drover/web/page/chassis"
	"drover/web/page/snapshot"
	"drover/web/page/table"
	"drover/web/page/text"
)

// chassisView is all chassis, drawn as slots.
type chassisView struct {
	Chassis []chassis.Chassis
}

func (chassisView) title() string { return "Chassis" }

func (p *page) chassis(r *request) (any, error) {
	read := func(c *pools.ChassisStatus) string {
		if !r.may(c.Pool) {
			return ""
		}
		return table.To(changePath, "do", "read", "pick", c.Name)
	}
	return chassisView{chassis.Draw(p.api.ChassisOf(r.client), r.shared.Machines, r.shared.Now, read)}, nil
}

// power is the list of the last power jobs.
func (p *page) power(r *request) (any, error) {
	l := &table.List[pools.PowerJob]{
		Columns: []table.Column[pools.PowerJob]{
			{Name: "started", Head: "Started", Of: table.One(func(j *pools.PowerJob) string { return timeKey(j.Started) })},
			{Name: "action", Head: "Action", Of: table.One(func(j *pools.PowerJob) string { return j.Action }), Pick: true},
			{Head: "State"}, {Head: "Machines"},
			{Name: "who", Head: "Who", Of: table.One(func(j *pools.PowerJob) string { return printable.Line(j.Actor, 80) })},
		},
		Row: func(j *pools.PowerJob) table.Row { return jobRow(j, r) },
	}
	t := table.Table{Name: "Power jobs", Path: r.path, Empty: "No power job has run since the server started."}
	return l.View(t, r.query, p.api.JobsOf(r.client)), nil
}

// The limits of the machines of a job: those that its line names, and those that failed and a link
// leads to.
const (
	maxJobNodes = 5
	maxJobLink  = 100
)

func jobRow(j *pools.PowerJob, r *request) table.Row {
	done, failed := 0, []string{}
	var names, failedNames []string
	for _, n := range j.Nodes {
		switch n.Step {
		case pools.PowerDone:
			done++
		case pools.PowerFailed:
			failed, failedNames = append(failed, n.Name+": "+printable.Line(n.Error, 160)), append(failedNames, n.Name)
		}
		names = append(names, n.Name)
	}
	how := table.Cell{Text: fmt.Sprintf("%d of %d done", done, len(j.Nodes))}
	if len(failed) > 0 {
		how.State, how.Text = snapshot.Failing, fmt.Sprintf("%d of %d failed", len(failed), len(j.Nodes))
		how.Sub = failed[:min(len(failed), maxJobNodes)]
		if len(failed) <= maxJobLink {
			how.URL = table.To("/nodes", "name", strings.Join(failedNames, ","))
		}
	}
	if j.Ended.IsZero() {
		how.Text += ", running"
	}
	more := ""
	if n := len(names) - maxJobNodes; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return table.Row{Key: j.ID, Cells: []table.Cell{
		{Text: text.Ago(r.shared.Now.Sub(j.Started)) + " ago", Sub: []string{text.Clock(j.Started)}}, {Text: j.Action}, how,
		{Text: joined(names[:min(len(names), maxJobNodes)]) + more}, {Text: printable.Line(j.Actor, 80)},
	}}
}

// audit is the list of what clients have done.
func (p *page) audit(r *request) (any, error) {
	all := p.audited(r)
	if all.err != nil {
		return nil, all.err
	}
	l := &table.List[pools.AuditEntry]{
		Search: func(e *pools.AuditEntry) string {
			return strings.ToLower(strings.Join(append(changeLines(e), e.Actor, e.Action, e.Node, e.Result), "\n"))
		},
		Columns: []table.Column[pools.AuditEntry]{
			{Name: "time", Head: "Time", Of: table.One(func(e *pools.AuditEntry) string { return timeKey(e.Time) })},
			{Name: "action", Head: "Action", Of: table.One(func(e *pools.AuditEntry) string { return printable.Line(e.Action, 120) })},
			{Name: "node", Head: "Machine", Of: table.One(func(e *pools.AuditEntry) string { return e.Node })},
			{Name: "result", Head: "Result", Of: table.One(func(e *pools.AuditEntry) string { return printable.Line(e.Result, maxText) })},
			{Name: "who", Head: "Who", Of: table.One(func(e *pools.AuditEntry) string { return printable.Line(e.Actor, 120) })},
		},
		Row: func(e *pools.AuditEntry) table.Row {
			machine := table.Cell{Text: e.Node}
			if r.shared.ByName[e.Node] != nil {
				machine.URL = table.NodePath(e.Node)
			}
			return table.Row{Cells: []table.Cell{
				{Text: text.Clock(e.Time)}, {Text: printable.Line(e.Action, 120), Sub: changeLines(e)}, machine, {Text: printable.Line(e.Result, maxText)}, {Text: printable.Line(e.Actor, 120)},
			}}
		},
	}
	t := table.Table{Name: "Audit", Path: r.path, Empty: "Nobody has changed anything."}
	index := snapshot.Once(r.shared, "audit list", func() *table.Index[pools.AuditEntry] { return l.Index(all.entries) })
	return index.View(t, r.query, l.Row, r.pace), nil
}

// changeLines returns what an action has changed: "pool: web → db".
func changeLines(e *pools.AuditEntry) (lines []string) {
	or := func(s string) string { return cmp.Or(printable.Line(s, maxText), "none") }
	for _, c := range e.Changes {
		line := c.Field + ": " + or(c.After)
		if c.Before != "" {
			line = c.Field + ": " + or(c.Before) + " → " + or(c.After)
		}
		lines = append(lines, line)
	}
	return lines
}

// configView is the state of the config file.
type configView struct {
	File     string
	Facts    []fact
	Refused  bool
	Mistakes []mistakeLine
	Warnings []string
	Reload   string // URL of the form that reads the file again; empty: the client may not
}

func (configView) title() string { return "Config" }

// mistakeLine is a mistake in the config file.
type mistakeLine struct{ Where, Text, Hint string }

func (p *page) config(r *request) (any, error) {
	v := configView{File: r.shared.Farm.Source}
	c := &r.shared.Farm.Config
	v.Facts = []fact{
		{"Nodes", table.Cell{Text: fmt.Sprint(len(r.shared.Farm.Nodes())), URL: "/nodes"}}, {"Pools", table.Cell{Text: fmt.Sprint(len(c.Pools)), URL: "/pools"}},
		{"Clusters", table.Cell{Text: fmt.Sprint(len(c.Clusters)), URL: "/clusters"}}, {"Tags", table.Cell{Text: fmt.Sprint(len(c.Tags)), URL: "/tags"}},
	}
	if r.client.Role.Includes(pools.RoleAdmin) {
		v.Reload = table.To(changePath, "do", "reload")
	}
	for _, problem := range r.shared.Problems {
		if problem.Part == "config" {
			v.Warnings = append(v.Warnings, printable.Line(problem.Problem, 2*maxText))
		}
	}
	if p.Config == nil {
		return v, nil
	}
	status := p.Config()
	if !status.Since.IsZero() {
		v.Facts = append(v.Facts, fact{"In force since", table.Cell{Text: text.Clock(status.Since)}})
	}
	v.Facts = append(v.Facts, fact{"SHA-256", table.Cell{Text: status.Digest, Code: true}})
	if status.Refused == nil {
		return v, nil
	}
	v.Refused, v.Warnings = true, nil
	mistakes, ok := errors.AsType[mistake.Errors](status.Refused)
	if !ok {
		v.Mistakes = []mistakeLine{{Text: printable.Line(status.Refused.Error(), 2*maxText)}}
		return v, nil
	}
	for _, e := range mistakes {
		v.Mistakes = append(v.Mistakes, mistakeLine{e.Position(), printable.Line(e.Msg, 2*maxText), printable.Line(e.Hint, maxText)})
	}
	return v, nil
}
