package migrate

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"drover/pools"
)

// Machine is a machine of the other config. Name is any text, and Hardware has its MACs as
// they are written there.
type Machine struct {
	pools.Node
	At       pools.Origin
	Pool     string // default: that of the Options
	Hardware []string
	scope    *Scope // with options of its own; nil: none
}

// String returns the name of the machine, or what else it has.
func (m *Machine) String() string {
	name := m.Name
	if name == "" && len(m.MACs) > 0 {
		name = m.MACs[0].String()
	}
	if name == "" && m.IP.IsValid() {
		name = m.IP.String()
	}
	return cmp.Or(name, m.Match.ClientID, m.Match.CircuitID, "without a name")
}

// Add adds a machine. Finish makes a node of it.
func (f *Farm) Add(m Machine) {
	for _, text := range m.Hardware {
		mac, err := ParseHardware(text)
		if err != nil {
			f.Unknown(m.At, "%v", err)
			continue
		}
		if !slices.Contains(m.MACs, mac) {
			m.MACs = append(m.MACs, mac)
		}
	}
	if len(m.MACs) > 0 && !m.Match.IsZero() {
		f.Lost(m.At, "the identifier beside the MAC: drover knows the machine by its MAC")
		m.Match = pools.Match{}
	}
	if m.scope != nil && len(m.scope.Options) > 0 {
		m.DHCPOptions = m.scope.Options
	}
	f.machines = append(f.machines, &m)
}

// Addresses gives a machine its addresses, one of each family. They may have the length of their
// network.
func (f *Farm) Addresses(m *Machine, at pools.Origin, texts []string) {
	for _, text := range texts {
		a, err := netip.ParseAddr(strings.TrimSpace(text))
		p, err2 := netip.ParsePrefix(text)
		if err != nil && err2 == nil {
			a, err = p.Addr(), nil
		}
		switch {
		case err != nil:
			f.Unknown(at, "%q is no address (names are not looked up)", text)
		case a == m.IP || a == m.IP6: // of another card
		case a.Is4() && !m.IP.IsValid():
			m.IP = a
		case a.Is6() && a.IsLinkLocalUnicast():
			f.Itself(at, "address %s: hosts make those of their link", a)
			continue
		case a.Is6() && !m.IP6.IsValid():
			m.IP6 = a
		default:
			f.Lost(at, "address %s: a node has one address of each family", a)
			continue
		}
		if p.IsValid() {
			f.Network(p, at)
		}
	}
}

// InNetwork adds the network of a machine's address, by its mask or the length of its prefix.
func (f *Farm) InNetwork(m *Machine, at pools.Origin, mask string) {
	bits, _ := strconv.Atoi(strings.TrimPrefix(mask, "/")) // 0 is no length
	if a, err := netip.ParseAddr(mask); err == nil {
		if n, ok := MaskBits(a); ok {
			bits = n
		}
	}
	if p, err := m.IP.Prefix(bits); err == nil && bits > 0 {
		f.Network(p, at)
	} else {
		f.Unknown(at, "%q is no mask of a network", mask)
	}
}

// Router gives a network its router, or a machine if its network has another one.
func (f *Farm) Router(m *Machine, at pools.Origin, text string) {
	router, err := netip.ParseAddr(text)
	n, o := f.NetworkOf(router), Option{At: at, Code: 3, Values: []string{text}}
	switch {
	case err != nil:
		f.Unknown(at, "%q is no address", text)
	case n == nil:
		f.Lost(at, "router %s is in no network that is named (name it with --subnet)", router)
	case n.Options["router"] == nil:
		f.Set(&n.Scope, o)
	case !slices.Equal(n.Options["router"], o.Values):
		f.Set(f.MachineScope(m), o)
	}
}

// DUID gives a machine the MAC that its DUID holds, if it holds one. drover knows no others.
func (f *Farm) DUID(m *Machine, at pools.Origin, duid string) {
	digits := strings.TrimPrefix(duid, "hex:")
	if len(digits) == 28 && strings.HasPrefix(digits, "00010001") || len(digits) == 20 && strings.HasPrefix(digits, "00030001") {
		m.Hardware = append(m.Hardware, digits[len(digits)-12:])
		f.Taken(at, "pools[].nodes[].macs; the MAC in the DUID")
		return
	}
	f.Lost(at, "a DUID without a MAC: drover knows a machine by its MAC, whatever its DUID")
}

// ParseHardware reads a MAC in the forms that other servers write: pairs that lack a
// leading zero, and a type of hardware in front, as in 01-52:54:00:12:34:56.
func ParseHardware(text string) (pools.MAC, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	if kind, rest, ok := strings.Cut(s, "-"); ok && (kind == "01" || kind == "1") && strings.Count(rest, ":") == 5 {
		s = rest
	}
	if parts := strings.FieldsFunc(s, func(r rune) bool { return r == ':' || r == '-' }); len(parts) == 6 {
		for i, p := range parts {
			if len(p) == 1 {
				parts[i] = "0" + p
			}
		}
		s = strings.Join(parts, ":")
	}
	return pools.ParseMAC(s)
}
