package dhcp

import (
	"fmt"
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// wanted is the address that a REQUEST is for. What the client fills in tells
// the state that it is in (RFC 2131, section 4.3.2):
//
//	            server id  option 50  ciaddr
//	SELECTING   yes        offered    zero
//	INIT-REBOOT no         had        zero
//	RENEWING    no         no         has
//	REBINDING   no         no         has
//
// Some ROMs put the offered address into ciaddr.
func (a *ask) wanted() netip.Addr {
	if requested := addr(a.req.RequestedIPAddress()); requested.IsValid() {
		return requested
	}
	return addr(a.req.ClientIPAddr)
}

// own returns the address that belongs to the machine.
//
// A boot program gets what the plan says, and the machine loses what it had
// leased before: it has just been switched on. An operating system keeps the
// address that it runs on for as long as its lease is good, whatever the config
// says meanwhile.
func (a *ask) own(want netip.Addr) (netip.Addr, error) {
	if !a.netboot() {
		if held, ok := a.held(); ok && a.usable(held) {
			if a.plan.Address.IsValid() && held != a.plan.Address {
				a.x.Why = "keeps its lease; from the next boot on its address is " + a.plan.Address.String()
			}
			return held, nil
		}
	}
	own, err := a.planned(want)
	if err == nil && a.netboot() {
		a.leave(own)
	}
	return own, err
}

// planned is the address that the plan has for the machine: the node's, or one
// from the range of its pool.
func (a *ask) planned(want netip.Addr) (own netip.Addr, err error) {
	own = a.plan.Address
	if !own.IsValid() {
		if a.server.Leases == nil {
			return own, fmt.Errorf("pool %q leases addresses, but there is no lease store", a.plan.Pool)
		}
		if own, a.x.fresh, err = a.server.Leases.Offer(a.plan, want, a.now); err != nil {
			return own, err
		}
	}
	if !own.Is4() {
		return own, fmt.Errorf("address %q of node %q is not IPv4", own, a.plan.Node)
	}
	return own, nil
}

// held is the active lease of the machine.
func (a *ask) held() (netip.Addr, bool) {
	if a.server.Leases == nil {
		return netip.Addr{}, false
	}
	return a.server.Leases.Holds(a.mac, a.now)
}

// leave ends the leases of a machine that boots, on all its cards, but for that
// of the address that it will have.
func (a *ask) leave(own netip.Addr) {
	if a.server.Leases == nil {
		return
	}
	for _, mac := range a.plan.MACs {
		if held, ok := a.server.Leases.Holds(mac, a.now); ok && held != own {
			a.server.Leases.Leave(mac, a.now)
		}
	}
}

// adopts tells whether a node may go on using an address that is neither its
// own nor leased to it: the one that the config gave it when it booted. Whether
// somebody else has it the commit finds out.
//
// Only an operating system that renews says that it runs on an address. One
// that comes back with it after a reboot can take another one.
func (a *ask) adopts(wanted netip.Addr) bool {
	if a.plan.CatchAll || a.netboot() || !usesItsAddress(a.req) || !a.usable(wanted) {
		return false
	}
	a.x.Why = "runs on an address that is not its own; from the next boot on that is " + a.plan.Address.String()
	return true
}

// mislaid tells whether a relay says that a machine is where its lease is not
// of, although it runs on it. dhcrelay listens to frames, and relays the
// renewals, too, that it only routes, as if they came from the interface where
// it saw them. The renewal itself comes beside; a NAK would be for a machine
// that is well.
func (a *ask) mislaid(wanted netip.Addr) bool {
	held, ok := a.held()
	return ok && held == wanted && a.renewing && a.x.Giaddr.IsValid()
}

// commit makes a lease of an address that the config does not give the machine.
// A node that was not found by its MAC has one of its own address too: HTTP and
// TFTP know machines by their MAC alone, and find the node by its lease.
func (a *ask) commit(given netip.Addr) (err error) {
	if given == a.plan.Address && a.plan.Matched == "" {
		return nil
	}
	if a.server.Leases == nil {
		return fmt.Errorf("node %q needs a lease of %s, but there is no lease store", a.plan.Node, given)
	}
	if a.x.wait, err = a.server.Leases.Commit(a.plan, given, a.now); err != nil {
		return fmt.Errorf("lease %s: %w", given, err)
	}
	return nil
}

// declines takes an address out of use. It returns false when the machine was
// not given it. The address of a node stays its own: it would not get another.
func (a *ask) declines(address netip.Addr) bool {
	switch {
	case !address.IsValid():
		return false
	case address == a.plan.Address:
		a.x.Warning = fmt.Sprintf("somebody else uses %s, the address of node %q: find the machine that answers ARP for it", address, a.plan.Node)
		if a.plan.Matched != "" && a.server.Leases != nil {
			a.server.Leases.Release(a.mac, address, a.now)
		}
		return true
	case a.server.Leases == nil || !a.server.Leases.Decline(a.mac, address, "found in use by "+a.mac.String(), a.now):
		return false
	}
	a.x.Warning = fmt.Sprintf("somebody uses %s whom nobody knows: it is not leased for a while", address)
	return true
}

// usable tells whether a machine can have an address on the wire that this one
// asks from.
func (a *ask) usable(address netip.Addr) bool {
	subnet, ok := a.plan.SubnetOf(address)
	switch {
	case !ok, address == subnet.Router, address == a.server.Address, address == a.plan.Boot.Server:
		return false
	case subnet.CIDR.Bits() > 30: // RFC 3021: all addresses are of hosts
		return true
	}
	return address != subnet.CIDR.Masked().Addr() && address != broadcast(subnet.CIDR)
}

// usesItsAddress tells whether a request comes from the address in ciaddr. In
// the others that field should be zero; some ROMs fill it all the same.
func usesItsAddress(req *dhcpv4.DHCPv4) bool {
	switch req.MessageType() {
	case dhcpv4.MessageTypeRequest:
		return !req.Options.Has(dhcpv4.OptionServerIdentifier) && !req.Options.Has(dhcpv4.OptionRequestedIPAddress)
	case dhcpv4.MessageTypeRelease, dhcpv4.MessageTypeInform:
		return true
	}
	return false
}
