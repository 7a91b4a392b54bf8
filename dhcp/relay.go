package dhcp

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// Sub-options of option 82.
const (
	relayCircuitID    = 1  // RFC 3046: the port of the client
	relayRemoteID     = 2  // RFC 3046: the switch
	relayLink         = 5  // RFC 3527: the client's network, when giaddr is in another
	relaySubscriberID = 6  // RFC 3993
	relayServerID     = 11 // RFC 5107: the client takes the relay for the server
	relaySourcePort   = 19 // RFC 8357: the relay receives answers at the port that it sent from
)

// readRelay reads the value of option 82 into c, and returns the link selection
// in it, or the zero Addr. It counts in packets of relay agents only, which set giaddr: they replace
// or drop the option of a client (RFC 3046, section 2.1). Switches that snoop add
// it too, but leave giaddr zero, and then any host can have added it.
//
// A value other than an address where an address belongs is left aside, with a warning.
// Of an option that is cut off no identifier counts, because half of the identity of
// one node can be the identity of another. Unknown sub-options are ignored. Of two
// sub-options of a kind the first counts.
func (c *client) readRelay(data []byte) (link netip.Addr) {
	for len(data) > 0 {
		if len(data) < 2 || len(data) < 2+int(data[1]) {
			c.CircuitID, c.RemoteID, c.SubscriberID = "", "", ""
			c.leaveAside(fmt.Errorf("option 82: sub-option %d is cut off", data[0]))
			break
		}
		code, value := data[0], data[2:2+int(data[1])]
		data = data[2+len(value):]
		switch code {
		case relayCircuitID:
			c.CircuitID = cmp.Or(c.CircuitID, string(value))
		case relayRemoteID:
			c.RemoteID = cmp.Or(c.RemoteID, string(value))
		case relaySubscriberID:
			c.SubscriberID = cmp.Or(c.SubscriberID, string(value))
		case relayLink:
			link = c.oneUnicast("82.5", value)
		case relayServerID:
			c.relayServerID = c.oneUnicast("82.11", value)
		case relaySourcePort:
			c.relayPort = true
		}
	}
	return link
}

// oneUnicast reads the value of an option that is the address of one host or
// network. Other values are left aside.
func (c *client) oneUnicast(option string, value []byte) netip.Addr {
	if a := address(value); unicast(a) {
		return a
	}
	c.leaveAside(fmt.Errorf("option %s: %x is not an IPv4 address of one host", option, value))
	return netip.Addr{}
}

// linkOf returns an address in the network of the client. It is the first of
// these that is present: the link selection of the relay, the subnet selection
// of the client (RFC 3011, for access servers), the relay's own address, the
// client's own address, the server's address.
//
// A client that has an address renews and releases past its relay, directly
// with the server. In this case only its own address identifies its network.
func linkOf(req *Request, selected, own netip.Addr) (netip.Addr, error) {
	if selected.IsValid() {
		return selected, nil
	}
	if subnet := req.subnetSelection(); subnet.IsValid() {
		return subnet, nil
	}
	if gi := req.Giaddr; gi.IsValid() {
		if !unicast(gi) {
			return gi, fmt.Errorf("relay address %s is not unicast", gi)
		}
		return gi, nil
	}
	ci := req.ciaddr()
	if req.Type == dhcpv4.MessageTypeInform {
		ci = req.informed()
	}
	if unicast(ci) && req.usesItsAddress() {
		return ci, nil
	}
	return own, nil
}
