package dhcp

import (
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// The names of BOOTP messages (RFC 951) in an [Exchange].
const (
	bootRequest = "BOOTREQUEST"
	bootReply   = "BOOTREPLY"
)

// bootp answers a BOOTP request of a node that has an address of its own (RFC 1534,
// section 2). BOOTP has no lease times, so that nothing else can be given to such a
// client for ever.
func (a *answer) bootp() *Message {
	if a.plan.CatchAll || !a.plan.Address.IsValid() {
		a.x.Why = "asks by BOOTP, which has no leases, and no node has an address for it"
		return a.silence(NotOurs, nil)
	}
	own, err := a.own(netip.Addr{})
	if err == nil {
		err = a.commit(own)
	}
	if err != nil {
		return a.silence(NoAddress, err)
	}
	a.x.Decision, a.x.Address = Acknowledged, own
	m := a.newReply(dhcpv4.MessageTypeNone)
	m.yiaddr = own
	a.addOptions(m, own)
	a.broadcastToPool(m)
	return m
}
