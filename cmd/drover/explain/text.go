package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"drover/cmd/drover/cli"
	"drover/pools"
	"drover/pools/config/decode"
	"drover/pools/option"
	"drover/pools/resolve"
)

// row is one line of the output: a field of the Plan and its value. A value of several
// lines is in block, below it.
type row struct {
	field, value, block string
}

// planText renders a Plan as columns: field, value, and the line that set it.
func planText(p *resolve.Plan) string {
	rows := planRows(p)
	why := p.Why()
	var fieldWidth, valueWidth int
	for _, r := range rows {
		fieldWidth = max(fieldWidth, len(r.field))
		valueWidth = max(valueWidth, min(len(r.value), 48))
	}
	var b strings.Builder
	for _, r := range rows {
		line := fmt.Sprintf("%-*s  %-*s", fieldWidth, r.field, valueWidth, r.value)
		if o, ok := why[r.field]; ok {
			line += "  " + o.String()
		}
		fmt.Fprintln(&b, strings.TrimRight(line, " "))
		for text := range strings.Lines(r.block) {
			fmt.Fprintf(&b, "    | %s\n", strings.TrimRight(text, "\n"))
		}
	}
	return b.String()
}

func planRows(p *resolve.Plan) []row {
	rows := []row{
		{field: "node", value: p.Node},
		{field: "macs", value: joinText(p.MACs)},
		{field: "pool", value: p.Pool},
		{field: "cluster", value: orNone(p.Cluster)},
		{field: "image", value: p.Image},
	}
	if p.NextBoot != "" {
		rows = append(rows, row{field: "nextBoot", value: string(p.NextBoot)})
	}
	if p.Range.IsValid() {
		rows = append(rows, row{field: "range", value: p.Range.String()})
	}
	if p.Address.IsValid() {
		rows = append(rows, row{field: "address", value: p.Address.String()})
	}
	if p.Range6.IsValid() {
		rows = append(rows, row{field: "range6", value: p.Range6.String()})
	}
	if p.Address6.IsValid() {
		rows = append(rows, row{field: "address6", value: p.Address6.String()})
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
	if p.Broadcast {
		rows = append(rows, row{field: "broadcast", value: "always"})
	}
	if p.Yields {
		rows = append(rows, row{field: "authoritative", value: "false"})
	}
	rows = append(rows,
		row{field: "subnet", value: subnet},
		row{field: "lease", value: p.Lease.String()},
		row{field: "boot.server", value: cli.AddrOrDash(p.Boot.Server)},
		row{field: "boot.file", value: orNone(p.Boot.File)},
	)
	for _, o := range p.Options {
		value := o.Text
		if o.Name != "" {
			value = o.Name + " " + o.Text
		}
		rows = append(rows, row{field: fmt.Sprintf("dhcpOptions.%d", o.Code), value: value})
	}
	for _, o := range p.Options6 {
		field := fmt.Sprintf("dhcpOptions.%s%d", option.Prefix6, o.Code)
		rows = append(rows, row{field: field, value: strings.TrimSpace(o.Name + " " + o.Text)})
	}
	return append(rows, settingRows(&p.Settings)...)
}

func settingRows(s *resolve.Settings) []row {
	var rows []row
	list := func(field string, items []string) {
		for i, v := range items {
			rows = append(rows, row{field: fmt.Sprintf("%s[%d]", field, i), value: v})
		}
	}
	dict := func(field string, m map[string]string) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			rows = append(rows, row{field: field + "." + k, value: m[k]})
		}
	}
	list("kernelArgs", s.KernelArgs)
	if s.Timezone != "" {
		rows = append(rows, row{field: "timezone", value: s.Timezone})
	}
	list("sshAuthorizedKeys", s.SSHAuthorizedKeys)
	list("modules", s.Modules)
	dict("sysctls", s.Sysctls)
	for i, m := range s.Mounts {
		rows = append(rows, row{field: fmt.Sprintf("mounts[%d]", i), value: strings.TrimSpace(strings.Join([]string{m.Path, m.Type, m.Source, m.Options}, " "))})
	}
	for i, d := range s.Disks {
		rows = append(rows, row{field: fmt.Sprintf("disks[%d]", i), value: d.Name + ": " + d.String()})
	}
	if s.Zram != "" {
		rows = append(rows, row{field: "zram", value: string(s.Zram)})
	}
	for _, k := range slices.Sorted(maps.Keys(s.Files)) {
		rows = append(rows, fileRow(k, s.Files[k]))
	}
	rows = append(rows, runRows(s)...)
	for i, r := range s.Loaders {
		rows = append(rows, row{field: fmt.Sprintf("loaders[%d]", i), value: ruleText(r)})
	}
	rows = append(rows, firmwareRows(s)...)
	dict("labels", s.Labels)
	for i, t := range s.Taints {
		rows = append(rows, row{field: fmt.Sprintf("taints[%d]", i), value: t.String()})
	}
	dict("kubeletArgs", s.KubeletArgs)
	for _, k := range slices.Sorted(maps.Keys(s.Hosts)) {
		rows = append(rows, row{field: "hosts." + k, value: strings.Join(s.Hosts[k], " ")})
	}
	dict("env", s.Env)
	list("dns", strings.Fields(joinText(s.DNS)))
	list("search", s.Search)
	list("cron", s.Cron)
	list("maskUnits", s.MaskUnits)
	return append(rows, accessRows(s)...)
}

