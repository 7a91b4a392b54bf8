package dhcp

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp/wire"
	"drover/pools"
	"drover/pools/resolve"
)

// Responder decides on the answer to each request. It opens no socket and reads
// no clock.
type Responder struct {
	Farm    Resolver
	Leases  Leases         // may be nil when no address is leased
	Address netip.Addr     // the server identifier
	Mode    pools.DHCPMode // full, which is the default, or proxy
}

// Reply answers one request that came to port 67. It returns the reply to send,
// or nil for silence, and the outcome. It changes only leases: it commits an
// address that it acknowledges, and releases an address that the client
// returns.
func (s *Responder) Reply(req *Request, now time.Time) (*Message, Exchange) {
	if s.Mode == pools.DHCPProxy {
		return s.reply(req, now, (*answer).proxy)
	}
	return s.reply(req, now, (*answer).full)
}

// ReplyTo is Reply for packets as bytes; nil is silence.
func (s *Responder) ReplyTo(packet []byte, now time.Time) ([]byte, Exchange) {
	var req Request
	req.Parse(packet)
	m, x := s.Reply(&req, now)
	if m == nil {
		return nil, x
	}
	return m.Append(nil), x
}

// ReplyBoot answers one request that came to port 4011 in proxy mode. Boot
// programs that have an address of another server ask for boot data there (PXE
// 2.1, section 2.2.3). The reply goes to the address and port that the request
// came from: iPXE asks from port 68, UEFI from 4011.
func (s *Responder) ReplyBoot(req *Request, now time.Time) (*Message, Exchange) {
	return s.reply(req, now, (*answer).boot)
}

func (s *Responder) reply(req *Request, now time.Time, build func(*answer) *Message) (*Message, Exchange) {
	c, err := newClient(req, s.Address)
	x := c.exchange(now)
	x.Giaddr = req.Giaddr
	if err != nil {
		x.Decision, x.Err = Malformed, err
		return nil, x
	}
	plan := s.Farm.Resolve(c.Query)
	if plan == nil {
		x.Decision, x.Why = NotOurs, s.Farm.WhyNot(c.Query)
		return nil, x
	}
	x.Plan, x.Why, x.Warning = plan, knownBy(plan), c.warning
	a := answer{client: c, server: s, leases: s.Leases, req: req, plan: plan, now: now, x: &x}
	if a.leases == nil {
		a.leases = NoLeases{}
	}
	m := build(&a)
	if m != nil {
		m.arrange(req.options.Get(wire.OptParameters))
		m.Wait, m.Fresh = a.wait, a.fresh && m.messageType() == dhcpv4.MessageTypeOffer
		x.Reply = cmp.Or(typeName(m.messageType()), bootReply)
	}
	return m, x
}

// knownBy returns, as text, the property that identified the machine.
func knownBy(p *resolve.Plan) string {
	switch {
	case p.Retired:
		return "a retired node: it keeps its address"
	case p.Matched != "":
		return "known by " + p.Matched
	case p.CatchAll:
		return "unknown hardware"
	}
	return "known by MAC"
}

// answer is the answer to one request of a machine of the farm, while it is
// built. Methods that return a message return nil for silence. They fill in the
// exchange.
type answer struct {
	client
	server *Responder
	leases Leases
	req    *Request
	plan   *resolve.Plan
	now    time.Time
	x      *Exchange
	held   netip.Addr   // the active lease of an operating system, set by own; zero for none
	wait   func() error // of the message
	fresh  bool         // of the message
}

