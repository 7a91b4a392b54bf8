// Package warewulf reads nodes.conf and warewulf.conf of Warewulf 4.
//
// A profile becomes a tag, with the kernel arguments and mounts that it has. Nodes with
// the same image are in one pool. The address of a node is that of its primary network.
package warewulf

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/migrate"
)

// reader reads the nodes of one Warewulf.
type reader struct {
	farm     *migrate.Farm
	profiles map[string]*migrate.Value
}

// Read reads nodes.conf, and warewulf.conf if it is among the files.
func Read(f *migrate.Farm, files []string) error {
	f.Guess, f.Apart = true, true
	documents, err := migrate.ReadYAML(files)
	if err != nil {
		return err
	}
	for _, doc := range documents {
		f.SourceTree(doc)
		r := &reader{farm: f, profiles: map[string]*migrate.Value{}}
		switch {
		case doc.Get("nodes") != nil || doc.Get("nodeprofiles") != nil:
			r.nodes(doc)
		case doc.Get("warewulf") != nil || doc.Get("ipaddr") != nil:
			r.server(doc)
		default:
			return migrate.FormatError(doc.Origin, "neither nodes nor nodeprofiles: want nodes.conf or warewulf.conf")
		}
	}
	if len(documents) == 0 {
		return migrate.FormatError(migrate.At(strings.Join(files, ", ")), "nothing is in it")
	}
	return nil
}

func (r *reader) nodes(v *migrate.Value) {
	r.farm.Fields(v, migrate.Readers{
		"WW_INTERNAL": migrate.Skip,
		"nodeprofiles": func(v *migrate.Value) {
			for _, p := range v.Pairs {
				r.profiles[p.Key] = p.Value
				r.profile(p.Key, p.Value)
			}
		},
		"nodes": migrate.Skip,
	})
	if list := v.Get("nodes"); list.IsMap() {
		for _, p := range list.Pairs {
			r.node(p.Key, p.Value)
		}
	}
}

// fields returns the readers of what a profile and a node have, for a tag.
func (r *reader) fields(tag func() (string, *pools.Tag)) migrate.Readers {
	f := r.farm
	overlay := f.NoCounterpart("overlays are templates of Warewulf: write what they do as files, units and scripts of a tag")
	disk := f.NoCounterpart("disks of a tag describes what a node formats and mounts, in another form (docs/nodes.md)")
	boot := f.NoCounterpart("how the image boots: drover has its own init in the initrd")
	readers := migrate.Readers{
		"kernel": func(v *migrate.Value) { r.kernel(tag, v) }, "resources": func(v *migrate.Value) { r.resources(tag, v) },
		"runtime overlay": overlay, "system overlay": overlay, "disks": disk, "filesystems": disk,
		"init": boot, "root": boot, "ipxe template": boot,
		"tags": f.NoCounterpart("variables of overlays"), "keys": f.NoCounterpart("variables of overlays"),
		"asset key": f.NoCounterpart("a mark of the inventory"),
	}
	for _, key := range []string{"comment", "cluster name", "image name", "container name", "network devices", "primary network", "ipmi",
		"profiles", "discoverable", "id"} {
		readers[key] = migrate.Skip
	}
	return readers
}

// profile reads a profile as a tag.
func (r *reader) profile(name string, v *migrate.Value) {
	f := r.farm
	tag := func() (string, *pools.Tag) { return f.Tag(tagOf(name)) }
	f.Fields(v, r.fields(tag))
	if f.HasTag(tagOf(name)) {
		f.Comment(strings.TrimSpace("Profile "+name+". "+v.Get("comment").String()), "tags", migrate.TagName(tagOf(name)))
	}
}

// tagOf returns the name of the tag of a profile: all is that of all nodes in drover.
func tagOf(profile string) string {
	if profile == "all" {
		return "profile-all"
	}
	return profile
}

