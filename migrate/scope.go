package migrate

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"drover/pools"
	"drover/pools/option"
)

// Scope is a place of the other config that has DHCP options: all machines, a network, a
// tag.
type Scope struct {
	Name    string // of the counterpart, for the report: tags.red
	Options map[string]pools.Strings
	DNS6    []netip.Addr // of DHCPv6
	Domain6 string       // of DHCPv6
	machine *Machine
	homes   []string // the places of the config that get the options
	heirs   []*Scope // that inherited them
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
	if file != "" {
		f.Itself(at, "boot file %q: drover sends each firmware its own loader, and boots the image of the pool", file)
	}
}

// BootServer notes the server that has the boot file.
func (f *Farm) BootServer(at pools.Origin, server string) {
	if server != "" {
		f.Itself(at, "boot server %s: nodes boot from this server (subnets[].address names another one)", server)
	}
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
		f.Taken(at, "pools[].nodes[].name", Label(strings.Split(name, ".")[0]))
	}
}

// Option is a DHCP option of the other config.
type Option struct {
	At     pools.Origin
	Code   uint8
	Part   string   // the number of a sub-option: 6 of 43.6, 311.1 of 125.311.1
	Values []string // as drover writes them
	Forced bool     // sent unasked
}

// IsBoot reports whether the option says what to boot, from where.
func (o Option) IsBoot() bool { return o.Part == "" && (o.Code == 66 || o.Code == 67) }

// key returns the key of dhcpOptions.
func (o Option) key() string {
	if o.Forced && !option.Reserved(o.Code) {
		o.Forced = false
		return option.Force + o.key()
	}
	if o.Part != "" {
		return strconv.Itoa(int(o.Code)) + "." + o.Part
	}
	return cmp.Or(nameOf(o.Code), strconv.Itoa(int(o.Code)))
}

// follows notes the options that follow from other values of drover's config. Of the mask and the
// broadcast address, which follow from the network, it notes once the networks are known whether
// they are those of one.
func (f *Farm) follows(o Option) bool {
	value := strings.Join(o.Values, ",")
	switch o.Code {
	case 1, 28:
		f.derived = append(f.derived, o)
	case 54:
		f.Itself(o.At, "it is the server's own address")
	case 58, 59:
		f.NotTaken(o.At, "%s: T1 is half of the lease, and T2 seven eighths", value)
	default:
		return false
	}
	return true
}

// derive notes the masks and the broadcast addresses.
func (f *Farm) derive() {
	for _, o := range f.derived {
		a, _ := netip.ParseAddr(strings.Join(o.Values, ",")) // the zero Addr is that of no network
		bits, _ := MaskBits(a)
		if slices.ContainsFunc(f.networks, func(n *Network) bool {
			return o.Code == 28 && LastOf(n.Prefix) == a || o.Code == 1 && n.Prefix.Addr().Is4() && n.Prefix.Bits() == bits
		}) {
			f.Itself(o.At, "it follows from the network")
		} else {
			f.NotTaken(o.At, "%s is that of no network: drover sends those of the networks that it has", a)
		}
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
	switch {
	case o.Part == "" && o.Code == 12:
		f.hostName(s, o.At, strings.TrimPrefix(strings.Join(o.Values, ","), "text:"))
	case o.Part == "" && o.Code == 66:
		f.BootServer(o.At, strings.TrimPrefix(strings.Join(o.Values, " "), "text:"))
	case o.Part == "" && o.Code == 67:
		f.BootFile(o.At, strings.TrimPrefix(strings.Join(o.Values, ""), "text:"))
	case o.Part == "" && f.follows(o):
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
		plain := strings.TrimPrefix(key, option.Force)
		delete(s.Options, plain)
		delete(s.Options, option.Force+plain)
		s.Options[key] = o.Values
		f.takenOption(s, o.At, key, o.Values)
	}
}

// Option6 gives a scope an option of DHCPv6: name servers and domain, which a subnet has.
func (f *Farm) Option6(s *Scope, at pools.Origin, name string, values []string) {
	switch {
	case len(values) > 0 && slices.Contains([]string{"dns-servers", "name-servers", "dns-server", "23"}, name):
		s.DNS6 = nil
		for _, text := range values {
			a, err := netip.ParseAddr(strings.Trim(text, "[]"))
			if err != nil || a.IsUnspecified() {
				f.Lost(at, "%s is the server's own address there, or none (write the address in dns of the subnet)", text)
				continue
			}
			s.DNS6 = append(s.DNS6, a)
			f.Taken(at, "subnets[].dns", a)
		}
	case len(values) > 0 && (name == "domain-search" || name == "24"):
		s.Domain6 = strings.TrimSuffix(values[0], ".")
		f.Taken(at, "subnets[].domain", s.Domain6)
	default:
		f.Lost(at, "an option of DHCPv6 (dns and domain of an IPv6 subnet, or dhcpOptions of a tag: option6:NUMBER)")
	}
}

// ParseSeconds reads a lease time in seconds, and notes at which path the config has it.
func (f *Farm) ParseSeconds(at pools.Origin, text, path string) (pools.Duration, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		f.Unknown(at, "%q is no number of seconds", text)
		return 0, false
	}
	d := Lease(time.Duration(n) * time.Second)
	f.Taken(at, path, d)
	return d, true
}

// Inherit gives a scope the options of an outer one that it does not have.
func (s *Scope) Inherit(outer *Scope) {
	outer.heirs = append(outer.heirs, s)
	for key, values := range outer.Options {
		if _, own := s.Options[key]; own {
			continue
		}
		if s.Options == nil {
			s.Options = map[string]pools.Strings{}
		}
		s.Options[key] = values
	}
	s.Inherit6(outer)
}

// Inherit6 gives a scope the options of DHCPv6 of an outer one that it does not have.
func (s *Scope) Inherit6(outer *Scope) {
	if len(s.DNS6) == 0 {
		s.DNS6 = outer.DNS6
	}
	s.Domain6 = cmp.Or(s.Domain6, outer.Domain6)
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
