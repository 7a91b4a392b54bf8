package page

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"drover/internal/printable"
	"drover/pools"
	"drover/pools/boots"
	"drover/web/page/snapshot"
	"drover/web/page/table"
	"drover/web/page/text"
	"drover/web/page/timeline"
)

// Explanation is what a machine would get if it asked now.
type Explanation struct {
	Values  []Value // of its Plan
	Assumed string  // what is not known of its firmware
	Silence string  // why it would get no answer; empty: it would get one
	Reply   string  // the DHCP reply, as text
	Script  string  // the boot script, with zeros for the nonce
	Problem string  // why there is no script
}

// Value is a value of a Plan, with the place that set it.
type Value struct {
	Field, Text, From string
}

// nodeView is one machine.
type nodeView struct {
	Name      string
	State     string
	Since     string
	Problem   string
	Facts     []fact
	Boot      *timeline.Waterfall
	Earlier   []timeline.Earlier
	Steps     []fact // of Kubernetes
	Power     []fact
	Audit     []auditLine
	Console   *consoleView // nil: the server receives no lines
	Explained *Explanation
	Image     *imageChange
	Actions   []table.Link
	Where     string // the place in the file that declares it: it is changed there
}

func (v nodeView) title() string { return v.Name }

// fact is a line about something.
type fact struct {
	Label string
	table.Cell
}

// auditLine is an action on a machine.
type auditLine struct{ Time, Who, Action, Result string }

// imageChange compares the image of the last boot with that of a boot now.
type imageChange struct {
	Booted, Next string
	Detail       string
	Differs      bool
}

// maxNodeAudit bounds the actions that the view of a machine shows.
const maxNodeAudit = 8

func (p *page) node(r *request) (any, error) {
	m := r.shared.ByName[r.name]
	if m == nil {
		return nil, fmt.Errorf("%w: %q", pools.ErrNotFound, printable.Line(r.name, 80))
	}
	v := nodeView{Name: m.Name, State: m.State, Problem: m.Problem}
	if !m.Status.Since.IsZero() {
		v.Since = text.Ago(r.shared.Now.Sub(m.Status.Since))
	}
	if m.Declared() {
		v.Where = declaredAt(m.NodeInfo)
	}
	v.Facts = nodeFacts(m)
	v.boots(p, m, r)
	v.Steps = kubernetes(m)
	v.Power = p.powerFacts(m, r)
	v.Actions = nodeActions(m, r)
	if err := v.audit(p, m, r); err != nil {
		return nil, err
	}
	if mac, ok := macOf(m); ok && p.Explain != nil {
		x := p.Explain(mac)
		v.Explained = &x
	}
	v.image(p, m, r)
	return v, nil
}

// macOf returns the MAC of the card that a machine booted from, else its first one.
func macOf(m *snapshot.Machine) (mac pools.MAC, ok bool) {
	switch {
	case m.Boot != nil:
		return m.Boot.MAC, true
	case len(m.MACs) > 0:
		return m.MACs[0], true
	}
	return mac, false
}

// nodeFacts returns what a machine is.
func nodeFacts(m *snapshot.Machine) []fact {
	var facts []fact
	add := func(label string, c table.Cell) {
		if c.Text != "" || len(c.Sub) > 0 {
			facts = append(facts, fact{label, c})
		}
	}
	add("Pool", table.Cell{Text: m.Pool, URL: table.To("/nodes", "pool", m.Pool)})
	if m.InPool != nil && m.InPool.Cluster != "" {
		c := table.Cell{Text: m.InPool.Cluster, URL: table.To("/nodes", "cluster", m.InPool.Cluster)}
		if m.Boot != nil && m.Boot.Cluster != m.InPool.Cluster {
			c.Sub = []string{"its last boot joined " + cmp.Or(m.Boot.Cluster, "no cluster") + ": the next one joins " + m.InPool.Cluster}
		}
		add("Cluster", c)
	}
	address := table.Cell{Text: addressText(m), Code: true}
	if m.IP.IsValid() && m.IP != m.Status.Address {
		address.Sub = []string{"declared: " + m.IP.String()}
	}
	add("Address", address)
	macs := table.Cell{Code: true}
	macs.Text = strings.Join(macTexts(m), " ")
	add("MACs", macs)
	if len(m.Status.PoolTags) > 0 {
		add("Tags of the pool", table.Cell{Text: joined(m.Status.PoolTags)})
	}
	if len(m.Tags) > 0 {
		add("Tags", table.Cell{Text: joined(m.Tags)})
	}
	if !m.ChassisSlot.IsZero() {
		add("Slot", table.Cell{Text: m.ChassisSlot.Chassis + " " + m.ChassisSlot.Slot, URL: "/chassis#chassis-" + m.ChassisSlot.Chassis})
	}
	if !m.Declared() {
		add("From", table.Cell{Text: declaredAt(m.NodeInfo)})
	}
	if m.NextBoot != "" {
		add("Next boot", table.Cell{Text: string(m.NextBoot), Sub: []string{"once; then as its pool says"}})
	}
	if m.Ignore {
		add("Ignored", table.Cell{Text: "it gets no answer"})
	}
	return facts
}

