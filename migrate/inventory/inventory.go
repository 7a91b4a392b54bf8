// Package inventory reads tables of machines: CSV with a header that names the fields, as
// spreadsheets, MAAS and Foreman export them.
//
// Columns that say nothing about booting are noted once. The separator is a comma, a
// semicolon or a tab, whichever the header has.
package inventory

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"drover/migrate"
	"drover/pools"
)

// places returns where the config has each field.
func places() map[string]string {
	return map[string]string{
		"name": "pools[].nodes[].name", "mac": "pools[].nodes[].macs", "ip": "pools[].nodes[].ip", "ip6": "pools[].nodes[].ip6", "pool": "pools[].name",
		"tags": "pools[].nodes[].tags", "kernel": "tags", "power": "pools[].nodes[].power", "bmc": "pools[].nodes[].power.address",
		"user": "pools[].nodes[].power.user", "uuid": "pools[].nodes[].match.uuid", "network": "subnets[].cidr", "mask": "subnets[].cidr", "router": "subnets[].router",
	}
}

// Read reads tables and fills a farm.
func Read(f *migrate.Farm, files []string) error {
	f.Guess, f.Apart = true, true
	for _, file := range files {
		data, err := migrate.ReadFile(file)
		if err != nil {
			return err
		}
		if err := read(f, file, data); err != nil {
			return err
		}
	}
	return nil
}

// table is a table that is being read.
type table struct {
	farm   *migrate.Farm
	file   string
	fields []string // of each column
	header []string
	cards  bool                // its rows are of network cards: NetBox' interfaces
	byName map[string]*machine // the rows of one name are one machine
	all    []*machine
}

// machine is a machine of one or several rows.
type machine struct {
	migrate.Machine
	power pools.NodePower
	row   []string
}

func read(f *migrate.Farm, file string, data []byte) error {
	t := &table{farm: f, file: file, byName: map[string]*machine{}}
	if err := Table(file, data, t.head, t.row); err != nil {
		return err
	}
	for _, m := range t.all {
		t.power(&m.Machine, m.power)
		t.network(m.At, &m.Machine, m.row)
		f.Add(m.Machine)
	}
	return nil
}

// head reads the header.
func (t *table) head(at pools.Origin, row []string) error {
	fields := known()
	t.header = row
	t.cards = slices.ContainsFunc(row, func(name string) bool { return fields[normal(name)] == "device" })
	for _, name := range row {
		key := normal(name)
		field, ok := fields[key]
		switch {
		case t.cards && field == "name":
			field = "card"
		case field == "device":
			field = "name"
		}
		at.Path = strings.TrimSpace(name)
		switch {
		case !ok && key != "":
			t.farm.Unknown(at, "a column that this import does not know (rename it to one of name, mac, ip, ip6, pool, tags, kernelargs, network, uuid, bmc)")
		case field == "card" || field == "mgmt":
			t.farm.Itself(at, "the rows of one machine are its network cards; those of its management processor are no node")
		case field == "other":
			t.farm.Lost(at, "the column says nothing about booting")
		case field == "password":
			t.farm.Lost(at, "passwords are not written into a config (power.passwordFile names a file with one)")
		case ok:
			t.farm.Taken(at, places()[field])
		}
		t.fields = append(t.fields, field)
	}
	if !slices.Contains(t.fields, "mac") && !slices.Contains(t.fields, "uuid") {
		return migrate.FormatError(at, "no column has the MACs: the first line must name the columns, one of them mac")
	}
	return nil
}

// row reads a machine, or one more network card of it.
func (t *table) row(at pools.Origin, row []string) {
	m := &machine{Machine: migrate.Machine{At: at}, row: row}
	if name := t.cell(row, "name"); name != "" {
		if first := t.byName[strings.ToLower(name)]; first != nil {
			m = first
		} else {
			t.byName[strings.ToLower(name)] = m
		}
	}
	bmc := isManagement(t.cell(row, "card"), t.cell(row, "mgmt"))
	if bmc {
		t.farm.Itself(at, "the card is that of the management processor: power of the node, and no node of its own")
	}
	for i, text := range row {
		text = strings.TrimSpace(text)
		if i >= len(t.fields) {
			t.farm.Unknown(at, "more values than the header has columns")
			break
		}
		if text == "" || text == "-" || strings.EqualFold(text, "null") || strings.EqualFold(text, "none") {
			continue
		}
		at.Path = t.header[i]
		if places()[t.fields[i]] != "" {
			t.farm.Source(at, text)
		}
		switch field := t.fields[i]; {
		case bmc && field == "ip":
			m.power.Address, _, _ = strings.Cut(Words(text)[0], "/")
		case bmc && field != "name":
		default:
			t.value(&m.Machine, &m.power, at, field, text)
		}
	}
	if m.Name == "" && len(m.Hardware) == 0 && m.Match.IsZero() || slices.Contains(t.all, m) {
		return // an empty line, or a further card
	}
	t.all = append(t.all, m)
}

