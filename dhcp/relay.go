package dhcp

import (
	"fmt"
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// Sub-options of option 82.
const (
	relayCircuitID    = 1  // RFC 3046: the port that the client is at
	relayRemoteID     = 2  // RFC 3046: the switch
	relayLink         = 5  // RFC 3527: the client's network, when giaddr is not of it
	relaySubscriberID = 6  // RFC 3993
	relayServerID     = 11 // RFC 5107: the relay wants to be the server in the client's eyes
)

// relayInfo is what a relay agent tells in option 82. So does a switch that
// snoops; it leaves giaddr zero, so that giaddr does not decide whether this
// counts. Whether a client can forge it is up to the network: switches strip or
// drop what clients send (RFC 3046, section 2.1).
type relayInfo struct {
	circuitID, remoteID, subscriberID string
	link                              netip.Addr
	serverID                          netip.Addr
}

// newRelayInfo reads the value of option 82. Sub-options of which there is not
// as much as they claim, or that are no address where one belongs, are an
// error: the identity of a node hangs on them. Unknown ones are passed over, of
// two of a kind the first counts.
func newRelayInfo(data []byte) (r relayInfo, err error) {
	for len(data) > 0 {
		if len(data) < 2 || len(data) < 2+int(data[1]) {
			return r, fmt.Errorf("option 82: sub-option %d is cut off", data[0])
		}
		code, value := data[0], data[2:2+int(data[1])]
		data = data[2+len(value):]
		switch code {
		case relayCircuitID:
			setOnce(&r.circuitID, value)
		case relayRemoteID:
			setOnce(&r.remoteID, value)
		case relaySubscriberID:
			setOnce(&r.subscriberID, value)
		case relayLink:
			if r.link, err = oneUnicast(value); err != nil {
				return r, fmt.Errorf("option 82.%d: %w", code, err)
			}
		case relayServerID:
			if r.serverID, err = oneUnicast(value); err != nil {
				return r, fmt.Errorf("option 82.%d: %w", code, err)
			}
		}
	}
	return r, nil
}

func setOnce(s *string, value []byte) {
	if *s == "" {
		*s = string(value)
	}
}

// oneUnicast reads an option that is the address of one host or network.
func oneUnicast(value []byte) (netip.Addr, error) {
	a, ok := netip.AddrFromSlice(value)
	if !ok || !unicast(a) {
		return netip.Addr{}, fmt.Errorf("%x is not an IPv4 address of one host", value)
	}
	return a, nil
}

// linkOf returns an address of the network that the client is on: as the relay
// says, as the client says (RFC 3011: an access server asks for others), the
// relay's own, the client's own, ours.
//
// A client that has an address renews and releases past its relay, straight to
// us; then nothing but that address tells where it is.
func linkOf(req *dhcpv4.DHCPv4, relay relayInfo, own netip.Addr) (netip.Addr, error) {
	if relay.link.IsValid() {
		return relay.link, nil
	}
	if v, ok := req.Options[optSubnetSelection]; ok {
		a, err := oneUnicast(v)
		if err != nil {
			return a, fmt.Errorf("option %d: %w", optSubnetSelection, err)
		}
		return a, nil
	}
	if gi := addr(req.GatewayIPAddr); gi.IsValid() {
		if !unicast(gi) {
			return gi, fmt.Errorf("relay address %s is not unicast", gi)
		}
		return gi, nil
	}
	if ci := addr(req.ClientIPAddr); unicast(ci) && usesItsAddress(req) {
		return ci, nil
	}
	return own, nil
}
