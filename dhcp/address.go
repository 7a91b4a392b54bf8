package dhcp

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp/wire"
	"drover/pools"
)

// requested returns the address that a REQUEST or DECLINE is for. The fields of
// a REQUEST show the state of the client (RFC 2131, section 4.3.2):
//
//	            server id  option 50  ciaddr
//	SELECTING   yes        offered    zero
//	INIT-REBOOT no         had        zero
//	RENEWING    no         no         has
//	REBINDING   no         no         has
//
// Some ROMs put the offered address into ciaddr. systemd-networkd puts the
// declined address there.
func (a *answer) requested() netip.Addr {
	if requested := a.req.requestedOption(); requested.IsValid() {
		return requested
	}
	return a.req.ciaddr()
}

// own returns the address that belongs to the machine.
//
// A boot program gets the planned address. All cards of the machine lose their
// leases of other addresses, because the machine has just been switched on. An
// operating system keeps its address for as long as its lease is active, even
// when the config has changed meanwhile.
func (a *answer) own(preferred netip.Addr) (netip.Addr, error) {
	if a.netboot() {
		own, err := a.planned(preferred)
		if err == nil {
			for _, mac := range a.plan.MACs {
				a.leases.Leave(mac, own, a.now)
			}
		}
		return own, err
	}
	if a.plan.Retired && preferred == a.plan.Address {
		return preferred, nil // whatever was leased in its name since: it runs on its own address
	}
	if a.held, _ = a.leases.Holds(a.MAC, a.now); !a.usable(a.held) {
		if a.unrecorded() {
			return netip.Addr{}, errNoRecord
		}
		return a.planned(preferred)
	}
	if a.plan.Address.IsValid() && a.held != a.plan.Address {
		a.x.Why = "keeps its lease; from the next boot on its address is " + a.plan.Address.String()
	}
	return a.held, nil
}

// errNoRecord is silence for a machine that claims a lease which the store does not have.
var errNoRecord = errors.New("no lease of it is known: it has to send a DISCOVER")

// unrecorded reports whether unknown hardware without a lease asks for an address of the
// range that it says it has. A server without a record of the client MUST be silent after
// a reboot (RFC 2131, section 4.3.2). One that renews runs on the address: it keeps it,
// unless another server may have leased it, so that lost leases come back by themselves.
func (a *answer) unrecorded() bool {
	if !a.plan.CatchAll || a.held.IsValid() || a.messageType != dhcpv4.MessageTypeRequest || a.req.options.Has(wire.OptServerID) {
		return false
	}
	return (!a.Renewing || a.plan.Yields) && a.plan.Range.Contains(a.requested())
}

// yields reports whether a refusal is silence: another server may have given the address
// to unknown hardware. A machine that chose this server gets its NAK.
func (a *answer) yields() bool { return a.plan.Yields && !a.req.options.Has(wire.OptServerID) }

// planned returns the address of the node, or else one from the range of its
// pool. An address that is not IPv4 is an error.
func (a *answer) planned(preferred netip.Addr) (own netip.Addr, err error) {
	own = a.plan.Address
	if l := a.plan.Holder; l != nil {
		return own, &pools.LeasedError{Node: a.plan.Node, Lease: *l}
	}
	if !own.IsValid() {
		if own, a.fresh, err = a.leases.Offer(a.plan, preferred, a.now); err != nil {
			return own, err
		}
	}
	if !own.Is4() {
		return own, fmt.Errorf("address %q of node %q is not IPv4", own, a.plan.Node)
	}
	return own, nil
}

// keepsRunning reports whether a node may keep an address that is neither its
// own nor leased to it: the config gave it that address when it booted. The
// commit checks that no other machine has the address.
//
// Only an operating system that renews may keep such an address. After a reboot
// it can take another one. It sends from the address, unless a relay agent is
// between, and the address has no other use in the config.
func (a *answer) keepsRunning(requested netip.Addr) bool {
	if a.plan.CatchAll || a.netboot() || !a.Renewing || !a.usable(requested) || !a.plan.Spare(requested) {
		return false
	}
	if !a.req.Giaddr.IsValid() && a.req.From != requested {
		return false
	}
	a.x.Why = "runs on an address that is not its own; from the next boot on that is " + a.plan.Address.String()
	return true
}

// viaWrongRelay reports whether a relay forwarded a renewal from a network
// other than the lease's. dhcrelay captures frames. It therefore also relays
// renewals that it only routes, as if they came from the interface where it
// captured them. The renewal itself arrives too, and a NAK to the copy would
// stop a healthy machine.
func (a *answer) viaWrongRelay(requested netip.Addr) bool {
	return a.held == requested && a.Renewing && a.req.Giaddr.IsValid()
}

// commit stores a lease of an address that the config does not give to the
// machine. A node that was not found by its MAC also leases its own address:
// HTTP and TFTP know machines only by their MAC, and find such a node by its
// lease.
func (a *answer) commit(given netip.Addr) (err error) {
	if given == a.plan.Address && a.plan.Matched == "" {
		return nil
	}
	if a.wait, err = a.leases.Commit(a.plan, given, a.now); err != nil {
		return fmt.Errorf("lease %s: %w", given, err)
	}
	return nil
}

// declines takes an address out of use. It returns false for an address that
// this server did not give to the machine. The address of a node stays in use,
// because the node has no other.
func (a *answer) declines(address netip.Addr) bool {
	switch {
	case address == a.plan.Address:
		a.x.warn(fmt.Sprintf("somebody else uses %s, the address of node %q: find the machine that answers ARP for it", address, a.plan.Node))
		if a.plan.Matched != "" {
			return a.leases.Release(a.plan, address, a.now)
		}
		return true
	case !a.leases.Decline(a.plan, address, "found in use by "+a.MAC.String(), a.now):
		return false
	}
	a.x.warn(fmt.Sprintf("somebody uses %s whom nobody knows: it is not leased for a while", address))
	return true
}

// usable reports whether a machine can have the address on the client's network.
func (a *answer) usable(address netip.Addr) bool {
	subnet, ok := a.plan.SubnetOf(address)
	switch {
	case !ok, address == subnet.Router, address == a.server.Address, address == a.plan.Boot.Server, a.plan.IsServer(address):
		return false
	case subnet.CIDR.Bits() > 30: // RFC 3021: every address is that of a host
		return true
	}
	return address != subnet.CIDR.Masked().Addr() && address != broadcast(subnet.CIDR)
}