// boots sets the boots of a machine: the one that the query names, else the newest, and the
// list of all.
func (v *nodeView) boots(p *page, m *snapshot.Machine, r *request) {
	byNode := snapshot.Once(r.shared, "boots by node", func() map[string][]int32 {
		return snapshot.ByNode(r.shared.Records, func(b *boots.Record) string { return b.Node })
	})
	var all []boots.Record
	for _, i := range byNode[m.Name] {
		all = append(all, r.shared.Records[i])
	}
	if len(all) == 0 {
		return
	}
	shown := 0
	for i := range all {
		if all[i].ID == r.query.Get("boot") {
			shown = i
		}
	}
	how := ""
	if shown == 0 {
		how = m.State
	}
	v.console(p, &all[shown], r)
	w := timeline.New(&all[shown], all[shown+1:], r.shared.Now, how)
	w.Current = shown == 0
	v.Boot = &w
	v.Earlier = timeline.Boots(table.NodePath(m.Name), all[shown].ID, all)
}

// kubernetes returns what drover knows of the Node of a machine.
func kubernetes(m *snapshot.Machine) (facts []fact) {
	if m.Boot == nil || m.Boot.Cluster == "" {
		return nil
	}
	facts = append(facts, fact{"Node", table.Cell{Text: m.Boot.Node, Sub: []string{"in " + m.Boot.Cluster}}})
	for _, s := range []struct {
		step  boots.Step
		label string
	}{{boots.StepToken, "Join token"}, {boots.StepCSR, "Certificate"}, {boots.StepJoined, "Joined"}, {boots.StepReady, "Ready"}} {
		f := fact{s.label, table.Cell{Text: "not in this boot"}}
		at, ok := m.Boot.Reached(s.step)
		if ok {
			f.Text = text.Clock(at.Time)
			if d := printable.Line(at.Detail, maxText); d != "" {
				f.Sub = []string{d}
			}
		}
		if s.step == boots.StepReady && ok {
			f.Sub = append(f.Sub, "for the first time in this boot; drover does not follow the Node from then on")
		}
		facts = append(facts, f)
	}
	if m.Move != nil {
		facts = append(facts, fact{"Move", table.Cell{Text: printable.Line(m.Move.Summary(), maxText), State: string(pools.NodeMoving)}})
	}
	return facts
}

// powerFacts returns what the last power jobs did with a machine.
func (p *page) powerFacts(m *snapshot.Machine, r *request) (facts []fact) {
	if m.Status.Power != "" {
		facts = append(facts, fact{"Last seen", table.Cell{Text: printable.Line(m.Status.Power, 32), Sub: []string{text.Ago(r.shared.Now.Sub(m.Status.PowerSeen)) + " ago"}}})
	}
	for _, job := range p.api.JobsOf(r.client) {
		for _, n := range job.Nodes {
			if n.Name != m.Name || len(facts) > 3 {
				continue
			}
			f := fact{job.Action, table.Cell{Text: n.Step, Sub: []string{text.Ago(r.shared.Now.Sub(n.Time)) + " ago, " + printable.Line(job.Actor, 80)}}}
			if n.Error != "" {
				f.State, f.Sub = snapshot.Failing, append(f.Sub, printable.Line(n.Error, maxText))
			}
			facts = append(facts, f)
		}
	}
	return facts
}

