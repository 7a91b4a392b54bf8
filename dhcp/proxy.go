package dhcp

import (
	"errors"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp/wire"
	"drover/pools"
)

// observedLease is the time for which the store keeps an address that another
// server gave. It is short because the other server may give the address to
// another machine at any time. Until that machine appears, the store still
// knows the last holder.
const observedLease = time.Minute

// proxy answers on port 67 when another server gives the addresses. Boot
// programs get an offer of boot data without an address. They combine both
// offers, and many send no further request. No machine gets a NAK.
func (a *answer) proxy() *Message {
	switch a.messageType {
	case dhcpv4.MessageTypeDiscover:
		if !a.boots() {
			a.warnNoLoader()
			return a.silence(Observed, nil)
		}
		if !a.req.Giaddr.IsValid() {
			a.leases.Leave(a.MAC, netip.Addr{}, a.now) // what was noted in an earlier boot
		}
		a.x.Decision = Offered
		offer := a.bootData(dhcpv4.MessageTypeOffer)
		if !a.x.Giaddr.IsValid() {
			offer.flags |= broadcastFlag // an offer without an address cannot be unicast
		}
		return offer
	case dhcpv4.MessageTypeRequest:
		a.observe(a.requested())
	case dhcpv4.MessageTypeInform:
		a.observe(a.req.informed())
	case dhcpv4.MessageTypeRelease:
		a.x.Address = a.req.ciaddr()
		a.leases.Release(a.plan, a.x.Address, a.now)
	case dhcpv4.MessageTypeDecline:
		a.x.Address = a.req.requestedOption()
		a.leases.Leave(a.MAC, netip.Addr{}, a.now)
	case dhcpv4.MessageTypeNone: // BOOTP: an answer is one with an address
	default:
		return a.unexpectedType()
	}
	return a.silence(Observed, nil)
}

// boot answers on port 4011 in proxy mode.
func (a *answer) boot() *Message {
	switch a.messageType {
	case dhcpv4.MessageTypeRequest, dhcpv4.MessageTypeInform:
	default:
		return a.unexpectedType()
	}
	a.observe(a.requested())
	if !a.boots() {
		a.warnNoLoader()
		return a.silence(Unusable, errors.New("a request for boot data from what does not boot, or has no loader"))
	}
	a.x.Decision = Acknowledged
	ack := a.bootData(dhcpv4.MessageTypeAck)
	ack.ciaddr = a.req.ciaddr()
	return ack
}

// boots reports whether the client is a boot program that has a file to load.
func (a *answer) boots() bool { return a.netboot() && a.plan.Boot.File != "" }

// bootData returns a reply with the file to load and without network options.
// The class marks it as a proxyDHCP reply. With that class iPXE and UEFI take
// siaddr and file from this reply, and addresses from the other server's.
func (a *answer) bootData(t dhcpv4.MessageType) *Message {
	m := a.newReply(t)
	for i := range a.plan.Options {
		opt := &a.plan.Options[i]
		if (opt.Code == wire.OptVendor || opt.Code == wire.OptIPXE || opt.Forced) && !reserved(opt.Code) && opt.For(a.Class) {
			m.options.Set(opt.Code, opt.Data)
		}
	}
	a.addBoot(m)
	if !a.httpClass() {
		a.addPXE(m)
	}
	a.addBootItem(m)
	a.fit(m)
	return m
}

// observe records the address that a machine requests or has from another
// server, so that HTTP and TFTP know the machine at it. No answer waits for the
// record to reach the disk. A relay agent says nothing that can be confirmed: it
// may have copied the packet of a pod.
func (a *answer) observe(address netip.Addr) {
	a.x.Address = address
	if !unicast(address) || a.req.Giaddr.IsValid() {
		return
	}
	plan := *a.plan
	plan.Lease = pools.Duration(observedLease)
	if _, err := a.leases.Commit(&plan, address, a.now); err != nil {
		a.x.warn("its address is not noted: " + err.Error())
	}
}
