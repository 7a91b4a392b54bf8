package dhcp6

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"drover/dhcp"
	"drover/pools"
	"drover/pools/resolve"
)

// Ports of clients, and of servers and relay agents.
const (
	ClientPort = 546
	ServerPort = 547
)

// Responder decides on the answer to each request. It opens no socket and reads no clock.
type Responder struct {
	Farm   dhcp.Resolver
	Leases dhcp.Leases    // of IPv6; may be nil when no address is leased
	DUID   []byte         // the server identifier, the same on all interfaces
	Mode   pools.DHCPMode // full, which is the default, or proxy
}

// NewDUID returns the DUID of a server with a network card: of type 3, DUID-LL (RFC 8415,
// section 11.4).
func NewDUID(mac pools.MAC) []byte {
	return append([]byte{0, byte(dhcpv6.DUID_LL), 0, ethernet}, mac[:]...)
}

// Message is a reply.
type Message struct {
	Bytes []byte       // the UDP payload
	Port  uint16       // at the host that sent the request
	Wait  func() error // returns when the lease is on disk; nil: there is nothing to wait for
}

// Reply answers one request. own is an address of this server on the wire that it came
// from. It returns nil for silence, and the outcome. It changes only leases.
func (s *Responder) Reply(r *Request, own netip.Addr, now time.Time) (*Message, dhcp.Exchange) {
	if r.err != nil {
		x := r.Exchange(dhcp.Malformed, now)
		x.Err = r.err
		return nil, x
	}
	q := r.query(own)
	x := r.exchange(&q, now)
	if d, err := s.usable(r); d != "" {
		x.Decision, x.Err = d, err
		return nil, x
	}
	plan := s.Farm.Resolve(q)
	if plan == nil {
		x.Decision, x.Why = dhcp.NotOurs, s.Farm.WhyNot(q)
		return nil, x
	}
	x.Plan = plan
	a := answer{request: r, server: s, plan: plan, query: &q, now: now, x: &x, boots: q.Boots()}
	if !a.build() {
		return nil, x
	}
	m := &Message{Bytes: r.toRelays(a.b), Port: r.replyPort(), Wait: a.wait}
	x.Reply = typeName(dhcpv6.MessageType(a.b[0]))
	return m, x
}

// usable returns the reason why a message is not answered, if its form has one (RFC 8415,
// section 16); "" for none.
func (s *Responder) usable(r *Request) (dhcp.Decision, error) {
	server, hasServer := r.options.get(dhcpv6.OptionServerID), r.options.get(dhcpv6.OptionServerID) != nil
	unusable := func(format string, args ...any) (dhcp.Decision, error) {
		return dhcp.Unusable, fmt.Errorf(format, args...)
	}
	unicast := r.From.Unicast && !r.Relayed()
	switch r.Type {
	case dhcpv6.MessageTypeSolicit, dhcpv6.MessageTypeConfirm, dhcpv6.MessageTypeRebind:
		switch {
		case hasServer:
			return unusable("a %s for one server", r.Type)
		case unicast:
			return unusable("a %s that is not sent to all servers", r.Type)
		}
	case dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeRelease, dhcpv6.MessageTypeDecline:
		if !hasServer {
			return unusable("a %s for no server", r.Type)
		}
	case dhcpv6.MessageTypeInformationRequest:
		switch {
		case unicast:
			return unusable("a %s that is not sent to all servers", r.Type)
		case r.options.get(dhcpv6.OptionIANA) != nil || r.options.get(dhcpv6.OptionIATA) != nil || r.options.get(dhcpv6.OptionIAPD) != nil:
			return unusable("a %s for an address", r.Type)
		}
	default:
		return unusable("message type %d is not one of a client", r.Type)
	}
	if r.duid() == nil && r.Type != dhcpv6.MessageTypeInformationRequest {
		return unusable("a %s without client identifier", r.Type)
	}
	if hasServer && !slices.Equal(server, s.DUID) {
		return dhcp.OtherServer, nil
	}
	return "", nil
}

// replyPort returns the port that an answer goes to.
func (r *Request) replyPort() uint16 {
	switch {
	case !r.Relayed():
		return ClientPort
	case r.relays[0].options.get(dhcpv6.OptionRelayPort) != nil: // RFC 8357
		return r.From.Port
	}
	return ServerPort
}

// returned returns the options of a relay agent that it gets back.
func returned() [2]dhcpv6.OptionCode {
	return [...]dhcpv6.OptionCode{dhcpv6.OptionInterfaceID, dhcpv6.OptionRelayPort}
}

// toRelays puts the messages for the relay agents around an answer.
func (r *Request) toRelays(b []byte) []byte {
	for i := r.hops - 1; i >= 0; i-- {
		at := &r.relays[i]
		out := append(make([]byte, 0, len(b)+128), at.header...)
		out[0] = byte(dhcpv6.MessageTypeRelayReply)
		for _, code := range returned() {
			if data := at.options.get(code); data != nil {
				out = appendOption(out, code, data...)
			}
		}
		b = appendOption(out, dhcpv6.OptionRelayMsg, b...)
	}
	return b
}

// answer is the answer to one request of a machine of the farm, while it is built.
type answer struct {
	request *Request
	server  *Responder
	plan    *resolve.Plan
	query   *resolve.Query
	now     time.Time
	x       *dhcp.Exchange
	boots   bool // the client is a boot program

	b    []byte // of the answer
	wait func() error
	none bool // no address is given
}

