package dnsmasq

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"drover/migrate"
	"drover/pools/option"
)

// dhcpOption is the value of dhcp-option.
type dhcpOption struct {
	migrate.Option
	tags   condition
	server bool // option:server-ip-address: siaddr
}

// optionOf returns an option by the name or number of dnsmasq.
func optionOf(key string) (o migrate.OptionName, ok bool) {
	name, named := strings.CutPrefix(key, "option:")
	names := migrate.NewOptionNames()
	if o, ok = names.WithCode(name); ok {
		return o, true
	}
	if o, ok = names[name]; !ok {
		o.Code = option.Code(name)
	}
	return o, named && o.Code != 0
}

func (r *Reader) dhcpOption(d directive) {
	tags, fields := splitTags(d.fields)
	o := dhcpOption{Option: migrate.Option{At: d.at, Forced: d.key == "dhcp-option-force"}, tags: tags}
	key, encap, vendor, fields := o.head(fields)
	known, ok := optionOf(key)
	code, own := known.Code, r.farm.Address
	if encap != "" { // the vendor's own numbers have no names, and 0.0.0.0 is an address like any other
		n, err := strconv.ParseUint(key, 10, 8)
		known, code, own, ok = migrate.OptionName{}, uint8(n), netip.IPv4Unspecified(), err == nil
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
	o.Code, o.Values, o.server = code, values(known, fields, own), known.Code == 255
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
	if _, ok := optionOf(fields[0]); ok || len(fields) < 2 || strings.ContainsAny(fields[0], ": ") || fields[0] == "" {
		return false
	}
	_, ok := optionOf(fields[1])
	return ok || strings.HasPrefix(fields[1], "option6:")
}

// within makes an option a sub-option of another one: 43, 175, 125.311.
func (o *dhcpOption) within(encap string) error {
	outer, enterprise, _ := strings.Cut(encap, ".")
	whole, ok := optionOf(outer)
	if !ok {
		return fmt.Errorf("unknown DHCP option %q", outer)
	}
	if enterprise != "" {
		o.Part = enterprise + "." + o.Part
	}
	o.Code = whole.Code
	return nil
}

// values returns the values of an option as drover writes them; nil for a value that only
// the other server knows.
func values(o migrate.OptionName, fields []string, own netip.Addr) (all []string) {
	code := o.Code
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
	if b, ok := migrate.Bytes(all[0]); ok {
		return []string{fmt.Sprintf("hex:%x", b)}
	}
	return []string{numbered(o, all[0])}
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
func numbered(o migrate.OptionName, text string) string {
	digits := strings.TrimRight(text, "bsi")
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || len(text) > len(digits)+1 {
		return text
	}
	if kind := map[string]string{"b": "uint8", "s": "uint16", "i": "uint32", "": o.Type}[text[len(digits):]]; strings.HasPrefix(kind, "uint") {
		o.Type = kind
	} else if o.Type = "uint8"; kind != "bool" && n > 0xffff {
		o.Type = "uint32"
	} else if kind != "bool" && n > 0xff {
		o.Type = "uint16"
	}
	return o.Typed(digits)
}
