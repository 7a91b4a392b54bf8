package kmod

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Coldplug loads the modules of the devices that the kernel has found, by the modalias
// files below sys (/sys). A loaded bus driver finds more devices, so that Coldplug
// repeats this until a round loads nothing new. It returns the names of the loaded
// modules, and the errors of those that did not load.
//
// Some drivers search for their devices in the background: a caller that waits for a
// device calls Coldplug at intervals.
func (m *Modules) Coldplug(sys string) (loaded []string, errs []error) {
	start := len(m.order)
	for {
		before := len(m.order)
		for _, alias := range deviceAliases(sys) {
			for _, name := range m.match(alias) {
				if _, tried := m.state[name]; tried || m.Args.Blacklist[name] {
					continue
				}
				if err := m.insert(name); err != nil {
					errs = append(errs, err)
				}
			}
		}
		if len(m.order) == before {
			return slices.Clone(m.order[start:]), errs
		}
	}
}

// deviceAliases returns the modaliases of all devices, each once.
func deviceAliases(sys string) []string {
	files, _ := filepath.Glob(filepath.Join(sys, "bus/*/devices/*/modalias")) // the pattern is good
	var aliases []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // the device was removed
		}
		if s := strings.TrimSpace(string(b)); s != "" {
			aliases = append(aliases, aliasName(s))
		}
	}
	slices.Sort(aliases)
	return slices.Compact(aliases)
}

// aliasKey is the length of the prefix of a pattern that modules are indexed by. It is
// that of "pci:v00008086d", which distinguishes the vendors on PCI.
const aliasKey = 14

// aliasIndex returns the part of a pattern before its first wildcard, at most aliasKey
// bytes. A modalias matches only patterns whose index is a prefix of it.
func aliasIndex(pattern string) string {
	if i := strings.IndexAny(pattern, "*?["); i >= 0 {
		pattern = pattern[:i]
	}
	return pattern[:min(len(pattern), aliasKey)]
}

// match returns the modules with an alias that matches s, each once.
func (m *Modules) match(s string) []string {
	var names []string
	for n := 0; n <= min(len(s), aliasKey); n++ {
		for _, a := range m.alias[s[:n]] {
			if !slices.Contains(names, a.name) && matchAlias(a.pattern, s) {
				names = append(names, a.name)
			}
		}
	}
	return names
}

// aliasName returns an alias in depmod's notation: with underscores for hyphens, except
// within brackets, where a hyphen is a range.
func aliasName(s string) string {
	if !strings.Contains(s, "-") {
		return s
	}
	b := []byte(s)
	bracket := false
	for i, c := range b {
		switch {
		case c == '[':
			bracket = true
		case c == ']':
			bracket = false
		case c == '-' && !bracket:
			b[i] = '_'
		}
	}
	return string(b)
}

// matchAlias is fnmatch(3) without flags: '*' and '?' also match a slash, which
// device tree and DMI aliases contain. A broken pattern matches nothing.
func matchAlias(pattern, s string) bool {
	if strings.Contains(pattern, "[") { // '!' negates a set, and a bracket at its begin is a member
		pattern = strings.NewReplacer("[!]", `[^\]`, "[!", "[^", "[]", `[\]`).Replace(pattern)
	}
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(s, "/", "\x00"))
	return ok && err == nil
}
