package machines

import (
	"net/netip"
	"slices"
	"time"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
)

// Farm returns the farm in force: that of the newest config.
type Farm interface{ Farm() *resolve.Farm }

// Leases is the lease table. Of and At do not return leases that were released or
// declined. They return an expired lease until another machine gets the address.
type Leases interface {
	Of(mac pools.MAC) (pools.Lease, bool)
	At(addr netip.Addr) (pools.Lease, bool)
	// Named returns the newest lease that a machine got as the node of that name,
	// even if the lease was released.
	Named(node string) (pools.Lease, bool)
}

// Offers are the offers that machines have not taken yet. Offered returns the pool of the
// offer to a machine, or "".
type Offers interface {
	Offered(mac pools.MAC, now time.Time) (pool string)
}

// Boots is the table of boots; Current returns the newest boot of a machine.
type Boots interface {
	Current(mac pools.MAC) (boots.Record, bool)
}

// NextBoots is the table of next boots; Of returns the next boot of a node, or "".
type NextBoots interface {
	Of(node string) pools.NextBoot
}

// Unknowns lists the unknown hardware that has sent a DISCOVER. Hardware returns what a
// machine of it has reported, or nil; the caller must not change it.
type Unknowns interface {
	List() []pools.Unknown
	Hardware(mac pools.MAC) *pools.Inventory
}

// Directory finds machines. All fields but Offers, NextBoots, Unknowns and Now must
// be set, and none may change once it is in use. It is safe for concurrent use.
type Directory struct {
	Farm      Farm
	Leases    Leases
	Offers    Offers
	Boots     Boots
	NextBoots NextBoots
	Unknowns  Unknowns
	Now       func() time.Time // the clock; nil: time.Now

	// Leases6 is the lease table of IPv6; nil: no machine has an IPv6 lease.
	Leases6 Leases
}

// Machine is a machine that was found.
type Machine struct {
	MAC     pools.MAC
	Plan    *resolve.Plan // nil: drover does not boot it
	Address netip.Addr    // of its node, else of its lease, in the family that was asked for; the zero Addr if it has neither
}

// Resolve returns the plan for the machine that sent a query, or nil if drover does
// not answer that machine.
func (d *Directory) Resolve(q resolve.Query) *resolve.Plan {
	f := d.Farm.Farm()
	l := d.recall(f, &q)
	p := d.next(f.ResolveLeased(q, l))
	if p != nil {
		d.contest(f, p)
	}
	return p
}

// WhyNot returns the reason why [Directory.Resolve] returns nil for a query; "" if it
// returns a plan.
func (d *Directory) WhyNot(q resolve.Query) string {
	f := d.Farm.Farm()
	l := d.recall(f, &q)
	return f.WhyNotLeased(q, l)
}

// recall returns the lease of a machine whose node or pool its query alone may not
// identify, else the zero Lease. It sets [resolve.Query.Chained] and [resolve.Query.Hardware].
func (d *Directory) recall(f *resolve.Farm, q *resolve.Query) (l pools.Lease) {
	if f.Declares(q.MAC) || !q.Recalls() && !f.LeaseChooses() && (!q.Keeps.IsValid() || len(f.Retired()) == 0) {
		return l
	}
	q.Hardware = d.hardware(f, q.MAC)
	proxy := f.Config.Server.DHCP == pools.DHCPProxy
	l, ok := d.leaseOf(f, q.MAC, q.IPv6)
	if !ok && proxy { // a boot program ends what was noted of the one before
		l, _ = d.Leases.Named(pools.CatchAllName(q.MAC))
	}
	if !q.Link.IsValid() {
		return l
	}
	now := d.now()
	active := l.Active(now)
	if !active && !proxy && !q.Recalls() {
		l.Node = ""
	}
	if !f.LeaseChooses() {
		return l
	}
	// The leases of another server last longer than what drover notes of them.
	if !active && !proxy {
		l.Pool = ""
	}
	if l.Pool == "" && d.Offers != nil {
		l.Pool = d.Offers.Offered(q.MAC, now)
	}
	if q.IPXE && l.Pool != "" {
		b, ok := d.Boots.Current(q.MAC)
		q.Chained = ok && b.Pool == l.Pool && b.Loading(now)
	}
	if proxy && !active && q.Boots() && !q.Chained {
		l.Pool = ""
	}
	return l
}

// hardware returns what a machine that no node declares has reported of its hardware; nil if
// that decides nothing.
func (d *Directory) hardware(f *resolve.Farm, mac pools.MAC) *pools.Inventory {
	if d.Unknowns == nil || !f.MatchesHardware() {
		return nil
	}
	return d.Unknowns.Hardware(mac)
}

