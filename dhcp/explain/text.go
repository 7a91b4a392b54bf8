package explain

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/config/decode"
	"drover/pools/option"
	"drover/pools/resolve"
)

// Row is a field of a Plan and its value. A value of several lines is in Block.
type Row struct {
	Field, Value, Block string
}

// planText renders a Plan as columns: field, value, and the line that set it.
func planText(p *resolve.Plan) string {
	rows := Rows(p)
	why := p.Why()
	var fieldWidth, valueWidth int
	for _, r := range rows {
		fieldWidth = max(fieldWidth, len(r.Field))
		valueWidth = max(valueWidth, min(len(r.Value), 48))
	}
	var b strings.Builder
	for _, r := range rows {
		line := fmt.Sprintf("%-*s  %-*s", fieldWidth, r.Field, valueWidth, r.Value)
		if o, ok := why[r.Field]; ok {
			line += "  " + o.String()
		}
		fmt.Fprintln(&b, strings.TrimRight(line, " "))
		for text := range strings.Lines(r.Block) {
			fmt.Fprintf(&b, "    | %s\n", strings.TrimRight(text, "\n"))
		}
	}
	return b.String()
}

// clusterRow is the row of the cluster that a machine joins, or is a gateway of.
func clusterRow(p *resolve.Plan) Row {
	if p.Gateway != "" {
		return Row{Field: "gateway", Value: p.Gateway}
	}
	return Row{Field: "cluster", Value: cmp.Or(p.Cluster, "(none)")}
}

// Rows returns the values of a Plan. [resolve.Plan.Why] has the origin of each field.
func Rows(p *resolve.Plan) []Row {
	rows := []Row{
		{Field: "node", Value: p.Node},
		{Field: "macs", Value: joinText(p.MACs)},
		{Field: "pool", Value: p.Pool},
		clusterRow(p),
		{Field: "image", Value: p.Image},
	}
	if p.NextBoot != "" {
		rows = append(rows, Row{Field: "nextBoot", Value: string(p.NextBoot)})
	}
	if p.Range.IsValid() {
		rows = append(rows, Row{Field: "range", Value: p.Range.String()})
	}
	if p.Address.IsValid() {
		rows = append(rows, Row{Field: "address", Value: p.Address.String()})
	}
	if p.Range6.IsValid() {
		rows = append(rows, Row{Field: "range6", Value: p.Range6.String()})
	}
	if p.Address6.IsValid() {
		rows = append(rows, Row{Field: "address6", Value: p.Address6.String()})
	}
	subnet := p.Subnet.CIDR.String()
	if p.Subnet.Router.IsValid() {
		subnet += " router " + p.Subnet.Router.String()
	}
	if len(p.Subnet.DNS) > 0 {
		subnet += " dns " + joinText(p.Subnet.DNS)
	}
	if p.Subnet.Domain != "" {
		subnet += " domain " + p.Subnet.Domain
	}
	rows = append(rows, poolRows(p)...)
	rows = append(rows,
		Row{Field: "subnet", Value: subnet},
		Row{Field: "lease", Value: p.Lease.String()},
		Row{Field: "boot.server", Value: addrOrDash(p.Boot.Server)},
		Row{Field: "boot.file", Value: cmp.Or(p.Boot.File, "(none)")},
	)
	for _, o := range p.Options {
		value := o.Text
		if o.Name != "" {
			value = o.Name + " " + o.Text
		}
		rows = append(rows, Row{Field: option.FieldOf(o.Code, o.Class), Value: unasked(value, o.Forced)})
	}
	for _, o := range p.Options6 {
		field := fmt.Sprintf("dhcpOptions.%s%d", option.Prefix6, o.Code)
		rows = append(rows, Row{Field: field, Value: unasked(strings.TrimSpace(o.Name+" "+o.Text), o.Forced)})
	}
	return append(rows, settingRows(&p.Settings)...)
}

// poolRows returns what the pool sets beside tags, where it is not the default.
func poolRows(p *resolve.Plan) (rows []Row) {
	if p.Broadcast {
		rows = append(rows, Row{Field: "broadcast", Value: "always"})
	}
	if p.DiskChange != "" {
		rows = append(rows, Row{Field: "diskChange", Value: string(p.DiskChange)})
	}
	if p.Yields {
		rows = append(rows, Row{Field: "authoritative", Value: "false"})
	}
	return rows
}

// unasked marks the value of an option that clients get unasked.
func unasked(value string, forced bool) string {
	if forced {
		value += " (also unasked)"
	}
	return value
}

