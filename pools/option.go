package pools

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// optionKind is how the text of a DHCP option becomes bytes.
type optionKind int

const (
	kindGuess   optionKind = iota // addresses if all values are, else text
	kindText                      // RFC 2132: NVT ASCII
	kindIPs                       // one or more IPv4 addresses
	kindPairs                     // pairs of IPv4 addresses
	kindUint8                     //
	kindUint16                    //
	kindUint32                    //
	kindInt32                     //
	kindBool                      // true, false
	kindDomains                   // RFC 3397: domain names, not compressed
	kindRoutes                    // RFC 3442: 10.0.0.0/8=10.28.0.1
	kindHex                       // 0a:0b or 0a0b
)

type optionSpec struct {
	code uint8
	name string
	kind optionKind
}

// optionSpecs are the options that have a name in a config. The names are
// those of dnsmasq, where it has one.
func optionSpecs() []optionSpec {
	return []optionSpec{
		{2, "time-offset", kindInt32}, {3, "router", kindIPs}, {4, "time-server", kindIPs},
		{6, "dns-server", kindIPs}, {7, "log-server", kindIPs}, {9, "lpr-server", kindIPs},
		{15, "domain-name", kindText}, {16, "swap-server", kindIPs}, {17, "root-path", kindText},
		{18, "extension-path", kindText}, {19, "ip-forward-enable", kindBool}, {23, "default-ttl", kindUint8},
		{26, "mtu", kindUint16}, {28, "broadcast", kindIPs}, {33, "static-route", kindPairs},
		{40, "nis-domain", kindText}, {41, "nis-server", kindIPs}, {42, "ntp-server", kindIPs},
		{43, "vendor-encap", kindHex}, {44, "netbios-ns", kindIPs}, {45, "netbios-dd", kindIPs},
		{46, "netbios-nodetype", kindUint8}, {69, "smtp-server", kindIPs}, {70, "pop3-server", kindIPs},
		{100, "posix-timezone", kindText}, {101, "tzdb-timezone", kindText}, {108, "ipv6-only", kindUint32},
		{114, "captive-portal", kindText}, {119, "domain-search", kindDomains},
		{121, "classless-static-route", kindRoutes}, {124, "vi-vendor-class", kindHex}, {125, "vi-vendor", kindHex},
		{150, "tftp-server-address", kindIPs}, {252, "wpad", kindText},
	}
}

// ownOptions are those that the protocol or drover itself sets, with the
// remedy for who wants to.
func ownOptions() map[uint8]string {
	return map[uint8]string{
		0: "", 1: "it follows from the subnet's cidr", 12: "it is the node's name", 50: "", 51: "set lease in the pool or subnet",
		52: "", 53: "", 54: "", 55: "", 56: "", 57: "", 58: "", 59: "", 60: "", 61: "",
		66: "it is server.address", 67: "it is the loader for the node's firmware", 77: "", 82: "", 93: "", 94: "", 97: "", 255: "",
	}
}

// optionTable finds options by what the operator calls them.
type optionTable struct {
	byName map[string]optionSpec
	byCode map[uint8]optionSpec
	own    map[uint8]string
}

func newOptionTable() *optionTable {
	t := &optionTable{byName: map[string]optionSpec{}, byCode: map[uint8]optionSpec{}, own: ownOptions()}
	for _, s := range optionSpecs() {
		t.byName[s.name], t.byCode[s.code] = s, s
	}
	return t
}

// parse turns one entry of dhcpOptions into an option, or a part of one. The
// hint is for the operator when err is not nil.
func (t *optionTable) parse(key string, values []string) (o optionPart, hint string, err error) {
	spec, part, ok := t.find(key)
	if !ok {
		return o, knownHint(key, keys(t.byName), "give its number from 1 to 254"), fmt.Errorf("unknown DHCP option %q", key)
	}
	if remedy, own := t.own[spec.code]; own {
		return o, cmp.Or(remedy, "DHCP itself needs it"), fmt.Errorf("DHCP option %s is not yours to set", key)
	}
	at, err := partOf(spec.code, part)
	if err != nil {
		return o, "write 43.6, 125.311.1 or 124.311", fmt.Errorf("DHCP option %s: %w", key, err)
	}
	limit := 1024
	if part != "" {
		spec.kind, limit = kindGuess, 255
	}
	data, err := encodeOption(spec.kind, values)
	if err != nil {
		return o, "see docs/config.md for what each option takes", fmt.Errorf("DHCP option %s: %w", key, err)
	}
	if len(data) == 0 || len(data) > limit {
		return o, "shorten it, or write it as hex:", fmt.Errorf("DHCP option %s: %d bytes on the wire; want 1 to %d", key, len(data), limit)
	}
	return optionPart{optionAt: at, name: spec.name, text: strings.Join(values, ", "), data: data}, "", nil
}