// runRows returns the settings of what a node runs: units and scripts.
func runRows(s *resolve.Settings) (rows []row) {
	for _, k := range slices.Sorted(maps.Keys(s.Units)) {
		value := "not enabled"
		if s.Units[k].Enable {
			value = "enabled"
		}
		rows = append(rows, row{field: "units." + k, value: value, block: s.Units[k].Content})
	}
	for _, k := range slices.Sorted(maps.Keys(s.Scripts)) {
		rows = append(rows, row{field: "scripts." + k, value: from(string(s.Scripts[k].Stage), s.Scripts[k].Reference), block: s.Scripts[k].Run})
	}
	return rows
}

// accessRows returns the settings of the network and of logins on the console. A hash of a
// password is not shown.
func accessRows(s *resolve.Settings) (rows []row) {
	if len(s.Network) > 0 {
		var text strings.Builder
		doc, err := decode.Document(s.Network)
		if err == nil {
			err = decode.Write(&text, doc)
		}
		rows = append(rows, row{field: "network", value: "netplan", block: text.String()})
		if err != nil {
			rows[0].value = err.Error()
		}
	}
	if !s.RootPasswordHash.IsZero() {
		rows = append(rows, row{field: "rootPasswordHash", value: from("set", s.RootPasswordHash.Reference)})
	}
	if s.DebugShell != "" {
		rows = append(rows, row{field: "debugShell", value: string(s.DebugShell)})
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

func fileRow(path string, f pools.File) row {
	r := row{field: "files." + path, value: from("mode "+f.Permissions(), f.Reference), block: f.Content}
	if f.Owner != "" {
		r.value += " owner " + f.Owner
	}
	if b, err := f.Bytes(); err == nil && f.Base64 != "" {
		r.value += fmt.Sprintf(" %d bytes", len(b))
	}
	return r
}

// firmwareRows returns the settings of the boot menu and of U-Boot.
func firmwareRows(s *resolve.Settings) (rows []row) {
	if s.MenuTimeout > 0 {
		rows = append(rows, row{field: "menuTimeout", value: fmt.Sprintf("%d s", s.MenuTimeout)})
	}
	u := s.UBoot
	if u.Wrap != nil {
		rows = append(rows, row{field: "uboot.wrap", value: fmt.Sprint(*u.Wrap)})
	}
	if u.Load != nil {
		rows = append(rows, row{field: "uboot.load", value: u.Load.String()})
	}
	if u.Entry != nil {
		rows = append(rows, row{field: "uboot.entry", value: u.Entry.String()})
	}
	if u.FDT != "" {
		rows = append(rows, row{field: "uboot.fdt", value: u.FDT})
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

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}