// build makes the answer. It returns false for silence.
func (a *answer) build() bool {
	if a.server.Mode == pools.DHCPProxy && a.request.Type != dhcpv6.MessageTypeInformationRequest {
		return a.silence(dhcp.OtherServer, nil)
	}
	if a.request.From.Unicast && !a.request.Relayed() { // those that must not be unicast were dropped before
		a.begin(dhcpv6.MessageTypeReply)
		a.status(iana.StatusUseMulticast, "ask all servers")
		a.x.Decision = dhcp.Refused
		return true
	}
	switch a.request.Type {
	case dhcpv6.MessageTypeSolicit:
		return a.solicit()
	case dhcpv6.MessageTypeRequest:
		return a.give(dhcpv6.MessageTypeReply, iana.StatusNoAddrsAvail)
	case dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeRebind:
		return a.give(dhcpv6.MessageTypeReply, iana.StatusNoBinding)
	case dhcpv6.MessageTypeConfirm:
		return a.confirm()
	case dhcpv6.MessageTypeRelease, dhcpv6.MessageTypeDecline:
		return a.giveBack()
	}
	a.begin(dhcpv6.MessageTypeReply)
	a.addOptions(netip.Addr{})
	a.x.Decision = dhcp.Informed
	return true
}

func (a *answer) silence(d dhcp.Decision, err error) bool {
	a.x.Decision, a.x.Err = d, err
	return false
}

// begin begins an answer with the identifiers of client and server.
func (a *answer) begin(t dhcpv6.MessageType) {
	a.b = append(make([]byte, 0, 512), byte(t))
	a.b = append(a.b, a.request.transaction...)
	if duid := a.request.duid(); duid != nil {
		a.b = appendOption(a.b, dhcpv6.OptionClientID, duid...)
	}
	a.b = appendOption(a.b, dhcpv6.OptionServerID, a.server.DUID...)
}

func (a *answer) status(code iana.StatusCode, text string) {
	var at int
	a.b, at = begin(a.b, dhcpv6.OptionStatusCode)
	a.b = binary.BigEndian.AppendUint16(a.b, uint16(code))
	a.b = end(append(a.b, text...), at)
}

// solicit offers the machine its address, or gives it at once.
func (a *answer) solicit() bool {
	if a.plan.Subnet.RapidCommit && a.request.options.get(dhcpv6.OptionRapidCommit) != nil {
		if !a.give(dhcpv6.MessageTypeReply, iana.StatusNoAddrsAvail) {
			return false
		}
		if !a.none {
			a.b = appendOption(a.b, dhcpv6.OptionRapidCommit)
			return true
		}
		a.wait = nil
	}
	return a.give(dhcpv6.MessageTypeAdvertise, iana.StatusNoAddrsAvail)
}

// confirm tells a client that was moved whether its addresses are of its link.
func (a *answer) confirm() bool {
	all, some := true, false
	a.eachIA(func(ia identity) {
		for at := range ia.addresses() {
			_, ok := a.plan.SubnetOf(at)
			all, some = all && ok, true
		}
	})
	if !some {
		return a.silence(dhcp.Unusable, errors.New("a CONFIRM of no address"))
	}
	a.begin(dhcpv6.MessageTypeReply)
	if a.x.Decision = dhcp.Acknowledged; all {
		a.status(iana.StatusSuccess, "")
		return true
	}
	a.x.Decision, a.x.Warning = dhcp.Refused, "its addresses are of another network"
	a.status(iana.StatusNotOnLink, "")
	return true
}

// giveBack handles a RELEASE or DECLINE.
func (a *answer) giveBack() bool {
	a.begin(dhcpv6.MessageTypeReply)
	a.x.Decision = dhcp.Released
	if a.request.Type == dhcpv6.MessageTypeDecline {
		a.x.Decision = dhcp.Declined
	}
	found := false
	a.eachIA(func(ia identity) {
		known := false
		for at := range ia.addresses() {
			if a.takeBack(at) {
				a.x.Address, known = at, true
			}
		}
		if found = found || known; !known {
			a.addStatusIA(ia, iana.StatusNoBinding)
		}
	})
	if !found {
		a.x.Decision, a.x.Err = dhcp.Unusable, fmt.Errorf("a %s of no address that it was given", a.request.Type)
	}
	a.status(iana.StatusSuccess, "")
	return true
}

// takeBack ends the lease of an address. It returns false for an address that the machine
// was not given.
func (a *answer) takeBack(at netip.Addr) bool {
	own := at == a.plan.Address
	if a.request.Type == dhcpv6.MessageTypeRelease {
		held, ok := a.leases().Holds(a.request.MAC, a.now)
		return a.leases().Release(a.plan, at, a.now) && (own || ok && held == at)
	}
	if !own {
		if !a.leases().Decline(a.plan, at, "found in use by "+a.request.MAC.String(), a.now) {
			return false
		}
		a.x.Warning = fmt.Sprintf("somebody uses %s whom nobody knows: it is not leased for a while", at)
		return true
	}
	a.x.Warning = fmt.Sprintf("somebody else uses %s, the address of node %q: find the machine that answers for it", at, a.plan.Node)
	return true
}