// cell returns the value of a field in a row.
func (t *table) cell(row []string, field string) string {
	if i := slices.Index(t.fields, field); i >= 0 && i < len(row) {
		return strings.TrimSpace(row[i])
	}
	return ""
}

// isManagement reports whether a network card is that of a management processor, by its name or
// by NetBox' mark.
func isManagement(card, mark string) bool {
	name := strings.TrimRight(strings.ToLower(card), "0123456789")
	return strings.EqualFold(mark, "true") || slices.Contains([]string{"ilo", "idrac", "bmc", "ipmi", "mgmt", "imm", "xcc", "irmc", "cimc"}, name)
}

// value reads one value of a machine.
func (t *table) value(m *migrate.Machine, power *pools.NodePower, at pools.Origin, field, text string) {
	switch field {
	case "name":
		if m.Name == "" {
			m.Name = text
		}
	case "mac":
		m.Hardware = append(m.Hardware, Words(text)...)
	case "ip", "ip6":
		t.farm.Addresses(m, at, Words(text))
	case "pool":
		m.Pool = text
	case "tags":
		for _, w := range Words(text) {
			if name, _ := t.farm.Tag(w); !slices.Contains(m.Tags, name) {
				m.Tags = append(m.Tags, name)
			}
		}
	case "kernel":
		m.Tags = append(m.Tags, t.kernelTag(strings.Fields(text)))
	case "uuid":
		m.Match.UUID = strings.ToLower(text)
	case "power":
		power.Driver = pools.PowerDriver(strings.ToLower(text))
	case "bmc":
		power.Address = text
		if u, err := url.Parse(text); err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" {
			power.Address = u.Host
		}
	case "user":
		power.User = text
	case "network":
		for word := range strings.FieldsSeq(text) { // "prod (10.4.0.0/24)"
			if p, err := netip.ParsePrefix(strings.Trim(word, "()")); err == nil {
				t.farm.Network(p, at)
				return
			}
		}
		t.farm.Lost(at, "network %q: write it as 10.28.0.0/16", text)
	}
}

// kernelTag returns the name of a tag with these kernel arguments.
func (t *table) kernelTag(args []string) string {
	base := migrate.TagName("kernel-" + strings.Join(args, "-"))
	for i := 1; ; i++ {
		name := base
		if i > 1 {
			name = fmt.Sprintf("%.58s-%d", base, i)
		}
		known := t.farm.HasTag(name)
		name, tag := t.farm.Tag(name)
		if !known {
			tag.KernelArgs.Args = args
		}
		if slices.Equal(tag.KernelArgs.Args, args) {
			return name
		}
	}
}

// network adds the network of a machine's address, by a column with its mask, and its router.
func (t *table) network(at pools.Origin, m *migrate.Machine, row []string) {
	value := func(field string) string {
		if i := slices.Index(t.fields, field); i >= 0 {
			at.Path = t.header[i]
		}
		return t.cell(row, field)
	}
	if text := value("mask"); text != "" && m.IP.Is4() {
		t.farm.InNetwork(m, at, text)
	}
	if text := value("router"); text != "" {
		t.farm.Router(m, at, text)
	}
}

// power gives a machine its management processor.
func (t *table) power(m *migrate.Machine, p pools.NodePower) {
	switch {
	case p.Driver == "" && p.Address == "", p.Driver == "manual":
		return
	case p.Driver == "" || p.Driver == "ipmi" || strings.HasPrefix(string(p.Driver), "lan"):
		p.Driver = pools.IPMI
	case p.Driver != pools.Redfish:
		t.farm.Lost(m.At, "power driver %q: drover has redfish, ipmi and exec", p.Driver)
		return
	}
	if p.Address == "" {
		t.farm.Lost(m.At, "power over %s without the address of the management processor", p.Driver)
		return
	}
	p.PasswordFile = "bmc.pass"
	m.Power = &p
}