// kernel reads the kernel arguments: a list, or a text in earlier versions.
func (r *reader) kernel(tag func() (string, *pools.Tag), v *migrate.Value) {
	r.farm.Fields(v, migrate.Readers{
		"version":  r.farm.NoCounterpart("the kernel is that of the image"),
		"override": r.farm.NoCounterpart("the kernel is that of the image"),
		"args": func(v *migrate.Value) {
			words := strings.Fields(strings.Join(v.Strings(), " "))
			if len(words) == 0 {
				return
			}
			name, t := tag()
			t.KernelArgs.Args = append(t.KernelArgs.Args, words...)
			r.farm.Taken(v.Origin, "tags."+name+".kernelArgs", words[0])
		},
	})
}

// resources reads the mounts of the resource fstab.
func (r *reader) resources(tag func() (string, *pools.Tag), v *migrate.Value) {
	for _, p := range v.Pairs {
		if p.Key != "fstab" || !p.Value.IsList() {
			r.farm.Lost(p.Value.Origin, "data of overlays (files of a tag)")
			continue
		}
		for _, item := range p.Value.Items {
			m := pools.Mount{Source: item.Get("spec").String(), Path: item.Get("file").String(), Type: item.Get("vfstype").String(), Options: item.Get("mntops").String()}
			if m.Path == "" || m.Type == "" || m.Path == "none" || m.Path == "/" {
				r.farm.Lost(item.Origin, "a line of fstab without a place of its own")
				continue
			}
			name, t := tag()
			t.Mounts.Items = append(t.Mounts.Items, m)
			r.farm.Taken(item.Origin, "tags."+name+".mounts; warewulf as a host is the old server", m.Path)
		}
	}
}

// merged returns a node with the values of its profiles: later ones win, and the node does.
func (r *reader) merged(v *migrate.Value) *migrate.Value {
	all := &migrate.Value{}
	for _, name := range r.profilesOf(v, 0) {
		if p := r.profiles[name]; p.IsMap() {
			all = migrate.Merge(all, p)
		}
	}
	if v.IsMap() {
		all = migrate.Merge(all, v)
	}
	return all
}

// profilesOf returns the names of the profiles, with those that profiles have.
func (r *reader) profilesOf(v *migrate.Value, depth int) (names []string) {
	if depth > 16 {
		return nil
	}
	for _, name := range v.Get("profiles").Strings() {
		if strings.HasPrefix(name, "~") || slices.Contains(names, name) {
			continue
		}
		for _, inner := range r.profilesOf(r.profiles[name], depth+1) {
			if !slices.Contains(names, inner) {
				names = append(names, inner)
			}
		}
		names = append(names, name)
	}
	return names
}

// node reads a node.
func (r *reader) node(name string, v *migrate.Value) {
	f := r.farm
	all := r.merged(v)
	m := migrate.Machine{At: v.Origin}
	m.Name = name
	if !v.IsNull() {
		f.Fields(v, r.fields(func() (string, *pools.Tag) {
			tag, t := f.Tag("node-" + name)
			m.Tags = append(slices.Clip(m.Tags), tag)
			return tag, t
		}))
	}
	own := m.Tags
	m.Tags = nil
	for _, p := range r.profilesOf(v, 0) {
		if _, ok := r.profiles[p]; !ok {
			f.Unknown(v.Get("profiles").Origin, "profile %q is not in nodeprofiles", p)
		} else if f.HasTag(tagOf(p)) {
			m.Tags = append(m.Tags, migrate.TagName(tagOf(p)))
		}
	}
	m.Tags = append(m.Tags, slices.Compact(own)...)
	if image := cmp.Or(all.Get("image name").String(), all.Get("container name").String()); image != "" {
		m.Pool = image
		if pools.IsImage(image) && f.Image == migrate.DefaultImage {
			f.PoolNamed(image).Image = image
		}
	}
	r.interfaces(&m, all)
	r.power(&m, all.Get("ipmi"))
	if len(m.Hardware) == 0 && all.Get("discoverable").Is() {
		f.LeftOut(v.Origin, "node %s is discoverable: it takes the first unknown machine. Boot that one, and give it the name (drover unknown)", name)
		return
	}
	f.Add(m)
}