// find splits a key into the option that it names and the part of it: 43.6 is
// sub-option 6 of option 43.
func (t *optionTable) find(key string) (spec optionSpec, part string, ok bool) {
	if spec, ok = t.byName[strings.TrimPrefix(key, "option:")]; ok {
		return spec, "", true
	}
	key, part, _ = strings.Cut(key, ".")
	if spec, ok = t.byName[key]; ok {
		return spec, part, true
	}
	n, err := strconv.ParseUint(key, 10, 8)
	if err != nil {
		return spec, part, false
	}
	if spec, ok = t.byCode[uint8(n)]; !ok {
		spec = optionSpec{code: uint8(n)}
	}
	return spec, part, true
}

// code is the number of the option that a key names, in decimal.
func (t *optionTable) code(key string) string {
	spec, _, _ := t.find(key)
	return strconv.Itoa(int(spec.code))
}

// encodeOption gives the bytes of RFC 2132, 3397 and 3442. A single value can
// say what it is: hex:0a0b, text:7, uint8:7, uint16:7, uint32:7.
func encodeOption(kind optionKind, values []string) ([]byte, error) {
	if len(values) == 1 {
		for prefix, k := range map[string]optionKind{"hex:": kindHex, "text:": kindText,
			"uint8:": kindUint8, "uint16:": kindUint16, "uint32:": kindUint32} {
			if v, ok := strings.CutPrefix(values[0], prefix); ok {
				kind, values = k, []string{v}
			}
		}
	}
	if kind != kindText && kind != kindHex {
		values = splitValues(values)
	}
	switch kind {
	case kindGuess:
		if b, err := encodeAddresses(values); err == nil {
			return b, nil
		}
		return []byte(strings.Join(values, ",")), nil
	case kindText:
		return []byte(strings.Join(values, ",")), nil
	case kindIPs:
		return encodeAddresses(values)
	case kindPairs:
		if len(values)%2 != 0 {
			return nil, errors.New("pairs of addresses are wanted")
		}
		return encodeAddresses(values)
	case kindDomains:
		return encodeEach(values, appendDomain)
	case kindRoutes:
		return encodeEach(values, appendRoute)
	case kindHex:
		digits := strings.Join(values, "")
		b, err := hex.DecodeString(strings.NewReplacer(":", "", " ", "").Replace(digits))
		if err != nil {
			return nil, fmt.Errorf("%q is not bytes in hex", digits)
		}
		return b, nil
	}
	if len(values) != 1 {
		return nil, errors.New("one value is wanted")
	}
	return encodeNumber(kind, values[0])
}

// splitValues lets "a, b" stand for [a, b], as dnsmasq does.
func splitValues(values []string) []string {
	var out []string
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			out = append(out, strings.TrimSpace(part))
		}
	}
	return out
}

func encodeEach(values []string, one func([]byte, string) ([]byte, error)) (b []byte, err error) {
	for _, v := range values {
		if b, err = one(b, v); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func encodeAddresses(values []string) ([]byte, error) {
	return encodeEach(values, func(b []byte, v string) ([]byte, error) {
		a, err := netip.ParseAddr(v)
		if err != nil || !a.Is4() {
			return nil, fmt.Errorf("%q is not an IPv4 address", v)
		}
		return append(b, a.AsSlice()...), nil
	})
}

func encodeNumber(kind optionKind, v string) ([]byte, error) {
	if kind == kindBool {
		on, err := strconv.ParseBool(v)
		if err != nil {
			return nil, fmt.Errorf("%q is neither true nor false", v)
		}
		if on {
			return []byte{1}, nil
		}
		return []byte{0}, nil
	}
	if kind == kindInt32 {
		n, err := strconv.ParseInt(v, 0, 32)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number of 32 bits", v)
		}
		return binary.BigEndian.AppendUint32(nil, uint32(int32(n))), nil
	}
	bits := map[optionKind]int{kindUint8: 8, kindUint16: 16, kindUint32: 32}[kind]
	n, err := strconv.ParseUint(v, 0, bits)
	if err != nil {
		return nil, fmt.Errorf("%q is not a positive number of %d bits", v, bits)
	}
	return binary.BigEndian.AppendUint32(nil, uint32(n))[4-bits/8:], nil
}

// appendDomain writes a name as RFC 1035 labels.
func appendDomain(b []byte, name string) ([]byte, error) {
	name = strings.TrimSuffix(name, ".")
	if !isDomain(name) {
		return nil, fmt.Errorf("%q is not a domain name", name)
	}
	for label := range strings.SplitSeq(name, ".") {
		b = append(append(b, byte(len(label))), label...)
	}
	return append(b, 0), nil
}

// appendRoute writes destination=gateway: the prefix length, the significant
// bytes of the destination, the gateway (RFC 3442).
func appendRoute(b []byte, route string) ([]byte, error) {
	to, via, ok := strings.Cut(route, "=")
	p, err1 := netip.ParsePrefix(strings.TrimSpace(to))
	gw, err2 := netip.ParseAddr(strings.TrimSpace(via))
	if !ok || err1 != nil || err2 != nil || !p.Addr().Is4() || !gw.Is4() || p != p.Masked() {
		return nil, fmt.Errorf("%q is not a route (write 10.0.0.0/8=10.28.0.1)", route)
	}
	b = append(b, byte(p.Bits()))
	b = append(b, p.Addr().AsSlice()[:(p.Bits()+7)/8]...)
	return append(b, gw.AsSlice()...), nil
}
