// Package matchbox reads the groups and profiles of Matchbox: a data directory, or single
// JSON files.
//
// A group with a MAC or a UUID becomes a node of the pool of its profile, and one without
// selectors a catch-all pool. Matchbox gives no addresses: another server does, and drover
// is its proxy. What a profile boots is listed.
package matchbox

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"drover/migrate"
	"drover/pools"
)

// maxFiles bounds the files of a directory.
const maxFiles = 100_000

// reader reads the groups and profiles of one Matchbox.
type reader struct {
	farm     *migrate.Farm
	profiles map[string]bool
	groups   []*migrate.Value
	plain    map[pools.MAC]bool // the MACs that a group has as its only selector
}

// Read reads files and data directories, and fills a farm.
func Read(f *migrate.Farm, paths []string) error {
	r := &reader{farm: f, profiles: map[string]bool{}, plain: map[pools.MAC]bool{}}
	for _, path := range paths {
		if err := r.path(path); err != nil {
			return err
		}
	}
	if len(r.profiles)+len(r.groups) == 0 {
		return migrate.FormatError(migrate.At(strings.Join(paths, ", ")), "no group and no profile: want the data directory of Matchbox, or files of it")
	}
	if f.DHCP == "" && len(f.Networks()) == 0 {
		f.DHCP = pools.DHCPProxy
		f.Taken(migrate.At(paths[0]), "server.dhcp; as Matchbox gives no addresses (--subnet and --dhcp full when drover shall give them)", "proxy")
	}
	for _, g := range r.groups {
		if s := g.Get("selector"); s.IsMap() && len(s.Pairs) == 1 {
			if mac, err := migrate.ParseHardware(s.Get("mac").String()); err == nil {
				r.plain[mac] = true
			}
		}
	}
	for _, g := range r.groups {
		r.group(g)
	}
	return nil
}

// path reads a file, or the groups and profiles of a directory.
func (r *reader) path(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return r.file(path)
	}
	for _, folder := range []string{"groups", "profiles"} {
		files, err := filepath.Glob(filepath.Join(globEscape(path), folder, "*.json"))
		if err != nil {
			return err
		}
		for _, file := range files[:min(len(files), maxFiles)] {
			if err := r.file(file); err != nil {
				return err
			}
		}
	}
	return nil
}

// globEscape returns a path in which no character is a pattern.
func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func (r *reader) file(path string) error {
	data, err := migrate.ReadFile(path)
	if err != nil {
		return err
	}
	v, err := migrate.ParseJSON(path, data)
	if err != nil {
		return err
	}
	r.farm.SourceTree(v)
	id := v.Get("id").String()
	if id == "" {
		id = strings.TrimSuffix(filepath.Base(path), ".json")
	}
	switch {
	case v.Get("profile") != nil || v.Get("selector") != nil:
		r.groups = append(r.groups, v)
	case v.Get("boot") != nil || v.Get("ignition_id") != nil || v.Get("cloud_id") != nil || v.Get("generic_id") != nil:
		r.profiles[id] = true
		for _, key := range []string{"boot", "ignition_id", "cloud_id", "generic_id"} {
			if inner := v.Get(key); inner != nil {
				r.farm.NotTaken(inner.Origin, "what the profile boots: build an image with drover image build, and write kernelArgs, files, units and scripts of a tag")
			}
		}
	default:
		return migrate.FormatError(v.Origin, "neither a group (profile, selector) nor a profile (boot)")
	}
	return nil
}

// group reads a group: which machines boot a profile.
func (r *reader) group(v *migrate.Value) {
	f := r.farm
	m := migrate.Machine{At: v.Origin}
	m.Name = cmp.Or(v.Get("id").String(), strings.TrimSuffix(filepath.Base(v.File), ".json"))
	left := r.selector(v.Get("selector"), &m)
	profile := v.Get("profile").String()
	if !r.profiles[profile] && profile != "" {
		f.Unknown(v.Get("profile").Origin, "profile %q is not among the files", profile)
	}
	m.Pool = profile
	switch {
	case len(m.Hardware) > 0 && left != "" && r.hasPlain(m.Hardware[0]):
		f.LeftOut(v.Origin, "selector %s beside a MAC that another group has: drover boots what that one says (set another boot once with drover node next)", left)
		return
	case len(m.Hardware) > 0 && left != "":
		f.Lost(v.Origin, "selector %s beside the MAC: drover boots the machine whatever it says (set another boot once with drover node next)", left)
	case left != "" && m.Match.IsZero():
		f.LeftOut(v.Origin, "selector %s: drover knows a machine by its MAC or its UUID", left)
		return
	case len(m.Hardware) == 0 && m.Match.IsZero():
		c := migrate.CatchAll{At: v.Origin, Pool: pools.Pool{Name: profile}}
		f.Taken(v.Origin, "pools[].catchall; for all machines that no other group has", true)
		if f.DHCP != pools.DHCPProxy {
			f.LeftOut(v.Origin, "the catch-all pool has no range (write range:, and catchall: true)")
			return
		}
		f.CatchAll(c)
		return
	}
	f.Add(m)
}

// selector reads which machine a group is for. It returns a key that drover cannot select by, or
// that is not understood: such a group is not for all machines.
func (r *reader) selector(v *migrate.Value, m *migrate.Machine) (left string) {
	if !v.IsMap() && !v.IsNull() {
		return "of another form"
	}
	if v.IsNull() {
		return ""
	}
	for _, p := range v.Pairs {
		switch text := p.Value.String(); {
		case text == "":
			left = p.Key
		case p.Key == "mac":
			m.Hardware = append(m.Hardware, text)
		case p.Key == "uuid":
			m.Match.UUID = strings.ToLower(text)
		case p.Key == "hostname":
			m.Name, left = text, p.Key
		default:
			left = p.Key
		}
	}
	return left
}

// hasPlain reports whether a group has a MAC as its only selector.
func (r *reader) hasPlain(hardware string) bool {
	mac, err := migrate.ParseHardware(hardware)
	return err == nil && r.plain[mac]
}
