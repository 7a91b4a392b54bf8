package migrate

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/config"
)

// landings makes the catch-all pools. Those with a match come first: of the others each
// network has one.
func (f *Farm) landings(subnets []pools.Subnet) {
	slices.SortStableFunc(f.lands, func(a, b *CatchAll) int {
		return cmp.Compare(order(a), order(b))
	})
	first := map[string]*pools.Pool{} // by network and match
	var landed []*CatchAll
	for _, c := range f.lands {
		if (f.known || f.closed != "") && !c.Ignore {
			f.Land(*c, Access{Known: f.known, Closed: f.closed})
			continue
		}
		if c.unnamed && f.left != "" {
			f.restrict(c, fmt.Sprintf("that machines which the config names may not lease from it (%s is no node here)", f.left))
			continue
		}
		i := slices.IndexFunc(subnets, func(s pools.Subnet) bool {
			return s.CIDR.Contains(cmp.Or(c.Range.First, c.Range6.First))
		})
		if i < 0 && !c.Ignore && anyRange(c) != "" {
			f.LeftOut(c.At, "range %s is in none of the networks (name its network with --subnet)", anyRange(c))
			continue
		}
		if last := cmp.Or(c.Range.Last, c.Range6.Last); i >= 0 && !subnets[i].CIDR.Contains(last) {
			f.LeftOut(c.At, "range %s: it leaves the network %s", anyRange(c), subnets[i].CIDR)
			continue
		}
		network := ""
		if i >= 0 {
			f.trim(c, &subnets[i])
			network = cmp.Or(subnets[i].Network, subnets[i].CIDR.String())
		}
		key := fmt.Sprint(network, c.Match)
		switch other := first[key]; {
		case other == nil:
		case f.extend(other, c):
			landed = append(landed, &CatchAll{Pool: pools.Pool{Name: other.Name, Range: c.Range}, At: c.At})
			continue
		default:
			f.LeftOut(c.At, "range %s: unknown machines of %s get addresses of %s; a network has one range for them (join the ranges, or give one pool a match)", anyRange(c), network, pools.Range{First: cmp.Or(other.Range.First, other.Range6.First), Last: cmp.Or(other.Range.Last, other.Range6.Last)})
			continue
		}
		if n := f.NetworkOf(c.Range.First); n != nil && n.tag != "" && !slices.Contains(c.Tags, n.tag) {
			c.Tags = append([]string{n.tag}, c.Tags...)
		}
		f.ownOptions(c)
		c.Name = f.freeName(cmp.Or(Label(c.Name), "unknown"))
		p := &c.Pool
		f.pools = append(f.pools, p)
		first[key] = p
		landed = append(landed, c)
	}
	for _, c := range landed {
		if anyRange(c) != "" {
			f.Taken(c.At, "pools."+c.Name, anyRange(c))
		}
	}
}

// ownOptions gives a pool a tag with the options of its own.
func (f *Farm) ownOptions(c *CatchAll) {
	if c.scope == nil || len(c.scope.Options) == 0 {
		return
	}
	name, t := f.tag(c.scope.Name)
	t.Options = c.scope.Options
	c.scope.homes = append(c.scope.homes, "tags."+name)
	c.Tags = append(c.Tags, name)
}

// passwordTag is the tag with root's password where unknown machines would get it with [allTag].
const passwordTag = "root-password"

// keepPassword moves root's password from the tag of all nodes to a tag of those that the config
// names, if it has a pool for unknown machines: any machine that asks would get it there.
func (f *Farm) keepPassword() {
	all := f.tags[allTag]
	open := func(p pools.Pool) bool { return p.CatchAll && !p.Ignore && !p.SecretsForUnknown }
	i := slices.IndexFunc(f.pools, func(p *pools.Pool) bool { return open(*p) })
	if all == nil || all.RootPasswordHash.Text == "" || i < 0 && !slices.ContainsFunc(f.there.Pools, open) {
		return
	}
	name, own := f.Tag(passwordTag)
	own.RootPasswordHash, all.RootPasswordHash = all.RootPasswordHash, own.RootPasswordHash
	for _, p := range f.pools {
		if !p.CatchAll {
			p.Tags = append([]string{name}, p.Tags...)
		}
	}
	f.Comment("For nodes that the config names: a catch-all pool would give it to any machine that asks.", "tags", name)
	from, to := "tags."+allTag+".rootPasswordHash", "tags."+name+".rootPasswordHash"
	for _, c := range f.claims {
		if slices.Contains(c.paths, from) {
			n := &f.Notes[c.note]
			c.paths[0], n.Text = to, strings.Replace(n.Text, from, to, 1)
			f.restricted(n.Origin, "catch-all pools are left without root's password: any machine that asks would get it there (to give it to unknown hardware, write secretsForUnknown: true and tag %s in the pool)", name)
		}
	}
}

