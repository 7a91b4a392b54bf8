package dhcp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/pools"
)

// Reply answers one request that came to port 67: the reply to send, nil for
// silence, and what it came to. It opens no socket and reads no clock; now is
// the time of the request. Leases are the only state it changes: an address
// that it acknowledges is committed, one that comes back is released. The
// exchange tells what there is to wait for before the reply may leave.
func (s *Server) Reply(req *dhcpv4.DHCPv4, now time.Time) (*dhcpv4.DHCPv4, Exchange) {
	m, x := s.reply(req, now, serverPort)
	return m.dhcpv4(), x
}

// reply answers a request that came to a port.
func (s *Server) reply(req *dhcpv4.DHCPv4, now time.Time, port int) (*message, Exchange) {
	c, err := newClient(req, s.Address)
	x := c.exchange(now)
	x.Giaddr = addr(req.GatewayIPAddr)
	if err != nil {
		x.Decision, x.Err = Malformed, err
		return nil, x
	}
	query := c.query()
	plan := s.Farm.Resolve(query)
	if plan == nil {
		x.Decision, x.Why = NotOurs, s.Farm.WhyNot(query)
		return nil, x
	}
	x.Plan, x.Why = plan, knownBy(plan)
	a := ask{server: s, req: req, client: c, plan: plan, now: now, x: &x}
	var m *message
	switch {
	case port == bootPort:
		m = a.bootAnswer()
	case s.Mode == pools.DHCPProxy:
		m = a.proxy()
	default:
		m = a.answer()
	}
	if m != nil {
		x.Reply = typeName(m.messageType())
	}
	return m, x
}

// knownBy tells how the machine was found.
func knownBy(p *pools.Plan) string {
	switch {
	case p.Matched != "":
		return "known by " + p.Matched
	case p.CatchAll:
		return "unknown hardware"
	}
	return "known by MAC"
}

// ask is one request of one of our machines, being answered. Its methods
// return the reply, nil for silence, and fill the exchange.
type ask struct {
	client
	server *Server
	req    *dhcpv4.DHCPv4
	plan   *pools.Plan
	now    time.Time
	x      *Exchange
}

func (a *ask) answer() *message {
	switch a.messageType {
	case dhcpv4.MessageTypeDiscover:
		return a.discover()
	case dhcpv4.MessageTypeRequest:
		return a.request()
	case dhcpv4.MessageTypeDecline:
		return a.decline()
	case dhcpv4.MessageTypeRelease:
		return a.release()
	case dhcpv4.MessageTypeInform:
		return a.inform()
	}
	return a.senseless()
}

// silence sends nothing.
func (a *ask) silence(d Decision, err error) *message {
	a.x.Decision, a.x.Err = d, err
	return nil
}

// senseless is the silence for a type of message that clients do not send.
func (a *ask) senseless() *message {
	return a.silence(Unusable, fmt.Errorf("message type %d is not one of a client", a.messageType))
}

// discover offers the machine its address.
func (a *ask) discover() *message {
	own, err := a.own(addr(a.req.RequestedIPAddress()))
	if err != nil {
		return a.silence(NoAddress, err)
	}
	a.x.Decision = Offered
	return a.lease(dhcpv4.MessageTypeOffer, own)
}

// request acknowledges an address, or refuses it.
func (a *ask) request() *message {
	if !a.toUs() {
		return a.silence(OtherServer, nil)
	}
	wanted := a.wanted()
	if !wanted.IsValid() {
		return a.silence(Unusable, errors.New("a REQUEST for no address"))
	}
	a.x.Address = wanted
	own, err := a.own(wanted)
	if err == nil && own != wanted && !a.adopts(wanted) {
		if a.mislaid(wanted) {
			return a.silence(Unusable, fmt.Errorf("a renewal of %s, relayed from the network of %s", wanted, a.link))
		}
		return a.refuse("yours is "+own.String(), "its address is "+own.String())
	}
	if err == nil {
		err = a.commit(wanted)
	}
	switch {
	case errors.Is(err, pools.ErrRefused):
		return a.refuse("ask for another", err.Error())
	case err != nil:
		return a.silence(NoAddress, err)
	}
	a.x.Decision = Acknowledged
	ack := a.lease(dhcpv4.MessageTypeAck, wanted)
	if wanted == addr(a.req.ClientIPAddr) {
		ack.ciaddr = wanted // renewing: that is where the ACK goes
	}
	return ack
}

// decline takes note that the client found an address in use that it was given.
func (a *ask) decline() *message {
	if !a.toUs() {
		return a.silence(OtherServer, nil)
	}
	if a.x.Address = addr(a.req.RequestedIPAddress()); !a.x.Address.IsValid() {
		a.x.Address = addr(a.req.ClientIPAddr) // systemd-networkd
	}
	if !a.declines(a.x.Address) {
		return a.silence(Unusable, errors.New("a DECLINE of an address that it was not given"))
	}
	return a.silence(Declined, nil)
}