// nodeActions returns the links to the forms that change or switch a machine. A machine that
// the file declares is changed there.
func nodeActions(m *snapshot.Machine, r *request) (all []table.Link) {
	if !r.may(m.Pool) {
		return nil
	}
	add := func(text, do string) {
		all = append(all, table.Link{Text: text, URL: table.To(changePath, "do", do, "pick", m.Name)})
	}
	if m.CatchAll {
		return []table.Link{{Text: "Add as a node", URL: table.To(changePath, "do", "add", "pick", m.Boot.MAC.String())}}
	}
	add("Next boot", "next")
	add("Power", "power")
	if m.Boot != nil {
		add("Forget boots", "boots")
	}
	if m.Declared() {
		return all
	}
	add("Edit", "edit")
	add("Move", "move")
	add("Tag", "tag")
	add("Remove", "remove")
	return all
}

// audited is what clients have done.
type audited struct {
	entries []pools.AuditEntry // the newest first
	byNode  map[string][]int32
	err     error
}

// audited returns what clients have done. It is read once for a snapshot.
func (p *page) audited(r *request) audited {
	return snapshot.Once(r.shared, "audit", func() audited {
		entries, err := p.api.AuditOf(r.client)
		return audited{entries, snapshot.ByNode(entries, func(e *pools.AuditEntry) string { return e.Node }), err}
	})
}

// audit sets the last actions on a machine.
func (v *nodeView) audit(p *page, m *snapshot.Machine, r *request) error {
	a := p.audited(r)
	of := a.byNode[m.Name]
	for _, i := range of[:min(len(of), maxNodeAudit)] {
		e := &a.entries[i]
		v.Audit = append(v.Audit, auditLine{text.Clock(e.Time), printable.Line(e.Actor, 80), printable.Line(e.Action, 80), printable.Line(e.Result, 120)})
	}
	return a.err
}

// image sets how the image of the last boot compares with that of a boot now, which is that of its
// pool, unless its next boot is another.
func (v *nodeView) image(p *page, m *snapshot.Machine, r *request) {
	if m.Boot == nil || m.InPool == nil {
		return
	}
	next := m.InPool.Image
	if v.Explained != nil {
		for _, value := range v.Explained.Values {
			if value.Field == "image" {
				next = value.Text
			}
		}
	}
	if ref, ok := m.NextBoot.Image(); ok {
		next = ref
	}
	c := imageChange{Booted: pools.ShortImage(m.Boot.Image, m.Boot.Generation), Next: pools.ShortImage(next, "")}
	c.Differs = m.Boot.Image != next
	v.Image = &c
	switch m.NextBoot {
	case pools.NextLocal:
		c.Next, c.Differs, c.Detail = "its own disk", true, "once: its next boot is "+string(m.NextBoot)
		return
	case pools.NextRescue:
		c.Next, c.Differs, c.Detail = "a rescue shell", true, "once: its next boot is "+string(m.NextBoot)
		return
	}
	if image, built := p.current(next, r); built && !c.Differs {
		c.Next = image.Name + " " + pools.ShortID(image.ID)
		c.compare(m, &image, r.shared.Now)
	}
	if m.NextBoot != "" {
		c.Detail = "once: its next boot is " + string(m.NextBoot)
	}
}

// compare compares the boot of a machine with the generation that the reference to its image means now.
func (c *imageChange) compare(m *snapshot.Machine, image *pools.ImageInfo, now time.Time) {
	date := image.Created.UTC().Format(time.DateOnly)
	switch {
	case m.NextBoot == "" && m.Status.FellBack == image.ID:
		c.Next, c.Differs = image.Name+" "+pools.ShortID(m.Status.LastReady), m.Status.LastReady != m.Boot.Generation
		c.Detail = "fell back: its boots of " + pools.ShortID(image.ID) + " failed"
	case m.Boot.Generation != "" && m.Boot.Generation != image.ID:
		c.Differs, c.Detail = true, "another generation than that of this boot, built "+date
	case m.Boot.Generation == "" && image.Created.After(m.Boot.Started):
		c.Differs, c.Detail = true, "rebuilt "+text.Ago(now.Sub(image.Created))+" ago, after this boot began"
	default:
		c.Detail = "built " + date + ", before this boot"
	}
}
