// Package option encodes the DHCP options of a config: each is a name or a number,
// and text. [Parse] encodes one option, of DHCPv4 or, with [Prefix6], of DHCPv6.
//
// It does not know where options are set, how the options of several tags are merged,
// or how a DHCP answer carries them.
package option

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// kind is the encoding of a DHCP option.
type kind int

const (
	kindGuess   kind = iota // addresses if all values are, else text
	kindText                // RFC 2132: NVT ASCII
	kindIPs                 // one or more IPv4 addresses
	kindPairs               // pairs of IPv4 addresses
	kindUint8               //
	kindUint16              //
	kindUint32              //
	kindInt32               //
	kindBool                // true, false
	kindDomains             // RFC 3397: domain names, not compressed
	kindRoutes              // RFC 3442: 10.0.0.0/8=10.28.0.1
	kindHex                 // 0a:0b or 0a0b
	kindGuess6              // as kindGuess, of IPv6
	kindIPs6                // one or more IPv6 addresses
	kindNTP6                // RFC 5908: addresses and domain names
	kindCounted             // RFC 5970: texts, each with its length
)

type spec struct {
	code uint8
	name string
	kind kind
}

// specs returns the options that have a name in a config. The names are those of
// dnsmasq where dnsmasq has one.
func specs() []spec {
	return []spec{
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

// reserved returns the options that an operator cannot set, because the protocol or
// drover sets them. The values are remedies; "" when there is none.
func reserved() map[uint8]string {
	return map[uint8]string{
		0: "", 1: "it follows from the subnet's cidr", 12: "it is the node's name", 50: "", 51: "set lease in the pool or subnet",
		52: "", 53: "", 54: "", 55: "", 56: "", 57: "", 58: "", 59: "", 60: "", 61: "",
		66: "it is server.address", 67: "it is the loader for the node's firmware", 77: "", 82: "", 93: "", 94: "", 97: "",
		118: "clients select their subnet with it, and a server only returns it, RFC 3011", 255: "",
	}
}

// Reserved reports whether an operator cannot set an option.
func Reserved(code uint8) bool {
	_, is := reserved()[code]
	return is
}

// ID identifies an option or a sub-option. Options 43 and 175 have numbered
// sub-options (RFC 2132, section 8.4). Option 125 has them for each enterprise number,
// and option 124 has one value for each enterprise number (RFC 3925).
type ID struct {
	Code       uint8
	Part       bool   // a sub-option, not the whole option
	Enterprise uint32 // of 124 and 125
	Sub        uint8  // of 43, 125 and 175
	Class      string // the vendor class (60) that option 43 is for, with *; empty: all
	Code6      uint16 // of DHCPv6; 0: an option of DHCPv4. The other fields are then zero
}

// Value is one entry of dhcpOptions, encoded.
type Value struct {
	ID
	Name string // "ntp-server"; empty for a number without a name
	Text string // as the operator wrote it
	Data []byte // RFC 2132 encoding

	Forced bool // a client gets it though it does not ask for it
}

// parse4 encodes one entry of dhcpOptions for DHCPv4, as Parse does.
func parse4(key string, values []string) (v Value, hint string, err error) {
	s, part, ok := find(key)
	if !ok {
		return v, "", fmt.Errorf("unknown DHCP option %q", key)
	}
	if remedy, ok := reserved()[s.code]; ok {
		return v, cmp.Or(remedy, "DHCP itself needs it"), fmt.Errorf("DHCP option %s is not yours to set", key)
	}
	id, err := parseID(s.code, part)
	if err != nil {
		return v, "write 43.6, 125.311.1 or 124.311", fmt.Errorf("DHCP option %s: %w", key, err)
	}
	limit := 1024
	if id.Part {
		s.kind, limit = kindGuess, 255
	}
	data, err := encode(s.kind, values)
	if err != nil {
		return v, "see docs/config.md for what each option takes", fmt.Errorf("DHCP option %s: %w", key, err)
	}
	if len(data) == 0 || len(data) > limit {
		return v, "shorten it, or write it as hex:", fmt.Errorf("DHCP option %s: %d bytes on the wire; want 1 to %d", key, len(data), limit)
	}
	return Value{ID: id, Name: s.name, Text: strings.Join(values, ", "), Data: data}, "", nil
}

// find splits a key into an option and the number of its sub-option: 43.6 is
// sub-option 6 of option 43. The name may follow "option:", as in dnsmasq. ok is false
// for an unknown name.
func find(key string) (s spec, part string, ok bool) {
	all := specs()
	key, part, _ = strings.Cut(strings.TrimPrefix(key, "option:"), ".")
	if i := slices.IndexFunc(all, func(s spec) bool { return s.name == key }); i >= 0 {
		return all[i], part, true
	}
	n, err := strconv.ParseUint(key, 10, 8)
	if i := slices.IndexFunc(all, func(s spec) bool { return s.code == uint8(n) }); err == nil && i >= 0 {
		return all[i], part, true
	}
	return spec{code: uint8(n)}, part, err == nil
}

// Names returns the names of options, sorted. Those of DHCPv6 have Prefix6.
func Names() []string {
	var names []string
	for _, s := range specs() {
		names = append(names, s.name)
	}
	for _, s := range specs6() {
		names = append(names, Prefix6+s.name)
	}
	slices.Sort(names)
	return names
}

// parseID reads the part of a key behind its first dot.
func parseID(code uint8, part string) (ID, error) {
	id := ID{Code: code, Part: part != ""}
	if part == "" {
		return id, nil
	}
	enterprise, sub, hasSub := strings.Cut(part, ".")
	switch code {
	case 124, 125:
		n, err := strconv.ParseUint(enterprise, 10, 32)
		if err != nil {
			return id, fmt.Errorf("%q is not an enterprise number", enterprise)
		}
		id.Enterprise = uint32(n)
		if hasSub == (code == 124) {
			return id, errors.New("124 has a text for an enterprise, 125 has sub-options of an enterprise")
		}
		if code == 124 {
			return id, nil
		}
	case 43, 175:
		sub = part
	default:
		return id, errors.New("it has no sub-options")
	}
	n, err := strconv.ParseUint(sub, 10, 8)
	if err != nil || code != 125 && (n == 0 || n == 255) {
		return id, fmt.Errorf("%q is not the number of a sub-option", sub)
	}
	id.Sub = uint8(n)
	return id, nil
}

// encode returns the bytes of RFC 2132, 3397 and 3442. The prefix of a single value
// selects its encoding: hex:0a0b, text:7, uint8:7, uint16:7, uint32:7.
func encode(k kind, values []string) ([]byte, error) {
	if len(values) == 1 {
		for prefix, as := range map[string]kind{"hex:": kindHex, "text:": kindText,
			"uint8:": kindUint8, "uint16:": kindUint16, "uint32:": kindUint32} {
			if v, ok := strings.CutPrefix(values[0], prefix); ok {
				k, values = as, []string{v}
			}
		}
	}
	if k != kindText && k != kindHex && k != kindCounted {
		values = splitValues(values)
	}
	switch k {
	case kindGuess6:
		if b, err := encodeAddresses6(values); err == nil {
			return b, nil
		}
		return []byte(strings.Join(values, ",")), nil
	case kindIPs6:
		return encodeAddresses6(values)
	case kindNTP6:
		return encodeEach(values, appendNTP)
	case kindCounted:
		return encodeEach(values, appendText)
	case kindGuess, kindText:
		if b, err := encodeAddresses(values); err == nil && k == kindGuess {
			return b, nil
		}
		return []byte(strings.Join(values, ",")), nil
	case kindIPs:
		return encodeAddresses(values)
	case kindPairs:
		if len(values)%2 != 0 {
			return nil, errors.New("want pairs of addresses")
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
		return nil, errors.New("want one value")
	}
	return encodeNumber(k, values[0])
}

// splitValues splits values at commas, as dnsmasq does: "a, b" is [a, b].
func splitValues(values []string) []string {
	var out []string
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			out = append(out, strings.TrimSpace(part))
		}
	}
	return out
}

func encodeEach(values []string, appendOne func([]byte, string) ([]byte, error)) (b []byte, err error) {
	for _, v := range values {
		if b, err = appendOne(b, v); err != nil {
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

func encodeNumber(k kind, v string) ([]byte, error) {
	switch k {
	case kindBool:
		on, err := strconv.ParseBool(v)
		if err != nil {
			return nil, fmt.Errorf("%q is neither true nor false", v)
		}
		return []byte{map[bool]byte{true: 1}[on]}, nil
	case kindInt32:
		n, err := strconv.ParseInt(v, 0, 32)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number of 32 bits", v)
		}
		return binary.BigEndian.AppendUint32(nil, uint32(int32(n))), nil
	}
	bits := map[kind]int{kindUint8: 8, kindUint16: 16, kindUint32: 32}[k]
	n, err := strconv.ParseUint(v, 0, bits)
	if err != nil {
		return nil, fmt.Errorf("%q is not a positive number of %d bits", v, bits)
	}
	return binary.BigEndian.AppendUint32(nil, uint32(n))[4-bits/8:], nil
}

// appendDomain appends a name as RFC 1035 labels.
func appendDomain(b []byte, name string) ([]byte, error) {
	name = strings.TrimSuffix(name, ".")
	if !IsDomain(name) {
		return nil, fmt.Errorf("%q is not a domain name", name)
	}
	for label := range strings.SplitSeq(name, ".") {
		b = append(append(b, byte(len(label))), label...)
	}
	return append(b, 0), nil
}

// appendRoute appends destination=gateway: the prefix length, the significant bytes of
// the destination, and the gateway (RFC 3442).
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

// IsDomain reports whether s is a host or domain name of RFC 1123.
func IsDomain(s string) bool {
	if len(s) == 0 || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if len(label) == 0 || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range label {
			if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-", c) {
				return false
			}
		}
	}
	return true
}
