package option

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Prefix6 begins the key of an option of DHCPv6, as in dnsmasq: option6:ntp-server.
const Prefix6 = "option6:"

// spec6 is an option of DHCPv6.
type spec6 struct {
	code uint16
	name string
	kind kind
}

// specs6 returns the options of DHCPv6 that have a name in a config. The names are those of
// dnsmasq where dnsmasq has one.
func specs6() []spec6 {
	return []spec6{
		{17, "vendor-opts", kindHex},
		{21, "sip-server-domain", kindDomains}, {22, "sip-server", kindIPs6}, {23, "dns-server", kindIPs6},
		{24, "domain-search", kindDomains}, {27, "nis-server", kindIPs6}, {28, "nis+-server", kindIPs6},
		{29, "nis-domain", kindDomains}, {30, "nis+-domain", kindDomains}, {31, "sntp-server", kindIPs6},
		{41, "posix-timezone", kindText}, {42, "tzdb-timezone", kindText},
		{56, "ntp-server", kindNTP6}, {60, "bootfile-param", kindCounted}, {103, "captive-portal", kindText},
	}
}

// reserved6 returns the options of DHCPv6 that an operator cannot set. The values are
// remedies; "" when there is none.
func reserved6() map[uint16]string {
	remedies := map[uint16]string{
		32: "it follows from the lease time", 39: "it is the node's name",
		59: "it is the loader for the node's firmware, see loaders",
	}
	for _, code := range []uint16{
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 18, 19, 20, 25, 26, 37, 38, 53, 61, 62, 66, 79, 82, 83, 135,
	} {
		remedies[code] = ""
	}
	return remedies
}

// parse6 encodes one entry of dhcpOptions for DHCPv6, as Parse does.
func parse6(key string, values []string) (v Value, hint string, err error) {
	s, ok := find6(key)
	if !ok {
		return v, "", fmt.Errorf("unknown DHCPv6 option %q", key)
	}
	if remedy, ok := reserved6()[s.code]; ok {
		if remedy == "" {
			remedy = "DHCPv6 itself needs it"
		}
		return v, remedy, fmt.Errorf("DHCP option %s is not yours to set", key)
	}
	data, err := encode(s.kind, values)
	if err != nil {
		return v, "see docs/config.md for what each option takes", fmt.Errorf("DHCP option %s: %w", key, err)
	}
	if len(data) == 0 || len(data) > 1024 {
		return v, "shorten it, or write it as hex:", fmt.Errorf("DHCP option %s: %d bytes on the wire; want 1 to 1024", key, len(data))
	}
	return Value{ID: ID{Code6: s.code}, Name: s.name, Text: strings.Join(values, ", "), Data: data}, "", nil
}

// find6 finds the option of a key that has Prefix6.
func find6(key string) (spec6, bool) {
	key = strings.TrimPrefix(key, Prefix6)
	all := specs6()
	n, err := strconv.ParseUint(key, 10, 16)
	if i := slices.IndexFunc(all, func(s spec6) bool { return s.name == key || err == nil && s.code == uint16(n) }); i >= 0 {
		return all[i], true
	}
	return spec6{code: uint16(n), kind: kindGuess6}, err == nil
}

func encodeAddresses6(values []string) ([]byte, error) {
	return encodeEach(values, func(b []byte, v string) ([]byte, error) {
		a, err := netip.ParseAddr(v)
		if err != nil || !a.Is6() || a.Is4In6() || a.Zone() != "" {
			return nil, fmt.Errorf("%q is not an IPv6 address", v)
		}
		return append(b, a.AsSlice()...), nil
	})
}

// appendNTP appends a time server (RFC 5908, section 4): sub-option 1 has an address, 2 that
// of a multicast group, and 3 a name.
func appendNTP(b []byte, server string) ([]byte, error) {
	sub, data := uint16(3), []byte(nil)
	a, err := netip.ParseAddr(server)
	switch {
	case err != nil:
		if data, err = appendDomain(nil, server); err != nil {
			return nil, fmt.Errorf("%q is neither an IPv6 address nor a domain name", server)
		}
	default:
		if data, err = encodeAddresses6([]string{server}); err != nil {
			return nil, err
		}
		if sub = 1; a.IsMulticast() {
			sub = 2
		}
	}
	return appendCounted(binary.BigEndian.AppendUint16(b, sub), data), nil
}

// appendText appends a text with its length, as in option 60 (RFC 5970, section 3.2).
func appendText(b []byte, text string) ([]byte, error) {
	if text == "" {
		return nil, errors.New("a text is empty")
	}
	return appendCounted(b, []byte(text)), nil
}

func appendCounted(b, data []byte) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(data))), data...)
}
