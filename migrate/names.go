package migrate

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"drover/pools"
	"drover/pools/option"
)

// OptionName is a DHCP option as other servers call it: dhcpd, Kea and dnsmasq.
type OptionName struct {
	Code uint8
	Type string // ip, text, uint8, uint16, uint32, int32, bool, hex, domains, routes
}

// IsBoot reports whether the option says what to boot, from where.
func (o OptionName) IsBoot() bool { return Option{Code: o.Code}.IsBoot() }

// optionNames has the options that have a name in another server and not in drover, or another
// type there. Where servers differ, all names are there.
const optionNames = `1 ip subnet-mask netmask|2 int32 time-offset|3 ip routers|4 ip time-servers|5 ip name-servers ien116-name-servers|6 ip domain-name-servers
7 ip log-servers|8 ip cookie-servers|9 ip lpr-servers|10 ip impress-servers|11 ip resource-location-servers|12 text host-name hostname
13 uint16 boot-size boot-file-size|14 text merit-dump|15 text domain-name|16 ip swap-server|17 text root-path|18 text extensions-path
19 bool ip-forwarding|20 bool non-local-source-routing|21 ip policy-filter|22 uint16 max-dgram-reassembly max-datagram-reassembly
23 uint8 default-ip-ttl|24 uint32 path-mtu-aging-timeout|25 uint16 path-mtu-plateau-table|26 uint16 interface-mtu
27 bool all-subnets-local all-subnets|28 ip broadcast-address|29 bool perform-mask-discovery|30 bool mask-supplier|31 bool router-discovery
32 ip router-solicitation-address router-solicitation|33 ip static-routes|34 bool trailer-encapsulation|35 uint32 arp-cache-timeout arp-timeout
36 bool ieee802-3-encapsulation ethernet-encap|37 uint8 default-tcp-ttl tcp-ttl|38 uint32 tcp-keepalive-interval tcp-keepalive
39 bool tcp-keepalive-garbage|40 text nis-domain|41 ip nis-servers|42 ip ntp-servers|43 hex vendor-encapsulated-options|44 ip netbios-name-servers
45 ip netbios-dd-server|46 uint8 netbios-node-type|47 text netbios-scope|48 ip font-servers x-windows-fs|49 ip x-display-manager x-windows-dm
50 ip dhcp-requested-address requested-address|51 uint32 dhcp-lease-time lease-time|52 uint8 dhcp-option-overload option-overload
53 uint8 dhcp-message-type message-type|54 ip dhcp-server-identifier server-identifier|55 hex dhcp-parameter-request-list parameter-request
56 text dhcp-message message|57 uint16 dhcp-max-message-size max-message-size|58 uint32 dhcp-renewal-time T1|59 uint32 dhcp-rebinding-time T2
60 text vendor-class-identifier vendor-class|61 hex dhcp-client-identifier client-id|62 text nwip-domain nwip-domain-name
64 text nisplus-domain nisplus-domain-name|65 ip nisplus-servers nisplus-server|66 text tftp-server-name tftp-server
67 text bootfile-name boot-file-name|68 ip mobile-ip-home-agent mobile-ip-home|69 ip smtp-server|70 ip pop-server|71 ip nntp-server|72 ip www-server
73 ip finger-server|74 ip irc-server|75 ip streettalk-server|76 ip streettalk-directory-assistance-server|77 text user-class|80 hex rapid-commit
81 hex FQDN|82 hex agent-info|85 ip nds-servers nds-server|86 text nds-tree-name|87 text nds-context
93 uint16 pxe-system-type client-system client-arch|94 hex pxe-interface-id client-ndi client-interface-id
97 hex pxe-client-id uuid-guid client-machine-id|98 text uap-servers|100 text pcode|101 text tcode|108 uint32 v6-only-preferred
112 ip netinfo-server-address|113 text netinfo-server-tag|114 text default-url v4-captive-portal|116 uint8 auto-config
118 ip subnet-selection subnet-select|119 domains domain-search|120 hex sip-server|121 routes classless-static-route|124 hex vivco vivco-suboptions
125 hex vivso vivso-suboptions|150 ip tftp-server-address|175 hex ipxe-encap ipxe|208 hex pxelinux-magic
209 text loader-configfile pxelinux.configfile|210 text loader-pathprefix pxelinux.pathprefix|211 uint32 loader-reboottime pxelinux.reboottime
255 ip server-ip-address`

// OptionNames are the options of other servers by name.
type OptionNames map[string]OptionName

// NewOptionNames returns the options that other servers have without a definition.
func NewOptionNames() OptionNames {
	names := OptionNames{}
	for _, line := range strings.FieldsFunc(optionNames, func(r rune) bool { return r == '|' || r == '\n' }) {
		f := strings.Fields(line)
		code, _ := strconv.ParseUint(f[0], 10, 8)
		for _, name := range f[2:] {
			names[name] = OptionName{uint8(code), f[1]}
		}
	}
	return names
}