// release gives a leased address back. A fixed one stays the node's.
func (a *ask) release() *message {
	if !a.toUs() {
		return a.silence(OtherServer, nil)
	}
	a.x.Address = addr(a.req.ClientIPAddr)
	if !a.x.Address.IsValid() {
		return a.silence(Unusable, errors.New("a RELEASE of no address"))
	}
	if l := a.server.Leases; l != nil {
		l.Release(a.mac, a.x.Address, a.now)
	}
	return a.silence(Released, nil)
}

// inform tells a machine with an address of its own about the network. Leases
// do not come into it (RFC 2131, section 4.3.5).
func (a *ask) inform() *message {
	a.x.Address = addr(a.req.ClientIPAddr)
	if !a.usable(a.x.Address) {
		return a.silence(Unusable, errors.New("an INFORM from an address that no machine can have where it asks from"))
	}
	a.x.Decision = Informed
	ack := a.reply(dhcpv4.MessageTypeAck)
	ack.ciaddr = a.x.Address
	a.fill(ack, a.x.Address)
	return ack
}

// refuse is the DHCPNAK: the client must begin anew. Only machines that are
// ours get here, so that a NAK never hits the client of another server. The
// client is told less than the log: not who has an address.
func (a *ask) refuse(told, why string) *message {
	a.x.Decision, a.x.Warning = Refused, why
	nak := a.reply(dhcpv4.MessageTypeNak)
	nak.putText(optMessage, "this address is not yours, "+told)
	if a.x.Giaddr.IsValid() {
		// The client cannot be reached at an address it must not use
		// (RFC 2131, section 4.3.2): the relay has to broadcast.
		nak.flags |= broadcastFlag
	}
	return nak
}

// lease is an OFFER or ACK of an address.
func (a *ask) lease(t dhcpv4.MessageType, given netip.Addr) *message {
	a.x.Address = given
	m := a.reply(t)
	m.yiaddr = given
	addLease(m, a.plan)
	a.fill(m, given)
	if a.plan.Broadcast && !a.x.Giaddr.IsValid() {
		m.flags |= broadcastFlag
	}
	return m
}

// fill adds the options of the plan, and for a boot program its loader. The
// machine has, or will have, the address given.
func (a *ask) fill(m *message, given netip.Addr) {
	subnet, ok := a.plan.SubnetOf(given)
	if !ok {
		subnet = a.plan.Subnet
	}
	a.addNetwork(m, &subnet)
	a.addName(m, given)
	a.addBoot(m)
	a.shorten(m)
}

// shorten makes a reply fit the client.
func (a *ask) shorten(m *message) {
	if left := fit(m, sizeLimit(a.req)); left != nil {
		a.x.Warning = fmt.Sprintf("answer too long for the client: left out options %d", left)
	}
}

// reply begins a reply as table 3 of RFC 2131 has it.
func (a *ask) reply(t dhcpv4.MessageType) *message {
	m := newMessage()
	m.xid, m.flags, m.giaddr, m.mac = a.req.TransactionID, a.req.Flags, a.x.Giaddr, a.mac
	m.put(optMessageType, byte(t))
	m.putAddr(optServerID, a.serverID())
	for _, code := range echoed() {
		if v, ok := a.req.Options[code]; ok {
			m.set(code, v)
		}
	}
	return m
}

// serverID is who we are in the client's eyes: ourselves, or the relay agent
// that wants to see all that the client says (RFC 5107).
func (a *ask) serverID() netip.Addr {
	if id := a.relay.serverID; id.IsValid() {
		return id
	}
	return a.server.Address
}

// toUs tells whether the request may be meant for us. One that names no server
// may: systemd-networkd leaves option 54 out of RELEASE and DECLINE, although
// RFC 2131, table 5, has it there, and sends them to the server's address.
func (a *ask) toUs() bool {
	if !a.req.Options.Has(dhcpv4.OptionServerIdentifier) {
		return true
	}
	id := addr(a.req.ServerIdentifier())
	return id.IsValid() && (id == a.server.Address || id == a.serverID())
}

// addr turns an address of a packet into ours; the zero Addr when there is
// none.
func addr(ip net.IP) netip.Addr {
	a, ok := netip.AddrFromSlice(ip.To4())
	if !ok || a.IsUnspecified() {
		return netip.Addr{}
	}
	return a
}

// unicast tells whether a packet can be sent to a as to one host.
func unicast(a netip.Addr) bool {
	return a.Is4() && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() && a.As4()[0] < 240
}

func typeName(t dhcpv4.MessageType) string {
	if t == dhcpv4.MessageTypeNone || t > dhcpv4.MessageTypeInform {
		return ""
	}
	return t.String()
}
