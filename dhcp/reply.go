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

// Reply answers one request: the reply to send, nil for silence, and what it
// came to. It opens no socket and reads no clock; now is the time of the
// request. Leases are the only state it changes: a REQUEST that it
// acknowledges is committed, a RELEASE is released.
func (s *Server) Reply(req *dhcpv4.DHCPv4, now time.Time) (*dhcpv4.DHCPv4, Exchange) {
	c, err := newClient(req)
	x := Exchange{
		Time: now, MAC: c.mac, Type: typeName(req.MessageType()), Firmware: c.firmware, IPXE: c.ipxe,
		Netboot: c.netboot(), Class: printable(c.class), Giaddr: addr(req.GatewayIPAddr),
	}
	if err != nil {
		x.Decision, x.Err = Malformed, err
		return nil, x
	}
	plan := s.Farm.Resolve(c.query())
	if plan == nil {
		x.Decision = NotOurs
		return nil, x
	}
	x.Plan = plan
	a := ask{server: s, req: req, client: c, plan: plan, now: now, x: &x}
	reply := a.answer()
	if reply != nil {
		x.Reply = typeName(reply.MessageType())
	}
	return reply, x
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

func (a *ask) answer() *dhcpv4.DHCPv4 {
	switch a.req.MessageType() {
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
	return a.silence(Unusable, fmt.Errorf("message type %d is not one of a client", a.req.MessageType()))
}

// silence sends nothing.
func (a *ask) silence(d Decision, err error) *dhcpv4.DHCPv4 {
	a.x.Decision, a.x.Err = d, err
	return nil
}

// discover offers the machine its address.
func (a *ask) discover() *dhcpv4.DHCPv4 {
	own, err := a.address(addr(a.req.RequestedIPAddress()))
	if err != nil {
		return a.silence(NoAddress, err)
	}
	a.x.Decision = Offered
	return a.lease(dhcpv4.MessageTypeOffer, own)
}

// request serves the four states that a client sends a REQUEST from. What it
// fills in tells them apart (RFC 2131, section 4.3.2).
func (a *ask) request() *dhcpv4.DHCPv4 {
	id, requested, current := a.req.ServerIdentifier(), addr(a.req.RequestedIPAddress()), addr(a.req.ClientIPAddr)
	wanted := requested
	switch {
	case a.req.Options.Has(dhcpv4.OptionServerIdentifier): // SELECTING
		if addr(id) != a.server.Address {
			return a.silence(OtherServer, nil)
		}
		if !wanted.IsValid() {
			wanted = current // some ROMs put the offered address there
		}
	case requested.IsValid(): // INIT-REBOOT
	default: // RENEWING or REBINDING
		wanted = current
	}
	if !wanted.IsValid() {
		return a.silence(Unusable, errors.New("a REQUEST for no address"))
	}
	a.x.Address = wanted
	own, err := a.address(wanted)
	if err != nil {
		return a.silence(NoAddress, err)
	}
	if own != wanted {
		return a.refuse(own)
	}
	if !a.plan.Address.IsValid() {
		if err := a.server.Leases.Commit(a.plan, own, a.now); err != nil {
			return a.silence(NoAddress, fmt.Errorf("lease %s: %w", own, err))
		}
	}
	a.x.Decision = Acknowledged
	ack := a.lease(dhcpv4.MessageTypeAck, own)
	if own == current {
		ack.ClientIPAddr = a.req.ClientIPAddr // renewing: that is where the ACK goes
	}
	return ack
}

// decline takes note that the client found its address in use.
func (a *ask) decline() *dhcpv4.DHCPv4 {
	a.x.Address = addr(a.req.RequestedIPAddress())
	if addr(a.req.ServerIdentifier()) != a.server.Address {
		return a.silence(OtherServer, nil)
	}
	return a.silence(Declined, nil)
}

// release gives a leased address back. A fixed one stays the node's.
func (a *ask) release() *dhcpv4.DHCPv4 {
	a.x.Address = addr(a.req.ClientIPAddr)
	if addr(a.req.ServerIdentifier()) != a.server.Address {
		return a.silence(OtherServer, nil)
	}
	if !a.x.Address.IsValid() {
		return a.silence(Unusable, errors.New("a RELEASE of no address"))
	}
	if !a.plan.Address.IsValid() && a.server.Leases != nil {
		a.server.Leases.Release(a.mac, a.x.Address, a.now)
	}
	return a.silence(Released, nil)
}

// inform tells a machine with an address of its own about the network.
func (a *ask) inform() *dhcpv4.DHCPv4 {
	a.x.Address = addr(a.req.ClientIPAddr)
	if net := a.plan.Subnet.CIDR; !net.Contains(a.x.Address) || a.x.Address == broadcast(net) {
		return a.silence(Unusable, fmt.Errorf("an INFORM from outside %s", a.plan.Subnet.CIDR))
	}
	a.x.Decision = Informed
	ack := a.reply(dhcpv4.MessageTypeAck)
	ack.ClientIPAddr = a.req.ClientIPAddr
	a.fill(ack)
	return ack
}

// address returns the address that belongs to the machine: its own, or the one
// that it leases from its pool's range.
func (a *ask) address(want netip.Addr) (netip.Addr, error) {
	own := a.plan.Address
	if !own.IsValid() {
		if a.server.Leases == nil {
			return netip.Addr{}, fmt.Errorf("pool %q leases addresses, but there is no lease store", a.plan.Pool)
		}
		var err error
		if own, err = a.server.Leases.Offer(a.plan, want, a.now); err != nil {
			return netip.Addr{}, err
		}
	}
	if !own.Is4() {
		return netip.Addr{}, fmt.Errorf("address %q of node %q is not IPv4", own, a.plan.Node)
	}
	return own, nil
}

// refuse is the DHCPNAK: the client must begin anew, and will be offered own.
// Only machines that are ours get here, so that a NAK never hits the client of
// another server.
func (a *ask) refuse(own netip.Addr) *dhcpv4.DHCPv4 {
	a.x.Decision, a.x.Warning = Refused, "its address is "+own.String()
	nak := a.reply(dhcpv4.MessageTypeNak)
	nak.Options[optMessage] = []byte("address is not yours, yours is " + own.String())
	if a.x.Giaddr.IsValid() {
		// The client cannot be reached at an address it must not use
		// (RFC 2131, section 4.3.2): the relay has to broadcast.
		nak.SetBroadcast()
	}
	return nak
}

// lease is an OFFER or ACK of an address.
func (a *ask) lease(t dhcpv4.MessageType, own netip.Addr) *dhcpv4.DHCPv4 {
	a.x.Address = own
	r := a.reply(t)
	r.YourIPAddr = own.AsSlice()
	addLease(r.Options, a.plan)
	a.fill(r)
	return r
}

// fill adds the options of the plan, and for a boot program its loader.
func (a *ask) fill(r *dhcpv4.DHCPv4) {
	boot := a.plan.Boot
	addNetwork(r.Options, a.client, a.plan)
	if boot.Server.Is4() {
		// iPXE wants it even when the file is a URL; GRUB takes its server
		// from here, not from option 66.
		r.ServerIPAddr = boot.Server.AsSlice()
	}
	if boot.File != "" && a.netboot() {
		addBoot(r.Options, a.client, boot)
		// shim makes the name of its second stage from this field, not from
		// option 67.
		if len(boot.File) <= maxBootFile {
			r.BootFileName = boot.File
		} else {
			a.x.Warning = fmt.Sprintf("boot file %q is longer than the BOOTP field: only in option 67", boot.File)
		}
	}
	if left := fit(r.Options, sizeLimit(a.req)); left != nil {
		a.x.Warning = fmt.Sprintf("answer too long for the client: left out options %d", left)
	}
}

// reply begins a reply as table 3 of RFC 2131 has it.
func (a *ask) reply(t dhcpv4.MessageType) *dhcpv4.DHCPv4 {
	r := &dhcpv4.DHCPv4{
		OpCode:        dhcpv4.OpcodeBootReply,
		HWType:        a.req.HWType,
		TransactionID: a.req.TransactionID,
		Flags:         a.req.Flags,
		ClientIPAddr:  net.IPv4zero,
		YourIPAddr:    net.IPv4zero,
		ServerIPAddr:  net.IPv4zero,
		GatewayIPAddr: a.req.GatewayIPAddr,
		ClientHWAddr:  a.req.ClientHWAddr,
		Options:       make(dhcpv4.Options, 24),
	}
	r.Options[optMessageType] = []byte{byte(t)}
	r.Options[optServerID] = a.server.Address.AsSlice()
	// The client identifier (RFC 6842), the machine's UUID (RFC 4578, some
	// ROMs compare it) and the relay's own option (RFC 3046) come back as
	// they were sent.
	for _, code := range [...]uint8{optClientID, optMachineID, optRelay} {
		if v, ok := a.req.Options[code]; ok {
			r.Options[code] = v
		}
	}
	return r
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