func settingRows(s *resolve.Settings) []Row {
	var rows []Row
	list := func(field string, items []string) {
		for i, v := range items {
			rows = append(rows, Row{Field: fmt.Sprintf("%s[%d]", field, i), Value: v})
		}
	}
	dict := func(field string, m map[string]string) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			rows = append(rows, Row{Field: field + "." + k, Value: m[k]})
		}
	}
	list("kernelArgs", s.KernelArgs)
	if s.Timezone != "" {
		rows = append(rows, Row{Field: "timezone", Value: s.Timezone})
	}
	list("sshAuthorizedKeys", s.SSHAuthorizedKeys)
	list("modules", s.Modules)
	dict("sysctls", s.Sysctls)
	for i, m := range s.Mounts {
		rows = append(rows, Row{Field: fmt.Sprintf("mounts[%d]", i), Value: strings.TrimSpace(strings.Join([]string{m.Path, m.Type, m.Source, m.Options}, " "))})
	}
	for i, d := range s.Disks {
		rows = append(rows, Row{Field: fmt.Sprintf("disks[%d]", i), Value: d.Name + ": " + d.String()})
	}
	if s.Zram != "" {
		rows = append(rows, Row{Field: "zram", Value: string(s.Zram)})
	}
	for _, k := range slices.Sorted(maps.Keys(s.Files)) {
		rows = append(rows, fileRow(k, s.Files[k]))
	}
	rows = append(rows, runRows(s)...)
	for i, r := range s.Loaders {
		rows = append(rows, Row{Field: fmt.Sprintf("loaders[%d]", i), Value: ruleText(r)})
	}
	rows = append(rows, firmwareRows(s)...)
	dict("labels", s.Labels)
	for i, t := range s.Taints {
		rows = append(rows, Row{Field: fmt.Sprintf("taints[%d]", i), Value: t.String()})
	}
	dict("kubeletArgs", s.KubeletArgs)
	for _, k := range slices.Sorted(maps.Keys(s.Hosts)) {
		rows = append(rows, Row{Field: "hosts." + k, Value: strings.Join(s.Hosts[k], " ")})
	}
	dict("env", s.Env)
	list("dns", strings.Fields(joinText(s.DNS)))
	list("search", s.Search)
	list("cron", s.Cron)
	list("maskUnits", s.MaskUnits)
	return append(rows, accessRows(s)...)
}

// runRows returns the settings of what a node runs: units and scripts.
func runRows(s *resolve.Settings) (rows []Row) {
	for _, k := range slices.Sorted(maps.Keys(s.Units)) {
		value := "not enabled"
		if s.Units[k].Enable {
			value = "enabled"
		}
		rows = append(rows, Row{Field: "units." + k, Value: value, Block: s.Units[k].Content})
	}
	for _, k := range slices.Sorted(maps.Keys(s.Scripts)) {
		rows = append(rows, Row{Field: "scripts." + k, Value: from(string(s.Scripts[k].Stage), s.Scripts[k].Reference), Block: s.Scripts[k].Run})
	}
	return rows
}

// accessRows returns the settings of the network and of logins on the console. A hash of a
// password is not shown.
func accessRows(s *resolve.Settings) (rows []Row) {
	if len(s.Network) > 0 {
		var text strings.Builder
		doc, err := decode.Document(s.Network)
		if err == nil {
			err = decode.Write(&text, doc)
		}
		rows = append(rows, Row{Field: "network", Value: "netplan", Block: text.String()})
		if err != nil {
			rows[0].Value = err.Error()
		}
	}
	if !s.RootPasswordHash.IsZero() {
		rows = append(rows, Row{Field: "rootPasswordHash", Value: from("set", s.RootPasswordHash.Reference)})
	}
	if s.DebugShell != "" {
		rows = append(rows, Row{Field: "debugShell", Value: string(s.DebugShell)})
	}
	return rows
}

// from adds the place of a content to a value.
func from(value string, r pools.Reference) string {
	if !r.IsReference() {
		return value
	}
	return strings.TrimSpace(value + " from " + r.Place())
}

func fileRow(path string, f pools.File) Row {
	r := Row{Field: "files." + path, Value: from("mode "+f.Permissions(), f.Reference), Block: f.Content}
	if f.Owner != "" {
		r.Value += " owner " + f.Owner
	}
	if b, err := f.Bytes(); err == nil && f.Base64 != "" {
		r.Value += fmt.Sprintf(" %d bytes", len(b))
	}
	return r
}

// firmwareRows returns the settings of the boot menu and of U-Boot.
func firmwareRows(s *resolve.Settings) (rows []Row) {
	if s.MenuTimeout > 0 {
		rows = append(rows, Row{Field: "menuTimeout", Value: fmt.Sprintf("%d s", s.MenuTimeout)})
	}
	u := s.UBoot
	if u.Wrap != nil {
		rows = append(rows, Row{Field: "uboot.wrap", Value: fmt.Sprint(*u.Wrap)})
	}
	if u.Load != nil {
		rows = append(rows, Row{Field: "uboot.load", Value: u.Load.String()})
	}
	if u.Entry != nil {
		rows = append(rows, Row{Field: "uboot.entry", Value: u.Entry.String()})
	}
	if u.FDT != "" {
		rows = append(rows, Row{Field: "uboot.fdt", Value: u.FDT})
	}
	return rows
}

// ruleText renders a rule: the loader and its conditions.
func ruleText(r pools.LoaderRule) string {
	words := []string{r.Loader}
	add := func(name, value string) {
		if value != "" {
			words = append(words, name+" "+value)
		}
	}
	if r.Server.IsValid() {
		add("from", r.Server.String())
	}
	add("for firmware", string(r.Firmware))
	add("for arch", r.Arch.String())
	add("for class", r.Class)
	add("for user class", r.UserClass)
	return strings.Join(words, " ")
}

func joinText[T fmt.Stringer](items []T) string {
	text := make([]string, len(items))
	for i, v := range items {
		text[i] = v.String()
	}
	return strings.Join(text, " ")
}

func addrOrDash(a netip.Addr) string {
	if !a.IsValid() {
		return "-"
	}
	return a.String()
}
