package dhcpd

import (
	"slices"
	"strings"

	"drover/migrate"
	"drover/migrate/kea"
	"drover/pools"
)

// reader brings the config of one server into Kea's form.
type reader struct {
	farm  *migrate.Farm
	names migrate.OptionNames
}

// Read reads configs and fills a farm.
func Read(f *migrate.Farm, files []string) error {
	r := newReader(f)
	for _, file := range files {
		p := &parser{read: migrate.ReadFile, left: maxStatements}
		all, err := p.file(file)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(s statement) bool {
			return slices.Contains([]string{"subnet", "subnet6", "shared-network", "host", "group", "option"}, s.word(0))
		}) {
			return migrate.FormatError(migrate.At(file), "no subnet, host, group or option: that is no config of dhcpd")
		}
		r.fill(all)
	}
	return nil
}

func newReader(f *migrate.Farm) *reader {
	return &reader{farm: f, names: migrate.NewOptionNames()}
}

// fill fills the farm from the statements of a config.
func (r *reader) fill(all []statement) {
	r.declare(all)
	kea.ReadTree(r.farm, r.block(level{}, migrate.NewMap(pools.Origin{}), all), r.names)
}

// declare reads the definitions of options, which others refer to, and adds the statements to
// what must be in the config or in the report.
func (r *reader) declare(all []statement) {
	for _, s := range all {
		text := strings.TrimPrefix(s.text(1), "ethernet ")
		if s.word(0) == "host-identifier" {
			text = s.text(3)
		}
		if !s.has && text != "" {
			r.farm.Source(s.at, text)
		}
		s.at.Path = s.word(0)
		if s.isDefinition() && !strings.Contains(s.word(1), ".") {
			kind := strings.TrimPrefix(strings.TrimPrefix(strings.ToLower(s.text(5)), "array of "), "unsigned ")
			kind = strings.NewReplacer("string", "binary", "integer ", "uint").Replace(kind)
			r.farm.Define(r.names, s.at, s.word(1), s.word(3), kind)
		}
		r.declare(s.block)
	}
}

// isDefinition reports whether a statement is "option NAME code NUMBER = TYPE".
func (s statement) isDefinition() bool {
	return s.word(0) == "option" && s.word(2) == "code" && s.word(4) == "="
}

// option reads "option NAME VALUE, VALUE".
func (r *reader) option(v *migrate.Value, s statement) {
	name := strings.TrimPrefix(s.word(1), "dhcp.")
	s.at.Path = "option " + name
	space, rest, vendor := strings.Cut(name, ".")
	if s.isDefinition() && !vendor {
		return // it is read before
	}
	o := migrate.NewMap(s.at)
	_, known := r.names[name]
	if number := strings.TrimPrefix(name, "unknown-"); !known && strings.Trim(number, "0123456789") == "" {
		o.Set("code", migrate.NewText(s.at, number))
		o.Set("csv-format", migrate.NewText(s.at, "false"))
	} else if vendor && !known || name == "space" || name == "definition" {
		if !vendor {
			space = s.word(2)
		}
		o.Set("space", migrate.NewText(s.at, space))
		o.Set("name", migrate.NewText(s.at, rest))
	} else {
		o.Set("name", migrate.NewText(s.at, name))
	}
	values, computed := optionValues(s)
	if computed && !s.isDefinition() {
		r.farm.Lost(s.at, "an option whose value is computed: drover has fixed ones, by tag, network and node")
		return
	}
	o.Set("data", values)
	v.Append("option-data", o)
}

// optionValues returns the values of an option, or of fixed-address, as a list. computed is true
// for an expression.
func optionValues(s statement) (values *migrate.Value, computed bool) {
	from := 1
	if s.word(0) == "option" {
		from = 2
	}
	values = migrate.NewList(s.at)
	var value []string
	quoted := false
	for _, w := range append(slices.Clone(s.words[min(from, len(s.words)):]), ",") {
		switch {
		case w == ",":
			if len(value) > 0 {
				item := migrate.NewText(s.at, strings.Join(value, " "))
				item.Quoted = quoted
				values.Items = append(values.Items, item)
			}
			value, quoted = nil, false
		case strings.ContainsAny(w[:1], "=()!~"):
			return migrate.NewList(s.at), true
		default:
			value, quoted = append(value, unquote(w)), w[0] == '"'
		}
	}
	return values, false
}
