package dhcp

import (
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/pools"
)

// forged tells whether a packet was sent from the address of a node in the name
// of another machine. A pod can send UDP from its node's address. Were its
// DISCOVER taken for one of firmware, its node's next boot would seem to have
// begun, and a boot is what join tokens are made for.
//
// Firmware has no address when it sends a DISCOVER (RFC 2131, section 4.1), a
// relay agent is no node, and in proxy mode the word of a client is all that
// tells its address.
func (s *Server) forged(r *request) bool {
	if s.Owner == nil || !r.from.IsValid() || r.from.IsUnspecified() {
		return false
	}
	owned, own := s.Owner(r.from, r.mac)
	return owned && (r.relayed || r.kind == dhcpv4.MessageTypeDiscover || s.Mode == pools.DHCPProxy && !own)
}

// Owner tells whether a node has the address, and whether mac is one of that
// node's.
type Owner func(address netip.Addr, mac pools.MAC) (owned, own bool)