// leaseOf returns the lease of a machine in a family, else, without its address, the one
// in the other family: that has its node and pool. A machine is in one pool for both: the
// lease that is in force has it, of two the one of the boot that began last.
func (d *Directory) leaseOf(f *resolve.Farm, mac pools.MAC, ipv6 bool) (l pools.Lease, ok bool) {
	own, other := d.Leases, d.Leases6
	if ipv6 {
		own, other = other, own
	}
	if own != nil {
		l, ok = own.Of(mac)
	}
	if other == nil || ok && (!f.LeaseChooses() || !f.Config.HasIPv6()) {
		return l, ok
	}
	second, found := other.Of(mac)
	switch {
	case found && !ok:
		l, ok = second, true
		l.Address = netip.Addr{}
	case found && d.replaces(&second, &l):
		l.Node, l.Pool, l.Expires = second.Node, second.Pool, second.Expires
	}
	return l, ok
}

// replaces reports whether the lease of one family has the pool of a machine in place of
// the lease of the other family.
func (d *Directory) replaces(l, other *pools.Lease) bool {
	now := d.now()
	if l.Active(now) != other.Active(now) {
		return l.Active(now)
	}
	b, ok := d.Boots.Current(l.MAC)
	return ok && b.Pool == l.Pool && b.Pool != other.Pool
}

// leaseAt returns the lease of an address, by the rules of [Leases].
func (d *Directory) leaseAt(addr netip.Addr) (pools.Lease, bool) {
	switch {
	case !addr.Is6():
		return d.Leases.At(addr)
	case d.Leases6 != nil:
		return d.Leases6.At(addr)
	}
	return pools.Lease{}, false
}

// next returns a plan with the next boot of its node.
func (d *Directory) next(p *resolve.Plan) *resolve.Plan {
	if p != nil && d.NextBoots != nil {
		if n := d.NextBoots.Of(p.Node); n != "" {
			return p.WithNextBoot(n)
		}
	}
	return p
}

// Of returns the machine of a MAC.
func (d *Directory) Of(mac pools.MAC) Machine { return d.of(d.Farm.Farm(), mac, false) }

// Of6 returns the machine of a MAC that asks over IPv6.
func (d *Directory) Of6(mac pools.MAC) Machine { return d.of(d.Farm.Farm(), mac, true) }

// Addresses returns the addresses of the machine with a MAC, one of a family at most: its
// node's, else that of its lease.
func (d *Directory) Addresses(mac pools.MAC) (all []netip.Addr) {
	f := d.Farm.Farm()
	for _, ipv6 := range []bool{false, true} {
		if m := d.of(f, mac, ipv6); m.Address.IsValid() {
			all = append(all, m.Address)
		}
	}
	return all
}

func (d *Directory) of(f *resolve.Farm, mac pools.MAC, ipv6 bool) Machine {
	if f.HasAddress(mac, ipv6) {
		return d.machine(f, mac, pools.Lease{}, ipv6)
	}
	l, _ := d.leaseOf(f, mac, ipv6)
	return d.machine(f, mac, l, ipv6)
}

// machine returns the machine with a MAC and a lease. The query is that of a boot
// program, since the clients of HTTP and TFTP are iPXE and the programs after it.
func (d *Directory) machine(f *resolve.Farm, mac pools.MAC, l pools.Lease, ipv6 bool) Machine {
	q := resolve.Query{MAC: mac, IPXE: true, IPv6: ipv6}
	if !f.Declares(mac) {
		q.Hardware = d.hardware(f, mac)
	}
	m := Machine{MAC: mac, Plan: d.next(f.ResolveLeased(q, l))}
	if m.Plan != nil {
		d.contest(f, m.Plan)
	}
	if m.Plan != nil && m.Plan.Address.IsValid() && m.Plan.Holder == nil {
		m.Address = m.Plan.Address.Unmap()
	} else if !l.Released {
		m.Address = l.Address.Unmap()
	}
	return m
}

// At returns the machine that has an address; false if no machine has it. The address
// of a node that declares MACs belongs to the MAC that booted last. Any other address
// belongs to the machine that leases it, and so does a node's address that another
// machine leases still.
func (d *Directory) At(addr netip.Addr) (Machine, bool) {
	addr = addr.Unmap()
	f := d.Farm.Farm()
	if n, declared := f.NodeAt(addr); declared && len(n.MACs) > 0 && d.holder(f, addr) == nil {
		last, ok := d.lastOf(n.MACs)
		if !ok {
			last.MAC = n.MACs[0]
		}
		return d.of(f, last.MAC, addr.Is6()), true
	}
	l, ok := d.leaseAt(addr)
	if !ok {
		return Machine{}, false
	}
	return d.machine(f, l.MAC, l, addr.Is6()), true
}

