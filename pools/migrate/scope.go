package migrate

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"drover/pools"
	"drover/pools/option"
)

// Scope is a place of the other config that has DHCP options: all machines, a network, a
// tag.
type Scope struct {
	Name    string // of the counterpart, for the report: tags.red
	Options map[string]pools.Strings
	Loaders []pools.LoaderRule
	DNS6    []netip.Addr // of DHCPv6
	Domain6 string       // of DHCPv6
	Class   string       // the class of clients that it is for; empty: it is for all
	machine *Machine
	boot    boot
}

// MachineScope returns the place of the options of a machine.
func (f *Farm) MachineScope(m *Machine) *Scope {
	m.scope = &Scope{Name: "node", machine: m}
	return m.scope
}

// PoolScope returns the place of the options of a pool for unknown machines: a tag, if it gets
// some.
func (f *Farm) PoolScope(c *CatchAll, span pools.Range) *Scope {
	c.scope = &Scope{Name: "pool-" + span.First.String()}
	return c.scope
}

// BootFile notes the boot file of another server.
func (f *Farm) BootFile(at pools.Origin, file string) {
	f.Itself(at, "boot file %q: drover sends each firmware its own loader, and boots the image of the pool", file)
}

// BootServer notes the server that has the boot file.
func (f *Farm) BootServer(at pools.Origin, server string) {
	f.Itself(at, "boot server %s: nodes boot from this server (subnets[].address names another one)", server)
}

// hostName reads the host name that is an option.
func (f *Farm) hostName(s *Scope, at pools.Origin, name string) {
	switch m := s.machine; {
	case m == nil:
		f.NotTaken(at, "host name %q of several machines: drover's is the node's name", name)
	case m.Name != "" && m.Name != name:
		f.NotTaken(at, "host name %q: the node is named %q, and that is its host name", name, m.Name)
	default:
		m.Name = name
		f.Taken(at, "name %q of the node", name)
	}
}

// boot is the boot file of a scope.
type boot struct {
	at     pools.Origin
	file   string
	server netip.Addr
}

// Option is a DHCP option of the other config.
type Option struct {
	At     pools.Origin
	Code   uint8
	Part   string   // the number of a sub-option: 6 of 43.6, 311.1 of 125.311.1
	Values []string // as drover writes them
}

// key returns the key of dhcpOptions.
func (o Option) key() string {
	if o.Part != "" {
		return strconv.Itoa(int(o.Code)) + "." + o.Part
	}
	for _, name := range option.Names() {
		if option.Code(name) == o.Code {
			return name
		}
	}
	return strconv.Itoa(int(o.Code))
}

// setBy are the options that follow from other values of drover's config.
func setBy() map[uint8]string {
	return map[uint8]string{
		1: "the mask follows from the network", 28: "the broadcast address follows from the network",
		54: "it is the server's own address", 58: "T1 is half of the lease", 59: "T2 is seven eighths of the lease",
	}
}

// Set gives a scope an option. Those that follow from other values, and those that drover
// does not take, are noted.
func (f *Farm) Set(s *Scope, o Option) {
	key := o.key()
	if text := strings.Join(o.Values, ","); strings.ContainsFunc(text, unicode.IsControl) {
		o.Values = []string{fmt.Sprintf("hex:%x", text)} // YAML and terminals would change it
	}
	_, hint, err := option.Parse(key, o.Values)
	follows := setBy()[o.Code]
	switch {
	case o.Part == "" && o.Code == 12:
		f.hostName(s, o.At, strings.Join(o.Values, ","))
	case o.Part == "" && o.Code == 66:
		if a, err := netip.ParseAddr(strings.TrimPrefix(strings.Join(o.Values, ""), "text:")); err == nil {
			f.SetBoot(s, o.At, "", a)
			return
		}
		f.Lost(o.At, "the server that nodes boot from is that of their network (subnets[].address)")
	case o.Part == "" && o.Code == 67:
		f.SetBoot(s, o.At, strings.TrimPrefix(strings.Join(o.Values, ""), "text:"), netip.Addr{})
	case o.Part == "" && follows != "":
		f.Itself(o.At, "%s", follows)
	case o.Part == "" && o.Code == 51:
		f.Lost(o.At, "the lease time of an option (write lease: in the pool or the subnet)")
	case option.Reserved(o.Code):
		f.Lost(o.At, "%v (%s)", err, hint)
	case err != nil && hint != "":
		f.Unknown(o.At, "%v (%s)", err, hint)
	case err != nil:
		f.Unknown(o.At, "%v", err)
	default:
		if s.Options == nil {
			s.Options = map[string]pools.Strings{}
		}
		s.Options[key] = o.Values
		f.Taken(o.At, "%s: dhcpOptions.%s", s.Name, key)
	}
}

