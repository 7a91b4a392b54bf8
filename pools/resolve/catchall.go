package resolve

import (
	"slices"

	"drover/pools"
)

// catchall returns the catch-all pool of a machine that no node declares, or nil: the
// pool of its lease, or the first of the file that takes it. The lease is that of the
// machine, or the zero Lease.
//
// The programs of one boot describe themselves differently: firmware sends its
// architecture, iPXE its user class, drover-init and an operating system neither. So the
// program that comes first chooses the pool, and the later ones stay in it while the
// machine has the lease and is on the same network. The next boot may choose anew.
func (f *Farm) catchall(q *Query, l *pools.Lease) *entry {
	leased := f.catchallNamed(l.Pool)
	if !q.byDHCP() && l.Pool != "" {
		return leased
	}
	var fits *entry
	if i := slices.IndexFunc(f.catchalls, func(e *entry) bool { return f.takes(e, q) }); i >= 0 {
		fits = f.catchalls[i]
	}
	if leased != nil && f.keeps(leased, q) && !q.choosesAnew(leased, fits) {
		return leased
	}
	return fits
}

// catchallNamed returns the catch-all pool of that name, or nil.
func (f *Farm) catchallNamed(pool string) *entry {
	if i := slices.IndexFunc(f.catchalls, func(e *entry) bool { return e.Pool == pool }); i >= 0 {
		return f.catchalls[i]
	}
	return nil
}

// ClaimMAC calls claim with each catch-all pool that may take a machine by its MAC, in their order,
// until one has no other condition.
func (f *Farm) ClaimMAC(mac pools.MAC, claim func(pool string) error) error {
	for _, e := range f.catchalls {
		m := f.Config.Pools[e.pool].Match
		if m.MAC == "" || !e.matcher.mac.matches(mac.String()) {
			continue
		}
		if err := claim(e.Pool); err != nil {
			return err
		}
		if m == (pools.Match{MAC: m.MAC}) {
			return nil
		}
	}
	return nil
}

// takes reports whether a catch-all pool takes the client by its match and its network.
func (f *Farm) takes(e *entry, q *Query) bool {
	return (e.matcher == nil || e.matcher.matches(q)) && f.leasesTo(e, q)
}

// keeps reports whether the client is still where the catch-all pool of its lease takes
// machines: on its network, and at the port or switch of its match.
func (f *Farm) keeps(e *entry, q *Query) bool {
	return (e.matcher == nil || e.matcher.located(q)) && f.leasesTo(e, q)
}

// leasesTo reports whether the range of a catch-all pool is on the network of the client.
// Behind a relay agent that is in no subnet no address of a range could be used (RFC
// 2131, section 4.3.1). The server's own address may be in no subnet.
func (f *Farm) leasesTo(e *entry, q *Query) bool {
	own := e.subnetOf(q.IPv6)
	if q.Relayed && own >= 0 && f.linkSubnet(q.Link) < 0 {
		return false
	}
	return f.sameNetwork(q.Link, own) && e.serves(q.IPv6)
}

// choosesAnew reports whether the client leaves the catch-all pool of its lease for the
// one whose match it fulfils, which may be nil. Only a boot program does, and only for a
// pool with a match. An iPXE that the firmware loaded does so only for a pool of user
// classes, and not if the firmware was chosen by a match: it sends the firmware's class
// and architecture, or others.
func (q *Query) choosesAnew(leased, fits *entry) bool {
	switch {
	case fits == nil || fits.matcher == nil || !q.Boots():
		return false
	case q.Chained:
		return fits.matcher.userClass != nil && (leased.matcher == nil || leased.matcher.userClass != nil)
	}
	return true
}

// Boots reports whether the client is known to be a boot program, by its architecture or
// its class. An operating system sends no architecture.
func (q *Query) Boots() bool {
	_, uboot := pools.UBootClass(q.Class)
	return q.Firmware != "" || len(q.Archs) > 0 || q.IPXE || uboot || q.pxeClass() || q.httpClass()
}

// LeaseChooses reports whether the lease of a machine whose MAC no node declares can have
// another node or pool than the query alone. If not, [Farm.Resolve] needs no lease for
// DHCP.
func (f *Farm) LeaseChooses() bool {
	return len(f.byIdentity.uuid) > 0 || len(f.byIdentity.serial) > 0 ||
		slices.ContainsFunc(f.catchalls, func(e *entry) bool { return e.matcher != nil })
}
