package page

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drover/internal/printable"
	"drover/pools"
	"drover/web/answer"
	"drover/web/page/snapshot"
	"drover/web/page/table"
	"drover/web/page/text"
)

// nodes is the list of all machines.
func (p *page) nodes(r *request) (any, error) {
	t := table.Table{Name: "Nodes", Path: r.path, Empty: "No machine fits."}
	if len(r.shared.Machines) == 0 {
		t.Empty = "No machine is known yet. Declare nodes in " + r.shared.Farm.Source + ", or let one boot from the network: it appears under Unknown."
	}
	if key := r.query.Get("cause"); key != "" {
		t.Intro = "What is wrong with these machines is over, or is another thing by now."
		for _, c := range r.shared.Causes {
			if c.Key == key {
				t.Intro = c.Text
			}
		}
	}
	if r.mayChange() {
		t.Add = &table.Link{Text: "Add a node", URL: changePath + "?do=add"}
		t.Actions = []table.Pair{{Name: "next", Value: "Next boot"}, {Name: "power", Value: "Power"}, {Name: "move", Value: "Move"}, {Name: "tag", Value: "Tag"}, {Name: "remove", Value: "Remove"}}
	}
	return machineIndex(r).View(t, r.query, machineList(r).Row, r.pace), nil
}

// machineIndex is the list of machines, with what does not depend on a query.
func machineIndex(r *request) *table.Index[snapshot.Machine] {
	return snapshot.Once(r.shared, "nodes", func() *table.Index[snapshot.Machine] { return machineList(r).Index(r.shared.Machines) })
}

// machineList is the list of machines, as a client sees it.
func machineList(r *request) *table.List[snapshot.Machine] {
	text := table.One[snapshot.Machine]
	return &table.List[snapshot.Machine]{
		Last: func(m *snapshot.Machine) bool { return m.CatchAll }, // anyone can invent them
		Sort: "name", Search: (*snapshot.Machine).SearchText,
		Columns: []table.Column[snapshot.Machine]{
			{Name: "name", Head: "Node", Of: text(func(m *snapshot.Machine) string { return m.Name })},
			{Name: "state", Head: "State", Pick: true, Of: text(func(m *snapshot.Machine) string { return string(m.State) })},
			{Name: "pool", Head: "Pool", Pick: true, Of: text(func(m *snapshot.Machine) string { return m.Pool })},
			{Name: "cluster", Head: "Cluster", Pick: true, Of: table.One(clusterOf)},
			{Name: "address", Head: "Address", Of: table.One(addressText)},
			{Name: "mac", Head: "MAC", Of: table.Many(macTexts)},
			{Name: "image", Head: "Image", Pick: true, Of: imagesOf},
			{Name: "since", Head: "Since", Of: text(func(m *snapshot.Machine) string { return timeKey(m.Status.Since) })},
			{Name: "tag", Pick: true, Of: func(m *snapshot.Machine, fits func(string) bool) bool {
				return slices.ContainsFunc(m.Status.PoolTags, fits) || slices.ContainsFunc(m.Tags, fits)
			}},
			{Name: "chassis", Pick: true, Of: text(func(m *snapshot.Machine) string { return m.ChassisSlot.Chassis })},
			{Name: "cause", Of: text(func(m *snapshot.Machine) string { return m.Cause })},
		},
		Row: func(m *snapshot.Machine) table.Row { return nodeRow(m, r) },
	}
}

// nodeRow is a machine in the list.
func nodeRow(m *snapshot.Machine, r *request) table.Row {
	out := table.Row{Key: m.Name, Class: string(m.State)}
	if r.may(m.Pool) && !m.CatchAll {
		out.Pick = m.Name
	}
	name := table.Cell{Text: m.Name, URL: table.NodePath(m.Name)}
	if m.CatchAll {
		name.Sub = append(name.Sub, "no node declares it")
	}
	how := table.Cell{State: m.State}
	switch {
	case m.Problem != "":
		how.Sub = append(how.Sub, m.Problem)
	case m.Status.Detail != "":
		how.Sub = append(how.Sub, printable.Line(m.Status.Detail, maxText))
	}
	if m.Boot != nil && !m.Boot.Ended() {
		how.Steps = [2]int{snapshot.Progress(m.Boot), snapshot.UsualSteps()}
	}
	if m.NextBoot != "" {
		how.Sub = append(how.Sub, "next boot: "+string(m.NextBoot))
	}
	if m.Status.Power != "" {
		how.Sub = append(how.Sub, "power was "+printable.Line(m.Status.Power, 32)+" "+text.Ago(r.shared.Now.Sub(m.Status.PowerSeen))+" ago")
	}
	macs := macTexts(m)
	mac := table.Cell{}
	if len(macs) > 0 {
		mac.Text = macs[0]
	}
	if n := len(macs) - 1; n > 0 {
		mac.Text += fmt.Sprintf(" and %d more", n)
	}
	since := table.Cell{}
	if !m.Status.Since.IsZero() {
		since.Text = text.Ago(r.shared.Now.Sub(m.Status.Since))
	}
	out.Cells = []table.Cell{
		name, how, {Text: m.Pool, URL: table.To("/nodes", "pool", m.Pool)}, {Text: clusterOf(m)}, {Text: addressText(m)}, mac,
		imageCell(m), since,
	}
	return out
}

// imageCell is the image that a machine has booted.
func imageCell(m *snapshot.Machine) table.Cell {
	cell := table.Cell{Text: pools.ImageName(m.Status.Image)}
	if m.Status.Generation != "" {
		cell.Sub = []string{pools.ShortID(m.Status.Generation)}
	}
	if m.Status.Outdated && len(cell.Sub) > 0 {
		cell.Sub[0] += ", outdated"
	}
	if m.Status.FellBack != "" {
		cell.Sub = append(cell.Sub, "fell back from "+pools.ShortID(m.Status.FellBack))
	}
	return cell
}

// macTexts returns the MACs of a machine.
func macTexts(m *snapshot.Machine) (all []string) {
	for _, mac := range m.MACs {
		all = append(all, mac.String())
	}
	return all
}

// addressText returns the address that a machine uses.
func addressText(m *snapshot.Machine) string {
	if !m.Status.Address.IsValid() {
		return ""
	}
	return m.Status.Address.String()
}

// clusterOf returns the cluster that a machine has joined in its last boot, else that of its
// pool.
func clusterOf(m *snapshot.Machine) string {
	switch {
	case m.Boot != nil:
		return m.Status.Cluster
	case m.InPool != nil:
		return m.InPool.Cluster
	}
	return ""
}

// imagesOf calls fits with the image that a machine has booted: with its name, and with the
// generation that its pool is pinned to.
func imagesOf(m *snapshot.Machine, fits func(string) bool) bool {
	name := pools.ImageName(m.Status.Image)
	return fits(name) || name != m.Status.Image && fits(m.Status.Image)
}

// timeKey returns a text whose order is that of times.
func timeKey(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("20060102150405.000000000")
}

// declaredAt returns where a node is declared: drover.yaml:41, a chassis, or the API.
func declaredAt(n *pools.NodeInfo) string {
	switch where := answer.Where(n.Source); {
	case n.CatchAll:
		return "unknown hardware"
	case where != "":
		return where
	case !n.ChassisSlot.IsZero():
		return n.ChassisSlot.String()
	}
	return "API"
}

// joined returns words with commas.
func joined(words []string) string { return strings.Join(words, ", ") }
