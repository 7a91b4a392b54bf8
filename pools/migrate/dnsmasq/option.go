package dnsmasq

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"drover/pools/migrate"
	"drover/pools/option"
)

// dhcpOption is the value of dhcp-option.
type dhcpOption struct {
	migrate.Option
	tags   condition
	server bool // option:server-ip-address: siaddr
}

// names are the options of dnsmasq that have another name in drover, or none, with the
// bytes of their numbers.
func names() map[string]struct{ code, size uint8 } {
	return map[string]struct{ code, size uint8 }{
		"netmask": {1, 0}, "boot-file-size": {13, 2}, "non-local-source-routing": {20, 1}, "policy-filter": {21, 0},
		"max-datagram-reassembly": {22, 2}, "all-subnets": {27, 1}, "router-discovery": {31, 1}, "router-solicitation": {32, 0},
		"trailer-encapsulation": {34, 1}, "arp-timeout": {35, 4}, "ethernet-encap": {36, 1}, "tcp-ttl": {37, 1}, "tcp-keepalive": {38, 4},
		"hostname": {12, 0}, "nis-domain": {40, 0}, "x-windows-fs": {48, 0}, "x-windows-dm": {49, 0}, "netbios-scope": {47, 0},
		"requested-address": {50, 0}, "lease-time": {51, 4}, "option-overload": {52, 1}, "message-type": {53, 1}, "server-identifier": {54, 0},
		"parameter-request": {55, 0}, "message": {56, 0}, "max-message-size": {57, 2}, "T1": {58, 4}, "T2": {59, 4},
		"vendor-class": {60, 0}, "client-id": {61, 0}, "nisplus-domain": {64, 0}, "nisplus-server": {65, 0}, "tftp-server": {66, 0},
		"bootfile-name": {67, 0}, "mobile-ip-home": {68, 0}, "nntp-server": {71, 0}, "irc-server": {74, 0}, "user-class": {77, 0},
		"rapid-commit": {80, 0}, "FQDN": {81, 0}, "agent-info": {82, 0}, "client-arch": {93, 2}, "client-interface-id": {94, 0},
		"client-machine-id": {97, 0}, "subnet-select": {118, 0}, "sip-server": {120, 0}, "server-ip-address": {255, 0},
		"domain-search": {119, 0}, "ipxe": {175, 0},
	}
}

// codeOf returns the number of an option by the name or number of dnsmasq.
func codeOf(key string) (code, size uint8, ok bool) {
	name, named := strings.CutPrefix(key, "option:")
	if n, err := strconv.ParseUint(name, 10, 8); err == nil && n > 0 {
		code = uint8(n)
		for _, o := range names() {
			if o.code == code {
				size = o.size
			}
		}
		return code, size, true
	}
	if !named {
		return 0, 0, false
	}
	if o, ok := names()[name]; ok {
		return o.code, o.size, true
	}
	code = option.Code(name)
	return code, 0, code != 0
}

func (r *Reader) dhcpOption(d directive) {
	tags, fields := splitTags(d.fields)
	o := dhcpOption{Option: migrate.Option{At: d.at, Forced: d.key == "dhcp-option-force"}, tags: tags}
	key, encap, vendor, fields := o.head(fields)
	code, size, ok := codeOf(key)
	if encap != "" { // of a vendor's own numbers, not of DHCP's
		var n uint64
		n, err := strconv.ParseUint(key, 10, 8)
		code, size, ok = uint8(n), 0, err == nil
	}
	switch {
	case strings.HasPrefix(key, "option6:"):
		if name := strings.TrimPrefix(key, "option6:"); len(o.tags) == 0 {
			r.farm.Option6(&r.scope6, d.at, name, fields)
		} else {
			r.farm.Option6(&migrate.Scope{}, d.at, "", nil)
		}
		return
	case !ok:
		r.farm.Unknown(d.at, "unknown DHCP option %q", key)
		return
	case len(fields) == 0 || len(fields) == 1 && fields[0] == "" && encap == "":
		r.farm.Lost(d.at, "an option without a value is one that dnsmasq does not send: drover sends none but what is written")
		return
	case vendor != "":
		r.farm.Lost(d.at, "only for clients of vendor class %q there: here it is for all machines with the tag, and those that do not know option 43.%d ignore it", vendor, code)
	}
	kind := code
	if encap != "" {
		kind = 0 // the vendor's own numbers have no names
	}
	own := r.farm.Address
	if encap != "" { // there 0.0.0.0 is an address like any other
		own = netip.IPv4Unspecified()
	}
	o.Code, o.Values, o.server = code, values(kind, size, fields, own), kind == 255
	if encap != "" {
		o.Part = strconv.Itoa(int(code))
		if err := o.within(encap); err != nil {
			r.farm.Unknown(d.at, "%v", err)
			return
		}
	}
	if o.Values == nil {
		r.farm.Lost(d.at, "0.0.0.0 stands for the server's own address there (write the address, or give --address)")
		return
	}
	r.options = append(r.options, o)
}