// WithCode returns an option by its number, as a text if it has no name.
func (names OptionNames) WithCode(text string) (o OptionName, ok bool) {
	n, err := strconv.ParseUint(text, 10, 8)
	for _, known := range names {
		if known.Code == uint8(n) && err == nil {
			return known, true
		}
	}
	return OptionName{Code: uint8(n), Type: "text"}, err == nil && n > 0
}

// optionTypes are the types of options that configs define, in the words of dhcpd and Kea.
const optionTypes = `ip: ip-address ipv4-address|text: text string|hex: binary|bool: boolean|domains: domain-name domain-list fqdn
uint8: uint8 int8|uint16: uint16 int16|uint32: uint32 int32`

// Define adds an option that a config defines: its number, and the type of its value.
func (f *Farm) Define(names OptionNames, at pools.Origin, name, code, kind string) {
	n, err := strconv.ParseUint(code, 10, 8)
	if err != nil {
		f.Unknown(at, "%q is no number of an option", code)
		return
	}
	o := OptionName{Code: uint8(n), Type: "hex"}
	for _, line := range strings.FieldsFunc(optionTypes, func(r rune) bool { return r == '|' || r == '\n' }) {
		if known, words, _ := strings.Cut(line, ":"); slices.Contains(strings.Fields(words), kind) {
			o.Type = known
		}
	}
	f.Itself(at, "option %s is %d", name, n)
	if o.Type == "hex" && kind != "binary" {
		f.Lost(at, "the type %q of option %s: write its bytes as hex:", kind, name)
	}
	if old, ok := names[name]; !ok || old.Code != o.Code || old.Type == "routes" {
		names[name] = o
	}
}

// nameOf returns drover's name of an option; empty if it has none.
func nameOf(code uint8) string {
	for _, name := range option.Names() {
		if option.Code(name) == code {
			return name
		}
	}
	return ""
}

// Typed returns a value with its type in front, where drover would guess.
func (o OptionName) Typed(value string) string {
	if o.Code != 0 && nameOf(o.Code) != "" {
		return value
	}
	return o.Type + ":" + value
}

// Encode returns the values of an option as drover writes them, so that they are of the
// type of the option also where drover guesses.
func (o OptionName) Encode(values []string) ([]string, error) {
	one := strings.Join(values, ",")
	switch o.Type {
	case "bool":
		on := map[string]string{"true": "1", "on": "1", "1": "1", "false": "0", "off": "0", "0": "0"}[strings.ToLower(one)]
		if on == "" {
			return nil, fmt.Errorf("%q is neither true nor false", one)
		}
		return []string{OptionName{o.Code, "uint8"}.Typed(on)}, nil
	case "uint8", "uint16", "uint32":
		if len(values) != 1 {
			return encodeList(o.Type, values)
		}
		return []string{o.Typed(one)}, nil
	case "text":
		return []string{o.Typed(one)}, nil
	case "hex":
		return encodeHex(one)
	}
	return values, nil
}

// Bytes reads bytes such as 01:0a:ff, with one digit or two.
func Bytes(text string) ([]byte, bool) {
	parts := strings.Split(text, ":")
	for i, p := range parts {
		if parts[i] = strings.Repeat("0", max(0, 2-len(p))) + p; p == "" || len(p) > 2 {
			return nil, false
		}
	}
	b, err := hex.DecodeString(strings.Join(parts, ""))
	return b, err == nil && len(parts) > 1
}

// encodeHex reads bytes as 01:0a, 010a or 0x010a.
func encodeHex(text string) ([]string, error) {
	digits := strings.TrimPrefix(strings.NewReplacer(" ", "", ",", "").Replace(text), "0x")
	if b, ok := Bytes(digits); ok {
		digits = hex.EncodeToString(b)
	}
	if _, err := hex.DecodeString(digits); err != nil || digits == "" {
		return nil, fmt.Errorf("%q is not bytes in hex", text)
	}
	return []string{"hex:" + digits}, nil
}

// encodeList writes several numbers as bytes.
func encodeList(kind string, values []string) ([]string, error) {
	bits, _ := strconv.Atoi(strings.TrimPrefix(kind, "uint"))
	var digits strings.Builder
	for _, v := range values {
		n, err := strconv.ParseUint(v, 0, bits)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number of %d bits", v, bits)
		}
		fmt.Fprintf(&digits, "%0*x", bits/4, n)
	}
	return []string{"hex:" + digits.String()}, nil
}

// SetNamed gives a scope an option that has a name and values, as dhcpd and Kea write it.
func (f *Farm) SetNamed(s *Scope, o Option, name OptionName) {
	o.Code = name.Code
	values, err := name.Encode(o.Values)
	if err != nil {
		f.Unknown(o.At, "%v", err)
		return
	}
	o.Values = values
	f.Set(s, o)
}
