package dnsmasq

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"drover/migrate"
	"drover/pools"
)

// Range is the value of dhcp-range.
type Range struct {
	Set         string   // the tag that its clients get
	Tags        []string // that a client must have
	First, Last netip.Addr
	Mode        string // static, proxy, ra-only, slaac, ...; "" for addresses to lease
	Bits        int    // of the network; 0: that of the interface
	Broadcast   netip.Addr
	Lease       pools.Duration // 0: not said
}

// dhcpRange is a range of a config.
type dhcpRange struct {
	Range
	at pools.Origin
}

// modes are the words in place of the last address.
func modes() []string {
	return []string{"static", "proxy", "ra-only", "slaac", "ra-stateless", "ra-names", "ra-advrouter", "off-link"}
}

// ParseRange reads the values of dhcp-range.
func ParseRange(fields []string) (r Range, err error) {
	for _, f := range fields {
		a, err := netip.ParseAddr(f)
		tag, set := strings.CutPrefix(f, "set:")
		want, tagged := strings.CutPrefix(f, "tag:")
		old, net := strings.CutPrefix(f, "net:")
		switch {
		case f == "":
		case set, net:
			r.Set = cmp.Or(tag, old)
			if net {
				r.Set = old
			}
		case tagged:
			r.Tags = append(r.Tags, tagOf(want))
		case strings.HasPrefix(f, "constructor:"):
			return r, fmt.Errorf("%q takes its network from an interface (write the network)", f)
		case err == nil && !r.First.IsValid():
			r.First = a
		case err == nil:
			if err := r.address(a); err != nil {
				return r, err
			}
		case slices.Contains(modes(), f):
			r.Mode = f
		case r.First.Is6() && r.Bits == 0 && isBits(f):
			r.Bits, _ = strconv.Atoi(f)
		case r.First.IsValid():
			if r.Lease, err = ParseLease(f); err != nil {
				return r, err
			}
		case r.Set == "":
			r.Set = f // the old way to write set:
		default:
			return r, fmt.Errorf("%q is no address", f)
		}
	}
	if !r.First.IsValid() {
		return r, fmt.Errorf("%q has no address", strings.Join(fields, ","))
	}
	if r.Last.IsValid() && (r.Last.BitLen() != r.First.BitLen() || r.Last.Less(r.First)) {
		return r, fmt.Errorf("range %s-%s has no addresses", r.First, r.Last)
	}
	return r, nil
}

// address takes the next address of a range: the last one, the mask, the broadcast.
func (r *Range) address(a netip.Addr) error {
	bits, isMask := migrate.MaskBits(a)
	switch {
	case !r.Last.IsValid() && r.Mode == "" && r.Bits == 0 && !isMask:
		r.Last = a
	case r.Bits == 0 && a.Is4():
		if !isMask {
			return fmt.Errorf("%s is no mask of a network", a)
		}
		r.Bits = bits
	default:
		r.Broadcast = a
	}
	return nil
}

func isBits(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n > 0 && n <= 128
}

// ParseLease reads a lease time: 3600, 45m, 12h, 7d, 1w, infinite.
func ParseLease(text string) (pools.Duration, error) {
	if text == "infinite" {
		return pools.Infinite, nil
	}
	unit := time.Second
	digits := text
	if len(text) > 0 {
		units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
		if u, ok := units[text[len(text)-1]|0x20]; ok {
			unit, digits = u, text[:len(text)-1]
		}
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is neither an address nor a lease time", text)
	}
	if n > uint64(pools.Infinite.D()/unit) {
		return pools.Infinite, nil
	}
	return migrate.Lease(time.Duration(n) * unit), nil
}

// Network returns the network of a range. ok is false if the range does not say it; then it
// is the network of 256 addresses around the range, or the smallest one that holds it.
func (r Range) Network() (p netip.Prefix, ok bool) {
	if r.Bits > 0 {
		p, err := r.First.Prefix(r.Bits)
		return p, err == nil
	}
	bits := 24
	if r.First.Is6() {
		bits = 64
	}
	p, _ = r.First.Prefix(bits)
	for r.Last.IsValid() && !p.Contains(r.Last) && bits > 8 {
		bits--
		p, _ = r.First.Prefix(bits)
	}
	return p, r.First.Is6()
}

func (r *Reader) dhcpRange(d directive) {
	rg, err := ParseRange(d.fields)
	if err != nil {
		r.farm.Unknown(d.at, "%v", err)
		return
	}
	r.ranges = append(r.ranges, dhcpRange{rg, d.at})
}

// declare adds the network of a range to a farm. It notes a wrong broadcast address.
func declare(f *migrate.Farm, at pools.Origin, r Range) *migrate.Network {
	if n := f.NetworkOf(r.First); n != nil && (r.Bits == 0 || n.Prefix.Bits() == r.Bits) {
		return n
	}
	p, sure := r.Network()
	if !sure {
		f.Lost(at, "the network of %s is not named, dnsmasq has the mask of its interface: %s is a guess (name the right one with --subnet)", r.First, p)
		f.Comment("CHANGE: a guess, as the range has no mask.", "subnets", p.String())
	}
	n := f.Network(p, at)
	if last := migrate.LastOf(p); r.Broadcast.IsValid() && r.Broadcast != last {
		f.Bug(at, "broadcast address %s is not that of %s: drover sends %s", r.Broadcast, p, last)
		f.Comment(fmt.Sprintf("The broadcast address was %s there; drover sends %s.", r.Broadcast, last), "subnets", p.String())
	}
	return n
}

// IsStatic reports whether the range leases nothing: only declared machines get addresses.
func (r Range) IsStatic() bool { return r.Mode == "static" || !r.Last.IsValid() && r.Mode == "" }

// IsAdvertised reports whether the range is of IPv6 addresses that hosts make themselves.
func (r Range) IsAdvertised() bool {
	return r.First.Is6() && r.Mode != "" && r.Mode != "static" && !r.Last.IsValid()
}