// Owns reports whether an address belongs to any machine (owned), and whether mac is
// a MAC of that machine (own).
func (d *Directory) Owns(addr netip.Addr, mac pools.MAC) (owned, own bool) {
	f := d.Farm.Farm()
	if n, declared := f.NodeAt(addr); declared && len(n.MACs) > 0 && d.holder(f, addr) == nil {
		return true, slices.Contains(n.MACs, mac)
	}
	if n, retired := f.RetiredAt(addr); retired && len(n.MACs) > 0 {
		return true, slices.Contains(n.MACs, mac)
	}
	l, ok := d.leaseAt(addr)
	return ok, ok && l.MAC == mac
}

// holder returns the lease of another machine that is in force on the address of a node,
// or nil. It reads the lease table for contested addresses only.
func (d *Directory) holder(f *resolve.Farm, addr netip.Addr) *pools.Lease {
	if !f.Contested(addr) {
		return nil
	}
	n, _ := f.NodeAt(addr)
	l, ok := d.leaseAt(addr)
	if !ok || l.Of(&n.Node) || !l.Active(d.now()) {
		return nil
	}
	return &l
}

// contest sets the holder of the address of a plan, which no other caller has yet.
func (d *Directory) contest(f *resolve.Farm, p *resolve.Plan) {
	if p.Address.IsValid() {
		p.Holder = d.holder(f, p.Address)
	}
}

// Named returns the plan of the machine that is the node of that name, by the farm in
// force; nil if there is none. The name of unknown hardware contains its MAC. If a
// node declares that MAC now, the plan is that node's, under another name.
func (d *Directory) Named(node string) *resolve.Plan {
	f := d.Farm.Farm()
	mac, l, ok := d.named(f, node)
	if !ok {
		return nil
	}
	p := d.machine(f, mac, l, false).Plan
	if _, declared := f.Node(node); declared && p != nil && p.Node != node {
		return nil // another node has the MAC now
	}
	return p
}

// named returns the MAC of a node, and its lease if the node declares no MAC: the
// first MAC that the node declares, else the one of the newest lease under its name,
// else, for unknown hardware, the one in the name.
func (d *Directory) named(f *resolve.Farm, node string) (mac pools.MAC, l pools.Lease, ok bool) {
	n, declared := f.Node(node)
	switch {
	case declared && len(n.MACs) > 0:
		return n.MACs[0], l, true
	case declared:
		if l, ok = d.Leases.Named(node); !ok && d.Leases6 != nil {
			l, ok = d.Leases6.Named(node)
		}
		return l.MAC, l, ok
	}
	if mac, ok = pools.CatchAllMAC(node); ok {
		l, _ = d.leaseOf(f, mac, false)
	}
	return mac, l, ok
}

// LastBoot returns the newest boot of a node, from any of its MACs.
func (d *Directory) LastBoot(node string) (boots.Record, bool) {
	f := d.Farm.Farm()
	if n, declared := f.Node(node); declared && len(n.MACs) > 0 {
		return d.lastOf(n.MACs)
	}
	mac, _, ok := d.named(f, node)
	if !ok {
		return boots.Record{}, false
	}
	return d.Boots.Current(mac)
}

// lastOf returns the newest boot of several MACs. The clock may have been set between them: IDs
// keep their order.
func (d *Directory) lastOf(macs []pools.MAC) (last boots.Record, ok bool) {
	for _, mac := range macs {
		if r, known := d.Boots.Current(mac); known && (!ok || boots.NewestFirst(r, last) < 0) {
			last, ok = r, true
		}
	}
	return last, ok
}

// Booting reports whether the node of that name may be booting: its last boot began
// less than [boots.Longest] ago.
func (d *Directory) Booting(node string) bool {
	r, ok := d.LastBoot(node)
	return ok && boots.Recent(r.Started, d.now(), boots.Longest)
}

func (d *Directory) now() time.Time {
	if d.Now != nil {
		return d.Now()
	}
	return time.Now()
}

// Unknown returns the machines that have sent a DISCOVER as unknown hardware and that
// no node declares now. A machine may be declared after its DISCOVER. It may also be
// ignored, or be connected to a port where its node does not belong.
func (d *Directory) Unknown() []pools.Unknown {
	if d.Unknowns == nil {
		return nil
	}
	f := d.Farm.Farm()
	all := slices.DeleteFunc(d.Unknowns.List(), func(u pools.Unknown) bool { return f.Declares(u.MAC) })
	for i := range all {
		n, _ := f.RetiredOf(all[i].MAC)
		all[i].Retired, all[i].RetiredPool = n.Name, n.Pool
	}
	return all
}
