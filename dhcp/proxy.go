package dhcp

import (
	"errors"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/pools"
)

// observedLease is how long the word of a client counts that another server
// gave it an address. It is short because the other server may give the address
// to somebody else at any time; until that machine shows up, the store still
// knows who had it last.
const observedLease = time.Minute

// bootPort is where boot programs ask that have an address of another server.
const bootPort = 4011

// ReplyBoot answers one request that came to port 4011 in proxy mode, where
// boot programs ask for boot data when they have an address of another server
// (PXE 2.1, section 2.2.3). The reply goes to the address and port that the
// request came from: iPXE asks from port 68, UEFI from 4011.
func (s *Server) ReplyBoot(req *dhcpv4.DHCPv4, now time.Time) (*dhcpv4.DHCPv4, Exchange) {
	m, x := s.reply(req, now, bootPort)
	return m.dhcpv4(), x
}

// proxy answers on port 67 beside another server that gives the addresses. Boot
// programs are offered boot data without an address; they put both offers
// together, and many ask no further. Nobody is ever refused.
func (a *ask) proxy() *message {
	switch a.messageType {
	case dhcpv4.MessageTypeDiscover:
		if !a.boots() {
			return a.silence(Observed, nil)
		}
		a.x.Decision = Offered
		offer := a.bootData(dhcpv4.MessageTypeOffer)
		if !a.x.Giaddr.IsValid() {
			offer.flags |= broadcastFlag // it has no address that a frame could be sent to
		}
		return offer
	case dhcpv4.MessageTypeRequest:
		a.observe(a.wanted())
	case dhcpv4.MessageTypeInform:
		a.observe(addr(a.req.ClientIPAddr))
	case dhcpv4.MessageTypeRelease:
		a.x.Address = addr(a.req.ClientIPAddr)
		if l := a.server.Leases; l != nil && a.x.Address.IsValid() {
			l.Release(a.mac, a.x.Address, a.now)
		}
	case dhcpv4.MessageTypeDecline:
		a.x.Address = addr(a.req.RequestedIPAddress())
		if l := a.server.Leases; l != nil {
			l.Leave(a.mac, a.now)
		}
	default:
		return a.senseless()
	}
	return a.silence(Observed, nil)
}

// bootAnswer answers on port 4011.
func (a *ask) bootAnswer() *message {
	switch a.messageType {
	case dhcpv4.MessageTypeRequest, dhcpv4.MessageTypeInform:
	default:
		return a.senseless()
	}
	a.observe(a.wanted())
	if !a.boots() {
		return a.silence(Unusable, errors.New("a request for boot data from what does not boot, or has no loader"))
	}
	a.x.Decision = Acknowledged
	ack := a.bootData(dhcpv4.MessageTypeAck)
	ack.ciaddr = addr(a.req.ClientIPAddr)
	return ack
}

// boots tells whether there is something to load for the program that asks.
func (a *ask) boots() bool { return a.netboot() && a.plan.Boot.File != "" }

// bootData is a reply that tells what to load and nothing of the network. The
// class marks it as one of proxyDHCP; with it iPXE and UEFI take siaddr and
// file from here, and addresses from the other server.
func (a *ask) bootData(t dhcpv4.MessageType) *message {
	m := a.reply(t)
	for _, opt := range a.plan.Options {
		if opt.Code == optVendor || opt.Code == optIPXE {
			m.set(opt.Code, opt.Data)
		}
	}
	a.addBoot(m)
	if !a.httpClass() {
		addPXE(m)
	}
	a.shorten(m)
	return m
}

// observe notes the address that a machine asks another server for, or has from
// it, so that HTTP and TFTP know whose it is. Nobody waits until that is on disk,
// and nothing depends on it here.
func (a *ask) observe(address netip.Addr) {
	a.x.Address = address
	if !unicast(address) || a.server.Leases == nil {
		return
	}
	plan := *a.plan
	plan.Lease = pools.Duration(observedLease)
	if _, err := a.server.Leases.Commit(&plan, address, a.now); err != nil {
		a.x.Warning = "its address is not noted: " + err.Error()
	}
}
