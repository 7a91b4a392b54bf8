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
	relayLink         = 5  // RFC 3527: the client's network, when giaddr is not of it
	relaySubscriberID = 6  // RFC 3993
	relayServerID     = 11 // RFC 5107: the relay is the server in the client's eyes
)

// readRelay reads the value of option 82, and returns the link selection in it. A
// relay agent adds the option, and so does a switch that snoops and leaves giaddr
// zero: it counts whether giaddr is set or not. The network keeps clients from
// forging it: switches strip the option that a client sends, or drop the packet
// (RFC 3046, section 2.1).
//
// A sub-option that is cut off, or that is not an address where one belongs, is an
// error: the identity of a node depends on it. Unknown sub-options are ignored; of
// two of a kind the first counts.
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

// oneUnicast reads an option that is the address of one host or network.
func oneUnicast(option string, value []byte) (netip.Addr, error) {
	if a := address(value); unicast(a) {
		return a, nil
	}
	return netip.Addr{}, fmt.Errorf("option %s: %x is not an IPv4 address of one host", option, value)
}

// linkOf returns an address of the network that the client is on: the link
// selection of the relay, the subnet selection of the client (RFC 3011, for access
// servers), the relay's own address, the client's own, the server's.
//
// A client that has an address renews and releases past its relay, straight to
// the server; then only that address says where the client is.
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
