// Package warewulf reads nodes.conf and warewulf.conf of Warewulf 4.
//
// Nodes, networks and the range of the server are taken over, with what nodes get from their
// profiles. Nodes with one image are in one pool. The address of a node is that of its
// primary network.
package warewulf

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"drover/migrate"
	"drover/pools"
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

// nodes reads the nodes, each with the values of its profiles.
func (r *reader) nodes(v *migrate.Value) {
	if list := v.Get("nodeprofiles"); list.IsMap() {
		for _, p := range list.Pairs {
			r.profiles[p.Key] = p.Value
			for _, key := range []string{"kernel", "resources", "runtime overlay", "system overlay", "disks", "filesystems", "init", "root", "tags", "keys"} {
				if inner := p.Value.Get(key); inner != nil {
					r.farm.NotTaken(inner.Origin, "what an image of Warewulf does on a node: write kernelArgs, files, units, scripts and mounts of a tag")
				}
			}
		}
	}
	if list := v.Get("nodes"); list.IsMap() {
		for _, p := range list.Pairs {
			r.node(p.Key, p.Value)
		}
	}
}

// merged returns a node with the values of its profiles: later ones win, and the node does.
func (r *reader) merged(v *migrate.Value) *migrate.Value {
	all := &migrate.Value{}
	for _, name := range r.profilesOf(v) {
		if p := r.profiles[name]; p.IsMap() {
			all = migrate.Merge(all, p)
		}
	}
	if v.IsMap() {
		all = migrate.Merge(all, v)
	}
	return all
}

// maxProfiles bounds the profiles of a node, with those that profiles have.
const maxProfiles = 1000

// profilesOf returns the names of the profiles, each after those that it has itself. Profiles
// may name each other.
func (r *reader) profilesOf(v *migrate.Value) (names []string) {
	seen := map[string]bool{}
	var visit func(v *migrate.Value)
	visit = func(v *migrate.Value) {
		for _, name := range v.Get("profiles").Strings() {
			if strings.HasPrefix(name, "~") || seen[name] || len(seen) >= maxProfiles {
				continue
			}
			seen[name] = true
			visit(r.profiles[name])
			names = append(names, name)
		}
	}
	visit(v)
	return names
}

// node reads a node.
func (r *reader) node(name string, v *migrate.Value) {
	f := r.farm
	all := r.merged(v)
	m := migrate.Machine{At: v.Origin}
	m.Name = name
	if list := v.Get("profiles"); list != nil {
		f.Itself(list.Origin, "the node has the values of its profiles")
	}
	for _, p := range r.profilesOf(v) {
		if _, ok := r.profiles[p]; !ok {
			f.Unknown(v.Get("profiles").Origin, "profile %q is not in nodeprofiles", p)
		}
	}
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
	for _, key := range []string{"ipaddr", "ipcidr", "ipaddr6"} {
		at := v.Get(key)
		text := at.String()
		if key == "ipaddr6" && text != "" && !strings.Contains(text, "/") {
			text += "/" + cmp.Or(v.Get("prefixlen6").String(), "64")
		}
		if text != "" {
			r.farm.Addresses(m, at.Origin, []string{text})
		}
	}
	if mask := v.Get("netmask"); mask.String() != "" && m.IP.Is4() {
		r.farm.InNetwork(m, mask.Origin, mask.String())
	}
	if gateway := v.Get("gateway"); gateway.String() != "" {
		r.farm.Router(m, gateway.Origin, gateway.String())
	}
}

// power reads the management processor. Its password is never written.
func (r *reader) power(m *migrate.Machine, v *migrate.Value) {
	address := v.Get("ipaddr").String()
	if address == "" {
		return
	}
	m.Power = &pools.NodePower{Driver: pools.IPMI, Address: address, User: v.Get("username").String(), PasswordFile: "ipmi.pass"}
	r.farm.Taken(v.Origin, "pools[].nodes[].power; put the password into ipmi.pass, beside the config", address)
}

// server reads warewulf.conf.
func (r *reader) server(v *migrate.Value) {
	f := r.farm
	base, err := netip.ParsePrefix(v.Get("ipaddr").String())
	mask, _ := netip.ParseAddr(v.Get("netmask").String()) // the zero Addr is no mask
	if bits, ok := migrate.MaskBits(mask); ok && err != nil {
		base, err = netip.ParsePrefix(fmt.Sprintf("%s/%d", cmp.Or(v.Get("network").String(), v.Get("ipaddr").String()), bits))
	}
	if err != nil {
		f.Lost(v.Origin, "the network of the server is not named")
		return
	}
	n := f.Network(base, v.Origin)
	f.Taken(v.Origin, "subnets", n.Prefix)
	dhcp := v.Get("dhcp")
	first, err1 := netip.ParseAddr(dhcp.Get("range start").String())
	last, err2 := netip.ParseAddr(dhcp.Get("range end").String())
	on, template := dhcp.Get("enabled"), dhcp.Get("template")
	if err1 == nil && err2 == nil && (on.IsNull() || on.Is()) {
		access := migrate.Access{}
		if t := template.String(); t != "" && t != "default" || template.IsMap() || template.IsList() {
			access.Closed = "dhcp template " + t
		}
		f.Land(migrate.CatchAll{At: dhcp.Origin, Pool: pools.Pool{Range: pools.Range{First: first, Last: last}}}, access)
	}
}
