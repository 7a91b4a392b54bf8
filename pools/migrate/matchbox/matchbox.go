// Package matchbox reads the groups and profiles of Matchbox: a data directory, or single
// JSON files.
//
// A profile becomes a pool, a group with a MAC or a UUID a node of it, and a group without
// selectors a catch-all pool. Matchbox gives no addresses: another server does, and drover
// is its proxy. What Ignition and cloud-config do on a node has no counterpart of the same
// form: files, units and scripts of a tag do it.
package matchbox

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/migrate"
)

// maxFiles bounds the files of a directory.
const maxFiles = 100_000

// reader reads the groups and profiles of one Matchbox.
type reader struct {
	farm     *migrate.Farm
	profiles map[string]*migrate.Value
	groups   []*migrate.Value
	plain    map[pools.MAC]bool // the MACs that a group has as its only selector
}

// Read reads files and data directories, and fills a farm.
func Read(f *migrate.Farm, paths []string) error {
	r := &reader{farm: f, profiles: map[string]*migrate.Value{}, plain: map[pools.MAC]bool{}}
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
	names := make([]string, 0, len(r.profiles))
	for name := range r.profiles {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		r.profile(name, r.profiles[name])
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
	for _, folder := range []string{"ignition", "cloud", "generic"} {
		if _, err := os.Stat(filepath.Join(path, folder)); err == nil {
			r.farm.Lost(migrate.At(filepath.Join(path, folder)), "templates for nodes: write what they do as files, units and scripts of the tag of their profile")
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
		r.profiles[id] = v
	default:
		return migrate.FormatError(v.Origin, "neither a group (profile, selector) nor a profile (boot)")
	}
	return nil
}

// profile reads a profile: what its machines boot.
func (r *reader) profile(id string, v *migrate.Value) {
	f := r.farm
	name, t := f.Tag(id)
	template := f.NoCounterpart("a template for nodes: write what it does as files, units and scripts of tags.%s", name)
	f.Fields(v, migrate.Readers{
		"id": migrate.Skip, "name": migrate.Skip, "ignition_id": template, "cloud_id": template, "generic_id": template,
		"boot": func(v *migrate.Value) {
			f.Fields(v, migrate.Readers{
				"kernel": f.NoCounterpart("kernel and initrd are of the image: build one with drover image build"),
				"initrd": f.NoCounterpart("kernel and initrd are of the image: build one with drover image build"),
				"args":   func(v *migrate.Value) { r.arguments(name, &t.KernelArgs, v) },
				"color":  migrate.Skip,
			})
		},
	})
	f.Comment("The profile in "+v.File+".", "tags", name)
}

// arguments reads kernel arguments. Those of Matchbox and of the systems that it boots are
// noted.
func (r *reader) arguments(tag string, to *pools.KernelArgs, v *migrate.Value) {
	for _, text := range v.Strings() {
		for word := range strings.FieldsSeq(text) {
			key, _, _ := strings.Cut(word, "=")
			switch {
			case slices.Contains([]string{"coreos.config.url", "coreos.first_boot", "ignition.config.url", "ignition.firstboot", "ignition.platform.id",
				"flatcar.config.url", "flatcar.first_boot", "cloud-config-url", "coreos.live.rootfs_url", "initrd", "BOOTIF",
				"coreos.inst.ignition_url", "coreos.inst.install_dev", "coreos.inst", "coreos.inst.stream", "coreos.inst.image_url"}, key):
				r.farm.Lost(v.Origin, "kernel argument %s is of Ignition, cloud-config or CoreOS", key)
			case strings.ContainsAny(word, `\'$`):
				r.farm.Lost(v.Origin, "kernel argument %q has characters that loaders change, or variables of iPXE", word)
			default:
				to.Args = append(to.Args, word)
				r.farm.Taken(v.Origin, "tags."+tag+".kernelArgs", word)
			}
		}
	}
}

// group reads a group: which machines boot a profile.
func (r *reader) group(v *migrate.Value) {
	f := r.farm
	m := migrate.Machine{At: v.Origin}
	m.Name = cmp.Or(v.Get("id").String(), strings.TrimSuffix(filepath.Base(v.File), ".json"))
	left := ""
	f.Fields(v, migrate.Readers{
		"id": migrate.Skip, "name": migrate.Skip, "profile": migrate.Skip,
		"metadata": func(v *migrate.Value) {
			for _, p := range v.Pairs {
				f.Lost(p.Value.Origin, "metadata of templates: env or files of a tag")
			}
		},
		"selector": func(v *migrate.Value) {
			for _, p := range v.Pairs {
				switch text := p.Value.String(); p.Key {
				case "mac":
					m.Hardware = append(m.Hardware, text)
				case "uuid":
					m.Match.UUID = strings.ToLower(text)
				case "hostname":
					m.Name = text
					left = p.Key
				default:
					left = p.Key
				}
			}
		},
	})
	profile := v.Get("profile").String()
	if _, ok := r.profiles[profile]; !ok && profile != "" {
		f.Unknown(v.Get("profile").Origin, "profile %q is not among the files", profile)
		f.Tag(profile)
	}
	tag := migrate.TagName(profile)
	m.Pool, m.Tags = profile, []string{tag}
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
		c := migrate.CatchAll{At: v.Origin, Pool: pools.Pool{Name: profile, Tags: []string{tag}}}
		f.Taken(v.Origin, "pools[].catchall; for all machines that no other group has", true)
		if f.DHCP != pools.DHCPProxy {
			f.LeftOut(v.Origin, "the catch-all pool has no range (write range:, and catchall: true)")
			return
		}
		f.CatchAll(c)
		return
	}
	if len(m.Hardware) > 0 {
		m.Match = pools.Match{}
	}
	f.Add(m)
}

// hasPlain reports whether a group has a MAC as its only selector.
func (r *reader) hasPlain(hardware string) bool {
	mac, err := migrate.ParseHardware(hardware)
	return err == nil && r.plain[mac]
}
