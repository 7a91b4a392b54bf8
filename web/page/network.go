package page

import (
	"fmt"
	"strings"

	"drover/internal/printable"
	"drover/pools"
	"drover/web/page/snapshot"
	"drover/web/page/table"
	"drover/web/page/text"
	"drover/web/page/timeline"
)

// unknown is the list of unknown hardware.
func (p *page) unknown(r *request) (any, error) {
	t := table.Table{Name: "Unknown hardware", Path: r.path, Empty: "No unknown machine has asked for an address."}
	if r.mayChange() {
		t.Actions = []table.Pair{{Name: "adopt", Value: "Add as nodes"}, {Name: "forget", Value: "Forget"}}
	}
	return unknownList(r).View(t, r.query, r.shared.Unknowns), nil
}

// unknownList is the list of unknown hardware, as a client sees it.
func unknownList(r *request) *table.List[pools.Unknown] {
	return &table.List[pools.Unknown]{
		Search: func(u *pools.Unknown) string { return unknownText(u) },
		Columns: []table.Column[pools.Unknown]{
			{Name: "mac", Head: "Machine", Of: table.One(func(u *pools.Unknown) string { return u.MAC.String() })},
			{Name: "last", Head: "Asked", Of: table.One(func(u *pools.Unknown) string { return timeKey(u.Last) })},
			{Name: "firmware", Head: "Says it is", Of: table.One(func(u *pools.Unknown) string { return printable.Quote(string(u.Firmware), 64) }), Pick: true},
			{Head: "Came by"},
			{Name: "pool", Head: "Got", Of: table.One(func(u *pools.Unknown) string { return u.Pool }), Pick: true},
			{Head: "Action"},
		},
		Row: func(u *pools.Unknown) table.Row { return unknownRow(u, r) },
	}
}

// unknownText is the text that a search for an unknown machine looks in.
func unknownText(u *pools.Unknown) string {
	words := []string{u.MAC.String(), u.MAC.Dashed(), u.MAC.Hex(), u.Pool, string(u.Firmware), u.Class, via(*u)}
	if u.Inventory != nil {
		words = append(words, u.Inventory.String())
	}
	if u.Address.IsValid() {
		words = append(words, u.Address.String())
	}
	return strings.ToLower(strings.Join(words, "\n"))
}