// order puts pools that keep machines out before those that let some in.
func order(c *CatchAll) int {
	switch {
	case c.Ignore:
		return 0
	case !c.Match.IsZero():
		return 1
	}
	return 2
}

func anyRange(c *CatchAll) string { return cmp.Or(c.Range.String(), c.Range6.String()) }

// freeName returns a name that no pool has.
func (f *Farm) freeName(base string) string {
	name := base
	for i := 2; slices.ContainsFunc(f.pools, func(p *pools.Pool) bool { return p.Name == name }); i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	return name
}

// extend adds a range to that of a pool, if it follows it without a gap.
func (f *Farm) extend(p *pools.Pool, c *CatchAll) bool {
	switch {
	case !p.Range.IsValid() || !c.Range.IsValid() || int(number(c.Range.Last))-int(number(p.Range.First)) >= config.MaxRange:
		return false
	case p.Range.Last.Next() == c.Range.First:
		p.Range.Last = c.Range.Last
	case p.Range == c.Range:
	default:
		return false
	}
	c.Range = p.Range
	return true
}

// trim makes a range one that drover can lease from: without the addresses of the network
// itself, its router and this server, and not too long.
func (f *Farm) trim(c *CatchAll, s *pools.Subnet) {
	was := anyRange(c)
	if c.Range6.IsValid() {
		if c.Range6.First == s.CIDR.Addr() {
			c.Range6.First = c.Range6.First.Next()
		}
		if last := plus(c.Range6.First, config.MaxRange-1); last.Less(c.Range6.Last) {
			c.Range6.Last = last
		}
	}
	if c.Range.IsValid() {
		c.Range = longest(c.Range, f.fixed(s))
	}
	if now := anyRange(c); now != was {
		f.Lost(c.At, "range %s is %s: drover does not lease the addresses of the network, its router and this server, and %d addresses at most", was, now, config.MaxRange)
	}
}

// longest returns the longest part of a range of IPv4 without the given addresses, bounded
// by [config.MaxRange].
func longest(r pools.Range, without []netip.Addr) (best pools.Range) {
	var cuts []uint32
	for _, a := range without {
		if r.Contains(a) {
			cuts = append(cuts, number(a))
		}
	}
	slices.Sort(cuts)
	first, last := uint64(number(r.First)), uint64(number(r.Last))
	size := uint64(0)
	for _, cut := range append(cuts, 0) {
		end := uint64(cut) - 1
		if cut == 0 {
			end = last
		}
		if n := end + 1 - first; end+1 > first && n > size {
			size = n
			best = pools.Range{First: address(first), Last: address(min(end, first+config.MaxRange-1))}
		}
		first = uint64(cut) + 1
	}
	if size == 0 {
		return r
	}
	return best
}

func number(a netip.Addr) uint32 {
	if !a.Is4() {
		return 0
	}
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

func address(n uint64) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(n))
	return netip.AddrFrom4(b)
}

// plus returns the IPv6 address n behind a, within the lower half of it.
func plus(a netip.Addr, n uint64) netip.Addr {
	b := a.As16()
	low := binary.BigEndian.Uint64(b[8:])
	if low+n < low {
		n = ^low
	}
	binary.BigEndian.PutUint64(b[8:], low+n)
	return netip.AddrFrom16(b)
}

// LastOf returns the last address of a prefix: the broadcast address of IPv4; none for
// IPv6.
func LastOf(p netip.Prefix) netip.Addr {
	if !p.Addr().Is4() {
		return netip.Addr{}
	}
	return address(uint64(number(p.Masked().Addr())) + 1<<(32-p.Bits()) - 1)
}

// MaskBits returns the length of the prefix of a mask such as 255.255.0.0.
func MaskBits(a netip.Addr) (int, bool) {
	if !a.Is4() {
		return 0, false
	}
	n := number(a)
	length := bits.LeadingZeros32(^n)
	return length, length > 0 && n<<length == 0
}
