package state

import (
	"net/netip"
	"strings"
	"time"

	"drover/pools"
)

// quarantine is how long no machine gets an address that one declined. A device
// that uses an address without a lease most often has it set by hand, and keeps it for
// days; each new attempt makes a client start anew. But a card that declines
// everything, or a host that answers every ARP probe, puts a whole range out of
// service. An hour is seldom enough for the first, and short enough for the second;
// the operator can end it earlier ([Leases.End]). RFC 2131 leaves the time open.
const quarantine = time.Hour

// maxWhy bounds the reason of a quarantine, in bytes: a client can supply part of
// it.
const maxWhy = 200

// Release ends the lease of a machine that no longer uses addr. The machine gets the
// same address again if no other one needs it. A lease that it does not have is
// ignored. The end of a lease is stored asynchronously: when a crash forgets it, the
// lease expires.
func (l *Leases) Release(mac pools.MAC, addr netip.Addr, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.byMAC[mac]; e != nil && e.Address == addr && e.inForce(now) {
		l.end(e, now)
	}
}

// Leave ends the lease of a machine that boots anew, unless it is of the address
// keep.
func (l *Leases) Leave(mac pools.MAC, keep netip.Addr, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.byMAC[mac]; e != nil && e.Address != keep && e.inForce(now) {
		l.end(e, now)
	}
}

// Decline puts addr in quarantine for an hour when the machine holds it or was
// offered it, else it returns false and does nothing. why is the reason
// in [Leases.List].
func (l *Leases) Decline(mac pools.MAC, addr netip.Addr, why string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	lease := pools.Lease{MAC: mac, Address: addr, Expires: now.Add(quarantine).UTC(), Declined: reason(why)}
	if f, ok := l.offers.of(mac, now); ok && f.addr == addr {
		lease.Node, lease.Pool = f.node, f.pool
	} else if e := l.byMAC[mac]; e != nil && e.Address == addr && e.inForce(now) {
		lease.Node, lease.Pool = e.Node, e.Pool
	} else {
		return false
	}
	l.withdraw(mac)
	// A lease of addr is the machine's own, or expired: else it would not be on
	// offer.
	l.keepAsync(lease)
	return true
}

// reason returns why, bounded, and never empty: that would be no quarantine.
func reason(why string) string {
	if why == "" {
		return "declined"
	}
	return clip(why, maxWhy)
}

// clip bounds a text, in bytes, and makes it valid UTF-8.
func clip(s string, limit int) string { return strings.ToValidUTF8(s[:min(len(s), limit)], "?") }

// End frees an address for the operator: one that a machine holds, or one in
// quarantine. It returns false when addr is neither. A machine that still uses
// its address learns of it at its next request.
func (l *Leases) End(addr netip.Addr, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.byAddr[addr]
	if e == nil || !e.inForce(now) {
		return false
	}
	l.end(e, now)
	return true
}

// end ends a lease or a quarantine before its time.
func (l *Leases) end(e *keptLease, now time.Time) {
	lease := e.Lease
	lease.Released, lease.Expires = true, now.UTC()
	l.keepAsync(lease)
}

// keepAsync keeps a lease that no caller waits for.
func (l *Leases) keepAsync(lease pools.Lease) {
	l.keep(lease, 0)
	l.engine.Async(putLease(&lease))
}