func unknownRow(u *pools.Unknown, r *request) table.Row {
	out := table.Row{Key: u.MAC.String()}
	machine := table.Cell{Text: u.MAC.String(), Code: true}
	if name := pools.CatchAllName(u.MAC); r.shared.ByName[name] != nil {
		machine.URL = table.NodePath(name)
	}
	times := "times"
	if u.Count == 1 {
		times = "time"
	}
	asked := table.Cell{Text: text.Ago(r.shared.Now.Sub(u.Last)) + " ago", Sub: []string{fmt.Sprintf("%d %s", u.Count, times)}}
	says := table.Cell{Text: printable.Quote(string(u.Firmware), 64)}
	if says.Text == "" {
		says.Text = "an operating system"
	}
	if class := printable.Quote(u.Class, 64); class != "" {
		says.Sub = append(says.Sub, class)
	}
	if u.Inventory != nil {
		says.Sub = append(says.Sub, printable.Quote(u.Inventory.String(), 256))
	}
	came := table.Cell{Text: via(*u)}
	if came.Text == "" {
		came.Text = "this wire"
	}
	got := table.Cell{Text: "silence"}
	if u.Pool != "" {
		got = table.Cell{Text: u.Pool}
		if u.Address.IsValid() {
			got.Sub = []string{u.Address.String()}
		}
	}
	buttons := table.Cell{}
	if r.may(u.Pool) || u.Pool == "" && r.mayChange() {
		buttons.Buttons = append(buttons.Buttons, table.Link{Text: "Add", URL: table.To(changePath, "do", "add", "pick", u.MAC.String())})
	}
	if r.may(u.Pool) {
		out.Pick = u.MAC.String()
	}
	out.Cells = []table.Cell{machine, asked, says, came, got, buttons}
	return out
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

// leases is the list of leased addresses, and of those in quarantine.
func (p *page) leases(r *request) (any, error) {
	t := table.Table{Name: "Leases", Path: r.path, Empty: "No address is leased. Declared nodes with an address of their own need no lease."}
	if r.mayChange() {
		t.Actions = []table.Pair{{Name: "release", Value: "End the lease"}}
	}
	var used []string
	for _, u := range ranges(p.api.LeasesOf(r.client), r) {
		used = append(used, fmt.Sprintf("%s: %d of %d leased in %s", u.Pool, u.Leased, u.Size, u.Range))
	}
	t.Intro = strings.Join(used, " · ")
	return leaseList(r).View(t, r.query, p.leaseInfos(r)), nil
}

// leaseInfos returns all leases.
func (p *page) leaseInfos(r *request) (all []pools.LeaseInfo) {
	for _, l := range p.api.LeasesOf(r.client) {
		all = append(all, pools.LeaseInfo{Lease: l, State: l.State(r.shared.Now)})
	}
	return all
}

// leaseList is the list of leases, as a client sees it.
func leaseList(r *request) *table.List[pools.LeaseInfo] {
	return &table.List[pools.LeaseInfo]{
		Sort: "address",
		Search: func(l *pools.LeaseInfo) string {
			return strings.ToLower(strings.Join([]string{l.Address.String(), l.MAC.String(), l.Node, l.Pool, string(l.State)}, "\n"))
		},
		Columns: []table.Column[pools.LeaseInfo]{
			{Name: "address", Head: "Address", Of: table.One(func(l *pools.LeaseInfo) string { return l.Address.String() })},
			{Name: "state", Head: "State", Of: table.One(func(l *pools.LeaseInfo) string { return string(l.State) }), Pick: true},
			{Name: "mac", Head: "Machine", Of: table.One(func(l *pools.LeaseInfo) string { return l.MAC.String() })},
			{Name: "pool", Head: "Pool", Of: table.One(func(l *pools.LeaseInfo) string { return l.Pool }), Pick: true},
			{Name: "expires", Head: "Ends", Of: table.One(func(l *pools.LeaseInfo) string { return timeKey(l.Expires) })},
		},
		Row: func(l *pools.LeaseInfo) table.Row { return leaseRow(l, r) },
	}
}

func leaseRow(l *pools.LeaseInfo, r *request) table.Row {
	out := table.Row{Key: l.Address.String()}
	held := l.State == pools.LeaseActive || l.State == pools.LeaseDeclined
	if held && r.may(l.Pool) {
		out.Pick = l.Address.String()
	}
	how := table.Cell{Text: string(l.State)}
	if l.State == pools.LeaseDeclined {
		how = table.Cell{State: snapshot.Failing, Sub: []string{"in quarantine: " + printable.Quote(l.Declined, 120)}}
	}
	ends := table.Cell{Text: "in " + text.Ago(l.Expires.Sub(r.shared.Now))}
	if !l.Expires.After(r.shared.Now) {
		ends.Text = text.Ago(r.shared.Now.Sub(l.Expires)) + " ago"
	}
	machine := table.Cell{Text: l.Node, Sub: []string{l.MAC.String()}}
	if r.shared.ByName[l.Node] != nil {
		machine.URL = table.NodePath(l.Node)
	}
	out.Cells = []table.Cell{{Text: l.Address.String(), Code: true}, how, machine, {Text: l.Pool}, ends}
	return out
}

// rangeUse is the use of the range of a catch-all pool.
type rangeUse struct {
	Pool   string
	Range  pools.Range
	Leased int
	Size   int
	Bar    timeline.Bar
}

// maxRange bounds the size of a range that is counted.
const maxRange = 1 << 30

// Full reports whether at least 90 % of the range is leased.
func (u rangeUse) Full() bool { return u.Leased*10 >= u.Size*9 }

// ranges returns the use of the ranges of all catch-all pools.
func ranges(all []pools.Lease, r *request) (out []rangeUse) {
	for _, pool := range r.pools() {
		if !pool.CatchAll || !pool.Range.IsValid() {
			continue
		}
		u := rangeUse{Pool: pool.Name, Range: pool.Range, Size: pool.Range.Count(maxRange)}
		for _, l := range all {
			if l.Pool == pool.Name && l.Active(r.shared.Now) && pool.Range.Contains(l.Address) {
				u.Leased++
			}
		}
		u.Bar = timeline.Bar{Width: min(u.Leased*timeline.Width/max(u.Size, 1), timeline.Width), Class: "ready"}
		if u.Full() {
			u.Bar.Class = "stuck"
		}
		out = append(out, u)
	}
	return out
}
