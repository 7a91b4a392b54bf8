package machines

import (
	"net/netip"
	"slices"
	"time"

	"drover/pools"
	"drover/pools/boots"
)

// Farm has the farm in force.
type Farm interface{ Farm() *pools.Farm }

// Leases is the lease table. A lease that was released or declined is none; an
// expired one counts until another machine gets the address.
type Leases interface {
	Of(mac pools.MAC) (pools.Lease, bool)
	At(addr netip.Addr) (pools.Lease, bool)
	// Named returns the lease that a machine got last as the node of that name,
	// also when it was released.
	Named(node string) (pools.Lease, bool)
}

// Boots is the table of boots; Current returns the newest of a machine.
type Boots interface {
	Current(mac pools.MAC) (boots.Record, bool)
}

// NextBoots is the table of next boots; Of returns that of a node, or "".
type NextBoots interface {
	Of(node string) pools.NextBoot
}

// Unknowns lists the unknown hardware that asked for an address.
type Unknowns interface {
	List() []pools.Unknown
}

// Directory finds machines. Its fields must be set, except for NextBoots, Unknowns
// and Now, and not be changed. It is safe for concurrent use.
type Directory struct {
	Farm      Farm
	Leases    Leases
	Boots     Boots
	NextBoots NextBoots
	Unknowns  Unknowns
	Now       func() time.Time // the clock; nil: time.Now
}

// Machine is a machine that was found.
type Machine struct {
	MAC     pools.MAC
	Plan    *pools.Plan // nil: it is not to be booted
	Address netip.Addr  // of its node, else of its lease; the zero Addr: it has none
}

// Resolve returns the plan of the machine that sends a query, or nil when the
// machine gets silence.
func (d *Directory) Resolve(q pools.Query) *pools.Plan {
	f := d.Farm.Farm()
	return d.next(f.ResolveLeased(q, d.recall(f, q)))
}

// WhyNot returns the reason for which [Directory.Resolve] has no plan; "" when it
// has one.
func (d *Directory) WhyNot(q pools.Query) string {
	f := d.Farm.Farm()
	return f.WhyNotLeased(q, d.recall(f, q))
}

// recall returns the lease of a machine that its query may not identify.
func (d *Directory) recall(f *pools.Farm, q pools.Query) (l pools.Lease) {
	if q.Recalls() && !f.Declares(q.MAC) {
		l, _ = d.Leases.Of(q.MAC)
	}
	return l
}

// next puts the next boot of its node into a plan.
func (d *Directory) next(p *pools.Plan) *pools.Plan {
	if p != nil && d.NextBoots != nil {
		if n := d.NextBoots.Of(p.Node); n != "" {
			return p.WithNextBoot(n)
		}
	}
	return p
}

// Of returns the machine of a MAC.
func (d *Directory) Of(mac pools.MAC) Machine { return d.of(d.Farm.Farm(), mac) }

func (d *Directory) of(f *pools.Farm, mac pools.MAC) Machine {
	if f.HasAddress(mac) {
		return d.machine(f, mac, pools.Lease{})
	}
	l, _ := d.Leases.Of(mac)
	return d.machine(f, mac, l)
}

// machine makes a machine of a MAC and its lease. The client is a boot program:
// by HTTP and TFTP, iPXE and the programs after it ask.
func (d *Directory) machine(f *pools.Farm, mac pools.MAC, l pools.Lease) Machine {
	m := Machine{MAC: mac, Plan: d.next(f.ResolveLeased(pools.Query{MAC: mac, IPXE: true}, l))}
	if m.Plan != nil && m.Plan.Address.IsValid() {
		m.Address = m.Plan.Address.Unmap()
	} else if !l.Released {
		m.Address = l.Address.Unmap()
	}
	return m
}

// At returns the machine that boots from an address; false when it is the address
// of none. The address of a node that declares MACs is that of the MAC which
// booted last, any other address that of its lease.
func (d *Directory) At(addr netip.Addr) (Machine, bool) {
	f := d.Farm.Farm()
	if n, declared := f.NodeAt(addr); declared && len(n.MACs) > 0 {
		last, ok := d.lastOf(n.MACs)
		if !ok {
			last.MAC = n.MACs[0]
		}
		return d.of(f, last.MAC), true
	}
	l, ok := d.Leases.At(addr)
	if !ok {
		return Machine{}, false
	}
	return d.machine(f, l.MAC, l), true
}

// Owns reports whether an address belongs to a machine, and whether mac is one of
// that machine's.
func (d *Directory) Owns(addr netip.Addr, mac pools.MAC) (owned, own bool) {
	if n, declared := d.Farm.Farm().NodeAt(addr); declared && len(n.MACs) > 0 {
		return true, slices.Contains(n.MACs, mac)
	}
	l, ok := d.Leases.At(addr)
	return ok, ok && l.MAC == mac
}

// Named returns the plan, as the farm is now, of the machine that is the node of
// that name, or that was it as unknown hardware and has a name of its own now; nil
// when there is none.
func (d *Directory) Named(node string) *pools.Plan {
	f := d.Farm.Farm()
	mac, l, ok := d.named(f, node)
	if !ok {
		return nil
	}
	p := d.machine(f, mac, l).Plan
	if _, declared := f.Node(node); declared && p != nil && p.Node != node {
		return nil // another node has the MAC now
	}
	return p
}

// named returns the MAC of a node: the first that it declares, else the one that
// was found as this node last, with its lease. The name of unknown hardware holds
// its MAC.
func (d *Directory) named(f *pools.Farm, node string) (mac pools.MAC, l pools.Lease, ok bool) {
	n, declared := f.Node(node)
	switch {
	case declared && len(n.MACs) > 0:
		return n.MACs[0], l, true
	case declared:
		l, ok = d.Leases.Named(node)
		return l.MAC, l, ok
	}
	if mac, ok = pools.CatchAllMAC(node); ok {
		l, _ = d.Leases.Of(mac)
	}
	return mac, l, ok
}

// LastBoot returns the boot of a node that began last, from whichever of its MACs.
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

// lastOf returns the boot of some MACs that began last.
func (d *Directory) lastOf(macs []pools.MAC) (last boots.Record, ok bool) {
	for _, mac := range macs {
		if r, known := d.Boots.Current(mac); known && (!ok || r.Started.After(last.Started)) {
			last, ok = r, true
		}
	}
	return last, ok
}

// Booting reports whether the node of that name may be booting: its last boot began
// less than [boots.Longest] ago.
func (d *Directory) Booting(node string) bool {
	now := time.Now
	if d.Now != nil {
		now = d.Now
	}
	r, ok := d.LastBoot(node)
	return ok && now().Sub(r.Started) < boots.Longest
}

// Unknown returns the machines that asked for an address and that no node declares
// now. A machine can be declared after it asked, or be ignored, or be plugged in
// where its node does not belong.
func (d *Directory) Unknown() []pools.Unknown {
	if d.Unknowns == nil {
		return nil
	}
	f := d.Farm.Farm()
	return slices.DeleteFunc(d.Unknowns.List(), func(u pools.Unknown) bool { return f.Declares(u.MAC) })
}