// interfaces reads the network cards. The address is that of the primary network: the one
// that is named, or default, or the first.
func (r *reader) interfaces(m *migrate.Machine, all *migrate.Value) {
	devices := all.Get("network devices")
	if !devices.IsMap() {
		if !devices.IsNull() {
			r.farm.Unknown(devices.Origin, "keys with values are expected here")
		}
		return
	}
	primary := primaryOf(all, devices)
	for _, p := range devices.Pairs {
		if hw := p.Value.Get("hwaddr").String(); hw != "" && (p.Key == primary || p.Value.Get("ipaddr").String() == "") {
			m.Hardware = append(m.Hardware, hw)
		}
		if p.Key == primary {
			r.primary(m, p.Value)
		} else if p.Value.Get("ipaddr").String() != "" {
			r.farm.Lost(p.Value.Origin, "network %q of node %s: drover boots over one network; configure others with files for netplan or networkd of a tag", p.Key, m.Name)
		}
		if kind := p.Value.Get("type").String(); kind != "" && !strings.EqualFold(kind, "ethernet") {
			r.farm.Lost(p.Value.Origin, "network %q of type %s: configure it with files for netplan or networkd of a tag", p.Key, kind)
		}
	}
}

// primaryOf returns the name of the network that a node boots from: the one that is named, in
// the node or by a mark of its own, or default, or the first.
func primaryOf(all, devices *migrate.Value) string {
	if name := all.Get("primary network").String(); devices.Get(name) != nil {
		return name
	}
	for _, p := range devices.Pairs {
		if p.Value.Get("primary").Is() {
			return p.Key
		}
	}
	if devices.Get("default") == nil && len(devices.Pairs) > 0 {
		return devices.Pairs[0].Key
	}
	return "default"
}

// primary reads the network that a node boots from.
func (r *reader) primary(m *migrate.Machine, v *migrate.Value) {
	f := r.farm
	parse := func(key string) netip.Addr {
		text, _, _ := strings.Cut(v.Get(key).String(), "/")
		a, err := netip.ParseAddr(text)
		if err != nil && text != "" {
			f.Unknown(v.Get(key).Origin, "%q is no address", text)
		}
		return a
	}
	m.IP, m.IP6 = parse("ipaddr"), parse("ipaddr6")
	if !m.IP.IsValid() {
		m.IP = parse("ipcidr")
	}
	if m.IP6.IsLinkLocalUnicast() {
		m.IP6 = netip.Addr{}
	}
	bits, ok := migrate.MaskBits(parse("netmask"))
	for _, key := range []string{"ipaddr", "ipcidr"} {
		if p, err := netip.ParsePrefix(v.Get(key).String()); err == nil && p.Addr().Is4() {
			bits, ok = p.Bits(), true
		}
	}
	gateway, netmask := v.Get("gateway"), v.Get("netmask")
	switch {
	case m.IP.Is4() && ok:
		n := f.Network(netip.PrefixFrom(m.IP, bits), v.Origin)
		if gateway.IsPlain() {
			r.gateway(m, n, gateway.Origin, parse("gateway"))
		}
	case netmask.String() != "" && !ok:
		f.Unknown(netmask.Origin, "%q is no mask of a network", netmask)
	case gateway.String() != "" && !ok:
		f.Lost(gateway.Origin, "the gateway of a network without a netmask (name it with --subnet, and write its router)")
	}
	if m.IP6.IsValid() {
		if p, err := netip.ParsePrefix(m.IP6.String() + "/" + cmp.Or(v.Get("prefixlen6").String(), "64")); err == nil {
			f.Network(p, v.Origin)
		}
	}
	f.Fields(v, migrate.Readers{"type": migrate.Skip, "onboot": migrate.Skip, "device": migrate.Skip, "hwaddr": migrate.Skip, "ipaddr": migrate.Skip,
		"ipaddr6": migrate.Skip, "netmask": migrate.Skip, "gateway": migrate.Skip, "gateway6": migrate.Skip, "prefixlen6": migrate.Skip, "primary": migrate.Skip,
		"mtu": f.NoCounterpart("the MTU of one network card (DHCP option mtu of a tag is for all its nodes)"), "tags": f.NoCounterpart("variables of overlays"),
		"ipcidr": migrate.Skip, "prefix": migrate.Skip, "default": migrate.Skip})
}