// full answers as the only DHCP server of the network.
func (a *answer) full() *Message {
	switch a.messageType {
	case dhcpv4.MessageTypeNone:
		return a.bootp()
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
	return a.unexpectedType()
}

// silence records the outcome of a request that gets no reply.
func (a *answer) silence(d Decision, err error) *Message {
	a.x.Decision, a.x.Err = d, err
	return nil
}

// unexpectedType is silence for a message type that clients do not send.
func (a *answer) unexpectedType() *Message {
	return a.silence(Unusable, fmt.Errorf("message type %d is not one of a client", a.messageType))
}

// discover offers the machine its address.
func (a *answer) discover() *Message {
	own, err := a.own(a.req.requestedOption())
	if err != nil {
		return a.silence(NoAddress, err)
	}
	a.x.Decision = Offered
	return a.lease(dhcpv4.MessageTypeOffer, own)
}

// request acknowledges an address or refuses it.
func (a *answer) request() *Message {
	if !a.toUs() {
		return a.silence(OtherServer, nil)
	}
	requested := a.requested()
	if !requested.IsValid() {
		return a.silence(Unusable, errors.New("a REQUEST for no address"))
	}
	a.x.Address = requested
	own, err := a.own(requested)
	if err == nil && own != requested && !a.keepsRunning(requested) {
		if a.viaWrongRelay(requested) {
			return a.silence(Unusable, fmt.Errorf("a renewal of %s, relayed from the network of %s", requested, a.Link))
		}
		return a.refuse("yours is "+own.String(), "its address is "+own.String())
	}
	if err == nil {
		err = a.commit(requested)
	}
	switch {
	case errors.Is(err, errNoRecord):
		a.x.Why = err.Error()
		return a.silence(NotOurs, nil)
	case errors.Is(err, pools.ErrRefused):
		return a.refuse("ask for another", err.Error())
	case err != nil:
		return a.silence(NoAddress, err)
	}
	a.x.Decision = Acknowledged
	ack := a.lease(dhcpv4.MessageTypeAck, requested)
	if a.req.runsOn(requested) {
		ack.ciaddr = requested // the ACK goes to this address
	}
	return ack
}

// decline handles a DECLINE: the client found its address in use.
func (a *answer) decline() *Message {
	if !a.toUs() {
		return a.silence(OtherServer, nil)
	}
	if a.x.Address = a.requested(); !a.x.Address.IsValid() {
		return a.silence(Unusable, errors.New("a DECLINE of no address"))
	}
	if !a.declines(a.x.Address) {
		return a.silence(Unusable, errors.New("a DECLINE of an address that it was not given"))
	}
	return a.silence(Declined, nil)
}

// release ends the lease of an address. A fixed address stays with its node.
func (a *answer) release() *Message {
	if !a.toUs() {
		return a.silence(OtherServer, nil)
	}
	a.x.Address = a.req.ciaddr()
	if !a.x.Address.IsValid() {
		return a.silence(Unusable, errors.New("a RELEASE of no address"))
	}
	if !a.leases.Release(a.plan, a.x.Address, a.now) {
		return a.silence(Unusable, errors.New("a RELEASE with another client identifier than the lease's"))
	}
	return a.silence(Released, nil)
}

// inform answers a machine that already has an address with the options of the
// network. It changes no lease (RFC 2131, section 4.3.5).
func (a *answer) inform() *Message {
	a.x.Address = a.req.informed()
	if !a.usable(a.x.Address) {
		return a.silence(Unusable, errors.New("an INFORM from an address that no machine can have where it asks from"))
	}
	a.x.Decision = Informed
	ack := a.newReply(dhcpv4.MessageTypeAck)
	ack.ciaddr = a.x.Address
	a.addOptions(ack, a.x.Address)
	return ack
}

// refuse returns a DHCPNAK, after which the client must start again. Only
// machines of the farm get one, so that a NAK never reaches the client of
// another server. The client gets the text hint. The log gets why, which may
// name the machine that has the address.
func (a *answer) refuse(hint, why string) *Message {
	if a.yields() {
		a.x.Why = why + ", or another server's: the pool is not authoritative"
		return a.silence(NotOurs, nil)
	}
	a.x.Decision = Refused
	a.x.warn(why)
	nak := a.newReply(dhcpv4.MessageTypeNak)
	nak.options.Put(wire.OptMessage, []byte("this address is not yours, "+hint)...)
	if a.x.Giaddr.IsValid() {
		// The client cannot be reached at an address that it must not use (RFC
		// 2131, section 4.3.2). The relay therefore has to broadcast.
		nak.flags |= broadcastFlag
	}
	return nak
}

// lease returns an OFFER or ACK of an address.
func (a *answer) lease(t dhcpv4.MessageType, given netip.Addr) *Message {
	a.x.Address = given
	m := a.newReply(t)
	m.yiaddr = given
	addLease(m, a.plan)
	a.addOptions(m, given)
	a.broadcastToPool(m)
	return m
}

// broadcastToPool makes a reply a broadcast when the pool has broadcast: always.
func (a *answer) broadcastToPool(m *Message) {
	if a.plan.Broadcast && !a.x.Giaddr.IsValid() {
		m.flags |= broadcastFlag
	}
}

// addOptions adds the options of the plan, and for a boot program its loader.
// given is the address that the machine has or will have.
func (a *answer) addOptions(m *Message, given netip.Addr) {
	subnet, ok := a.plan.SubnetOf(given)
	if !ok {
		subnet = a.plan.Subnet
	}
	a.addNetwork(m, &subnet)
	a.addName(m, given)
	a.addBoot(m)
	a.addBootItem(m)
	a.fit(m)
}

// fit makes a reply fit into the largest message that the client accepts.
// Omitted options are a warning.
func (a *answer) fit(m *Message) {
	if omitted := fit(m, a.req.sizeLimit(), a.req.options.Get(wire.OptParameters)); omitted != nil {
		a.x.warn(fmt.Sprintf("answer too long for the client: left out options %d", omitted))
	}
}

// newReply returns a reply with the fields that all replies share (RFC 2131,
// table 3).
func (a *answer) newReply(t dhcpv4.MessageType) *Message {
	m := newMessage()
	m.xid, m.flags, m.giaddr, m.mac = a.req.xid(), a.req.flags(), a.req.Giaddr, a.MAC
	if a.relayPort {
		m.relayPort = a.req.Port
	}
	m.htype = a.req.header[1]
	if a.req.infiniBand() {
		m.infiniBand = true
		m.flags |= broadcastFlag
	}
	codes := echoed()
	back := codes[:]
	switch t {
	case dhcpv4.MessageTypeNone:
		back = codes[:echoedInBOOTP]
	case dhcpv4.MessageTypeNak:
		back = codes[:echoedInNAK]
	}
	if t != dhcpv4.MessageTypeNone {
		m.options.Put(wire.OptMessageType, byte(t))
		m.options.PutAddr(wire.OptServerID, a.serverID())
	}
	for _, code := range back {
		if a.req.options.Has(code) && (code != wire.OptSubnetSelection || a.req.subnetSelection().IsValid()) {
			m.options.Put(code, a.req.options.Get(code)...)
		}
	}
	return m
}

// serverID returns the server identifier: the boot address of the client's network, else
// the address of the interface; or that of a relay agent that must receive all messages
// of the client (RFC 5107).
func (a *answer) serverID() netip.Addr {
	if id := a.relayServerID; id.IsValid() {
		return id
	}
	if own := a.plan.Advertised; own != nil && own.ID.IsValid() {
		return own.ID
	}
	return a.server.Address
}

// toUs reports whether the request may be meant for this server. A request that
// names no server may be: systemd-networkd leaves option 54 out of RELEASE and
// DECLINE, although RFC 2131, table 5, requires it, and sends them to the
// server's address.
func (a *answer) toUs() bool {
	if !a.req.options.Has(wire.OptServerID) {
		return true
	}
	id := address(a.req.options.Get(wire.OptServerID))
	return id.IsValid() && (id == a.server.Address || id == a.serverID() || a.plan.IsServer(id))
}

func typeName(t dhcpv4.MessageType) string {
	if t == dhcpv4.MessageTypeNone || t > dhcpv4.MessageTypeInform {
		return ""
	}
	return t.String()
}
