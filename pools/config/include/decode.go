package include

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"drover/pools"
	"drover/pools/config/decode"
	"drover/pools/config/mistake"
	"drover/pools/resolve"
)

// Decode reads the text into the config of c, as it was written, with the lines of its
// values. Included files that are on the disk are a part of the text from then on.
func (t *Text) Decode(c *resolve.Checked) (errs mistake.Errors) {
	var r decode.Reader
	c.Source = t.File
	c.Lines, errs = r.YAML(t.File, t.Main, &c.Config)
	patterns := c.Config.Include
	switch {
	case len(patterns) == 0:
		t.Included = nil
	case t.From == Nowhere:
		errs = append(errs, t.mistake(c, 0, pools.Hint("put all into one text", "no files are read here")))
	case t.From == InForce:
		errs = append(errs, t.choose(c, patterns)...)
	case t.From == disk:
		t.watch.add(patterns)
		for i := range patterns {
			if err := t.read(patterns, i); err != nil {
				errs = append(errs, t.mistake(c, i, err))
			}
		}
	}
	if t.From == disk {
		t.From = Given
	}
	r.MayBeEmpty = true
	m := merger{c: c, main: t.File}
	for i, p := range t.Included {
		name := t.name(p.File)
		c.Included = append(c.Included, name)
		part := pools.Config{}
		lines, more := r.YAML(name, []byte(p.Content), &part)
		errs = append(errs, more...)
		m.add(i, &part, lines)
	}
	return append(errs, m.errs...)
}

// choose leaves the files in the text that the patterns name, in the order of these.
func (t *Text) choose(c *resolve.Checked, patterns []string) (errs mistake.Errors) {
	all := t.Included
	t.Included = nil
	for i, pattern := range patterns {
		fits := func(p pools.ConfigPart) bool { ok, _ := filepath.Match(pattern, p.File); return ok }
		for _, p := range all {
			if fits(p) && !slices.ContainsFunc(t.Included, func(o pools.ConfigPart) bool { return o.File == p.File }) {
				t.Included = append(t.Included, p)
			}
		}
		if _, err := filepath.Match(pattern, ""); err != nil || !strings.ContainsAny(pattern, wildcards) && !slices.ContainsFunc(all, fits) {
			errs = append(errs, t.mistake(c, i, pools.Hint("check it on the host of the server: drover check", "%q is not of the config in force, and no files are read here", pattern)))
		}
	}
	return errs
}

// mistake returns a mistake in the i-th pattern.
func (t *Text) mistake(c *resolve.Checked, i int, err error) *mistake.Error {
	path := fmt.Sprintf("include[%d]", i)
	line := c.Lines[path]
	if line == 0 {
		line = c.Lines["include"]
	}
	msg, hint := mistake.Explain("include", err)
	return &mistake.Error{Origin: pools.Origin{File: t.File, Line: line, Path: path}, Msg: msg, Hint: hint}
}

// merger adds the configs of included files to that of the file.
type merger struct {
	c    *resolve.Checked
	main string
	errs mistake.Errors
}

func (m *merger) failf(file, line int, path, hint, format string, args ...any) {
	o := pools.Origin{File: m.c.Included[file], Line: line, Path: path}
	m.errs = append(m.errs, &mistake.Error{Origin: o, Msg: fmt.Sprintf(format, args...), Hint: hint})
}

// add adds the config of the included file with an index, whose values have these lines.
func (m *merger) add(file int, part *pools.Config, lines map[string]int) {
	if line := lines["server"]; line > 0 {
		m.failf(file, line, "server", "move it to "+m.main, "server: an included file cannot set it")
	}
	if line := lines["include"]; line > 0 {
		m.failf(file, line, "include", "write the pattern in "+m.main, "include: an included file cannot include others")
	}
	cfg := &m.c.Config
	before := map[string]int{"subnets": len(cfg.Subnets), "clusters": len(cfg.Clusters), "pools": len(cfg.Pools), "chassis": len(cfg.Chassis)}
	cfg.Subnets = append(cfg.Subnets, part.Subnets...)
	cfg.Clusters = append(cfg.Clusters, part.Clusters...)
	cfg.Pools = append(cfg.Pools, part.Pools...)
	cfg.Chassis = append(cfg.Chassis, part.Chassis...)
	twice := m.tags(file, part, lines)
	for path, line := range lines {
		section, rest := path, ""
		if i := strings.IndexAny(path, ".["); i >= 0 {
			section, rest = path[:i], path[i:]
		}
		switch n, isList := before[section]; {
		case section == "tags":
			if name, _, _ := strings.Cut(strings.TrimPrefix(rest, "."), "."); twice[name] {
				continue
			}
		case !isList:
			continue
		case rest != "":
			path = section + shift(rest, n)
		}
		if _, set := m.c.Lines[path]; !set {
			m.c.Lines[path] = resolve.LineIn(file, line)
		}
	}
}

// tags adds the tags of a file, and returns the names of those that are there twice.
func (m *merger) tags(file int, part *pools.Config, lines map[string]int) map[string]bool {
	twice := map[string]bool{}
	cfg := &m.c.Config
	if cfg.Tags == nil && len(part.Tags) > 0 {
		cfg.Tags = map[string]pools.Tag{}
	}
	for name, t := range part.Tags {
		at := "tags." + name
		if _, dup := cfg.Tags[name]; !dup {
			cfg.Tags[name] = t
			continue
		}
		twice[name] = true
		first := resolve.OriginOf(m.c.Source, m.c.Included, nil, m.c.Lines[at], at)
		m.failf(file, lines[at], at, "rename or remove one", "tag %q is there twice, first in %s", name, first.Position())
		m.errs[len(m.errs)-1].Other = first
	}
	return twice
}

// shift adds n to the index at the begin of the rest of a path, "[2].ip".
func shift(rest string, n int) string {
	index, after, ok := strings.Cut(strings.TrimPrefix(rest, "["), "]")
	i, err := strconv.Atoi(index)
	if !ok || err != nil {
		return rest
	}
	return fmt.Sprintf("[%d]%s", i+n, after)
}