// gateway makes a gateway that of the network, or of the node if the network has another.
func (r *reader) gateway(m *migrate.Machine, n *migrate.Network, at pools.Origin, gateway netip.Addr) {
	if !gateway.IsValid() {
		return
	}
	scope := &n.Scope
	if known := n.Options["router"]; known != nil && !slices.Equal(known, pools.Strings{gateway.String()}) {
		scope = r.farm.MachineScope(m)
	} else if known != nil {
		return
	}
	r.farm.Set(scope, migrate.Option{At: at, Code: 3, Values: []string{gateway.String()}})
}

// power reads the management processor. Its password is never written.
func (r *reader) power(m *migrate.Machine, v *migrate.Value) {
	address := v.Get("ipaddr").String()
	if address == "" {
		return
	}
	m.Power = &pools.NodePower{Driver: pools.IPMI, Address: address, User: v.Get("username").String(), PasswordFile: "ipmi.pass"}
	for _, p := range v.Pairs {
		if p.Value.String() != "" && !slices.Contains([]string{"ipaddr", "username", "password", "netmask", "gateway", "write"}, p.Key) {
			r.farm.Lost(p.Value.Origin, "a detail of IPMI: drover uses lanplus and port 623")
		}
	}
	r.farm.Taken(v.Origin, "pools[].nodes[].power; put the password into ipmi.pass, beside the config", address)
}

// server reads warewulf.conf.
func (r *reader) server(v *migrate.Value) {
	f := r.farm
	about := f.NoCounterpart("it is of the server Warewulf, or of services that it configures")
	readers := migrate.Readers{"ipaddr": migrate.Skip, "netmask": migrate.Skip, "network": migrate.Skip, "dhcp": migrate.Skip, "WW_INTERNAL": migrate.Skip}
	for _, key := range []string{"ipaddr6", "fqdn", "warewulf", "tftp", "dns", "nfs", "ssh", "container mounts", "image mounts", "paths", "api",
		"wwclient", "hostfile", "prefixlen6", "ignition"} {
		readers[key] = about
	}
	f.Fields(v, readers)
	bits, ok := mask(v)
	base, err := netip.ParseAddr(cmp.Or(v.Get("network").String(), strings.Split(v.Get("ipaddr").String(), "/")[0]))
	if !ok || err != nil {
		f.Lost(v.Origin, "the network of the server is not named")
		return
	}
	n := f.Network(netip.PrefixFrom(base, bits), v.Origin)
	f.Taken(v.Origin, "subnets", n.Prefix)
	dhcp := v.Get("dhcp")
	first, err1 := netip.ParseAddr(dhcp.Get("range start").String())
	last, err2 := netip.ParseAddr(dhcp.Get("range end").String())
	if err1 == nil && err2 == nil && dhcp.Get("enabled").String() != "false" {
		f.CatchAll(migrate.CatchAll{At: dhcp.Origin, Pool: pools.Pool{Range: pools.Range{First: first, Last: last}}})
	}
}

// mask returns the length of the prefix of the server's network.
func mask(v *migrate.Value) (int, bool) {
	if p, err := netip.ParsePrefix(v.Get("ipaddr").String()); err == nil {
		return p.Bits(), true
	}
	a, err := netip.ParseAddr(v.Get("netmask").String())
	if err != nil {
		return 0, false
	}
	return migrate.MaskBits(a)
}
