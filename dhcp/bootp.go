package dhcp

import (
	"bytes"
	"fmt"
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp/wire"
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
	if name := a.req.serverName(); name != "" && !a.isNamed(name) {
		a.x.Why = fmt.Sprintf("asks the server %q alone", name)
		return a.silence(OtherServer, nil)
	}
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

// serverName returns the server that a BOOTP client wants an answer of (sname, RFC 951,
// section 3); "" for any, and for a field that holds options.
func (r *Request) serverName() string {
	if flags := r.options.Get(wire.OptOverload); len(flags) == 1 && flags[0]&wire.OverloadSname != 0 {
		return ""
	}
	name, _, _ := bytes.Cut(r.header[wire.SnameAt:wire.FileAt], []byte{0})
	return string(name)
}

// isNamed reports whether name, in a request, is this server: one of its addresses.
func (a *answer) isNamed(name string) bool {
	id, err := netip.ParseAddr(name)
	return err == nil && (id == a.server.Address || id == a.serverID() || a.plan.IsServer(id))
}
