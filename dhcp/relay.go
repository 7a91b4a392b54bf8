package dhcp

import (
	"cmp"
	"fmt"
	"net/netip"
)

// Sub-options of option 82.
const (
	relayCircuitID    = 1  // RFC 3046: the port of the client
	relayRemoteID     = 2  // RFC 3046: the switch
	relayLink         = 5  // RFC 3527: the client's network, when giaddr is in another
	relaySubscriberID = 6  // RFC 3993
	relayServerID     = 11 // RFC 5107: the client takes the relay for the server
)

// readRelay reads the value of option 82 into c, and returns the link selection
// in it. It counts in packets of relay agents only, which set giaddr: they replace
// or drop the option of a client (RFC 3046, section 2.1). Switches that snoop add
// it too, but leave giaddr zero, and then any host can have added it.
//
// A truncated sub-option is an error, because the identity of a node depends on
// it. So is a value other than an address where an address belongs. Unknown
// sub-options are ignored. Of two sub-options of a kind the first counts.
func (c *client) readRelay(data []byte) (link netip.Addr, err error) {
	for len(data) > 0 && err == nil {
		if len(data) < 2 || len(data) < 2+int(data[1]) {
			return link, fmt.Errorf("option 82: sub-option %d is cut off", data[0])
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
			link, err = oneUnicast("82.5", value)
		case relayServerID:
			c.relayServerID, err = oneUnicast("82.11", value)
		}
	}
	return link, err
}

// oneUnicast reads the value of an option that is the address of one host or
// network. Other values are an error.
func oneUnicast(option string, value []byte) (netip.Addr, error) {
	if a := address(value); unicast(a) {
		return a, nil
	}
	return netip.Addr{}, fmt.Errorf("option %s: %x is not an IPv4 address of one host", option, value)
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
	if req.codes.has(optSubnetSelection) {
		return oneUnicast("118", req.get(optSubnetSelection))
	}
	if gi := req.Giaddr; gi.IsValid() {
		if !unicast(gi) {
			return gi, fmt.Errorf("relay address %s is not unicast", gi)
		}
		return gi, nil
	}
	if ci := req.ciaddr(); unicast(ci) && req.usesItsAddress() {
		return ci, nil
	}
	return own, nil
}