// SetBoot gives a scope a boot file, a server for it, or both.
func (f *Farm) SetBoot(s *Scope, at pools.Origin, file string, server netip.Addr) {
	s.boot.at = at
	if file != "" {
		s.boot.file = file
	}
	if server.IsValid() && !server.IsUnspecified() {
		s.boot.server = server
	}
}

// Loader gives a scope the boot file of one kind of firmware.
func (f *Farm) Loader(s *Scope, at pools.Origin, rule pools.LoaderRule) {
	if !f.KeepBoot {
		f.ownLoader(at, rule.Loader)
		return
	}
	if !rule.Server.IsValid() || !strings.Contains(rule.Loader, "://") {
		rule.Loader = strings.TrimLeft(rule.Loader, "/") // of the root of TFTP
	}
	if rule.Match().IsZero() { // the last rule that matches wins
		s.Loaders = slices.Insert(s.Loaders, 0, rule)
	} else {
		s.Loaders = append(s.Loaders, rule)
	}
	f.Taken(at, "%s: a rule of loaders for %q%s", s.Name, rule.Loader, inLoaders(rule.Loader, rule.Server))
}

func (f *Farm) ownLoader(at pools.Origin, file string) {
	f.Lost(at, "boot file %q: drover sends each firmware its own loader, and boots the image of the pool (--keep-boot keeps the file, as a rule of loaders)", file)
}

// inLoaders says where a file must be.
func inLoaders(file string, server netip.Addr) string {
	if server.IsValid() || strings.Contains(file, "://") {
		return ""
	}
	return " (copy the file into the loaders directory)"
}

// bootRule makes a rule of the boot file of a scope: the first one, for all firmware.
func (f *Farm) bootRule(s *Scope) {
	b := s.boot
	switch {
	case b.file == "" && !b.server.IsValid():
	case b.file == "" && !f.KeepBoot:
		f.Lost(b.at, "boot server %s: nodes boot from this server (subnets[].address names another one)", b.server)
	case b.file == "":
		f.Lost(b.at, "boot server %s without a boot file (a rule of loaders names both)", b.server)
	default:
		f.Loader(s, b.at, pools.LoaderRule{Loader: b.file, Server: b.server})
	}
}

// Inherit gives a scope the options of an outer one that it does not have.
func (s *Scope) Inherit(outer *Scope) {
	for key, values := range outer.Options {
		if _, own := s.Options[key]; own {
			continue
		}
		if s.Options == nil {
			s.Options = map[string]pools.Strings{}
		}
		s.Options[key] = values
	}
	s.Loaders = append(slices.Clone(outer.Loaders), s.Loaders...)
	if s.boot.file == "" {
		s.boot = outer.boot
	}
	if len(s.DNS6) == 0 {
		s.DNS6 = outer.DNS6
	}
	s.Domain6 = cmp.Or(s.Domain6, outer.Domain6)
}

// Own gives a machine the options of a scope. A boot file becomes a tag of its own, since
// nodes have none.
func (f *Farm) Own(m *Machine, s *Scope) {
	if len(s.Options) > 0 {
		m.DHCPOptions = s.Options
	}
	switch {
	case s.boot.file == "" && !s.boot.server.IsValid():
	case !f.KeepBoot || s.boot.file == "":
		f.bootRule(s)
	default:
		name, t := f.tag("boot-" + s.boot.file)
		t.boot = s.boot
		m.Tags = append(m.Tags, name)
	}
}

// take removes an option from a scope, and returns its values as addresses; nil if one is
// no address, and the option stays then.
func (s *Scope) take(key string) (all []netip.Addr) {
	for text := range strings.SplitSeq(strings.Join(s.Options[key], ","), ",") {
		a, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil {
			return nil
		}
		all = append(all, a)
	}
	delete(s.Options, key)
	return all
}

// Octets returns text as drover writes bytes: plain, or as hex:0a0b if it has characters
// that do not print.
func Octets(b []byte) string {
	if len(b) > 0 && !slices.ContainsFunc(b, func(c byte) bool { return c < 0x20 || c > 0x7e || c == '*' }) {
		return string(b)
	}
	return fmt.Sprintf("hex:%x", b)
}