// head reads the values in front of those of the option: tags, what it is a part of, and its key.
func (o *dhcpOption) head(fields []string) (key, encap, vendor string, rest []string) {
	for len(fields) > 0 && key == "" {
		kind, value, _ := strings.Cut(fields[0], ":")
		switch kind {
		case "tag", "net": // behind encap: too
			o.tags = append(o.tags, tagOf(value))
		case "encap":
			encap = value
		case "vi-encap":
			encap = "125." + value
		case "vendor":
			encap, vendor = "43", value
		default:
			if isTag(fields) {
				o.tags = append(o.tags, tagOf(fields[0])) // the old way to write tag:
			} else {
				key = fields[0]
			}
		}
		fields = fields[1:]
	}
	return key, encap, vendor, fields
}

// isTag reports whether values of dhcp-option begin with a bare tag.
func isTag(fields []string) bool {
	if _, _, ok := codeOf(fields[0]); ok || len(fields) < 2 || strings.ContainsAny(fields[0], ": ") || fields[0] == "" {
		return false
	}
	_, _, ok := codeOf(fields[1])
	return ok || strings.HasPrefix(fields[1], "option6:")
}

// within makes an option a sub-option of another one: 43, 175, 125.311.
func (o *dhcpOption) within(encap string) error {
	outer, enterprise, _ := strings.Cut(encap, ".")
	code, _, ok := codeOf(outer)
	if !ok {
		return fmt.Errorf("unknown DHCP option %q", outer)
	}
	if enterprise != "" {
		o.Part = enterprise + "." + o.Part
	}
	o.Code = code
	return nil
}

// values returns the values of an option as drover writes them; nil for a value that only
// the other server knows.
func values(code, size uint8, fields []string, own netip.Addr) (all []string) {
	for _, f := range fields {
		if f == "0.0.0.0" && code != 121 && code != 249 {
			if !own.IsValid() {
				return nil
			}
			f = own.String()
		}
		all = append(all, strings.Trim(f, "[]"))
	}
	if code == 121 || code == 249 {
		return routes(code, all)
	}
	if len(all) != 1 {
		return all
	}
	if b, ok := hexBytes(all[0]); ok {
		return []string{fmt.Sprintf("hex:%x", b)}
	}
	return []string{numbered(code, size, all[0])}
}

// routes writes pairs of a network and a router as drover does. Windows has them in option
// 249, which drover does not know: its bytes are those of 121.
func routes(code uint8, fields []string) (all []string) {
	for i := 0; i+1 < len(fields); i += 2 {
		to := fields[i]
		if a, err := netip.ParseAddr(to); err == nil {
			to = netip.PrefixFrom(a, a.BitLen()).String()
			if a.IsUnspecified() {
				to = "0.0.0.0/0"
			}
		}
		all = append(all, to+"="+fields[i+1])
	}
	if code != 249 {
		return all
	}
	if v, _, err := option.Parse("121", all); err == nil {
		return []string{fmt.Sprintf("hex:%x", v.Data)}
	}
	return all
}

// numbered returns a number of an option that drover has no name for with its size: that
// of the suffix b, s or i, that of the option, or the smallest one.
func numbered(code, size uint8, text string) string {
	sizes := map[byte]uint8{'b': 1, 's': 2, 'i': 4}
	digits := text
	if len(text) > 1 {
		if n, ok := sizes[text[len(text)-1]]; ok {
			size, digits = n, text[:len(text)-1]
		}
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	switch suffix := digits != text; {
	case err != nil:
		return text
	case hasName(code) && !suffix:
		return text
	case hasName(code):
		return digits
	case size == 0 && n > 0xffff:
		size = 4
	case size == 0 && n > 0xff:
		size = 2
	}
	return map[uint8]string{0: "uint8:", 1: "uint8:", 2: "uint16:", 4: "uint32:"}[size] + digits
}

func hasName(code uint8) bool {
	return code != 0 && slices.ContainsFunc(option.Names(), func(name string) bool { return option.Code(name) == code })
}
