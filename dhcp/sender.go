package dhcp

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp/wire"
	"drover/pools"
)

// Sender is the origin of a packet: what its frame and its IP header say.
type Sender struct {
	MAC       pools.MAC  // source of the frame; may be zero when Relay is set
	Addr      netip.Addr // source address; 0.0.0.0 before the client has one
	Port      uint16     // source port
	Broadcast bool       // sent to a broadcast address
	BootPort  bool       // sent to port 4011
	Relay     bool       // the frame is from a relay agent that was confirmed before
}

// Senders decides which packets count. UDP proves nothing: a pod can send it from the
// address of its node, a host of another network from its own, and a pod with
// CAP_NET_RAW from any address. A frame proves a little more, since routers and nodes
// send the packets that they forward with their own MAC. These are the rules:
//
//   - A client without an address sends from 0.0.0.0, in a frame of its own, or to all.
//     No router forwards such a packet.
//   - A client with an address sends from it, and about it alone. The address is its
//     own by a lease or by the config. If it is nobody's, the client is on the wire and
//     answers ARP for it. A DISCOVER or a BOOTP request never comes from an address.
//   - A relay agent has its addresses (giaddr and source) in declared subnets, or the
//     operator lists them. They are no machine's and in no range. The packet has at
//     least one hop, unless the source is on the wire or listed, since the relay agent of
//     BusyBox does not count. It comes from port 67, which no user may have, unless the operator
//     lists the source. The frame is not from a machine: it is from the relay agent,
//     which then answers ARP for a source that is not listed, or from a router.
//   - Anyone can lease an address in the name of a router. A frame from a MAC that only holds
//     a lease is from a machine if that MAC answers for the leased address, by ARP or by
//     neighbour discovery, and for the address of no router.
//   - Port 4011 is for clients on the wire that have an address.
//
// A client may select another subnet (118, RFC 3011) of the network that it asks from alone:
// anyone can send that option. Behind a relay agent that the operator lists it may select any.
//
// The MAC of a router says nothing about the hosts behind it: they can forge the source
// of a relay agent unless the router checks sources.
type Senders struct {
	Machines Machines
	Networks Networks
	Wire     []netip.Prefix // the networks of the interface that received the packet
}

// Machines finds machines by address and by MAC. Its methods are called for each packet, from
// several goroutines.
type Machines interface {
	// Owns reports whether a machine has the address (owned), and whether mac is
	// one of that machine's (own).
	Owns(addr netip.Addr, mac pools.MAC) (owned, own bool)
	// Declares reports whether a node has the MAC.
	Declares(mac pools.MAC) bool
	// Leased returns the addresses of both families that mac leases, or leased last.
	Leased(mac pools.MAC) []netip.Addr
}

// Networks has the networks that the operator declares.
type Networks interface {
	// InSubnet reports whether an address is in a declared subnet.
	InSubnet(addr netip.Addr) bool
	// InRange reports whether a pool leases the address.
	InRange(addr netip.Addr) bool
	// ListsRelay reports whether the config names an address as that of a relay agent.
	ListsRelay(addr netip.Addr) bool
	// OneNetwork reports whether a network link, the address of a relay agent or of an
	// interface, and an address of a declared subnet are of one network.
	OneNetwork(link, addr netip.Addr) bool
}

// Verdict is the decision on a packet. The zero Verdict lets it count.
type Verdict struct {
	Drop Decision // [Malformed] or [Spoofed]; empty: the packet counts
	Why  string   // the reason for Spoofed, and the remedy where there is one; with Confirm or Unless the reason if the packet does not count
	Err  error    // the reason for Malformed

	// Confirm is an address, unless it is the zero Addr. The packet counts only
	// when the host with the MAC By answers ARP or neighbour discovery for it.
	Confirm netip.Addr
	By      pools.MAC

	// Unless are addresses. The packet does not count when the host with the MAC By answers
	// for one of them, and for the address of no router on the wire.
	Unless []netip.Addr

	// Relay reports that the frame is from a relay agent or a router, whose later
	// packets need not be confirmed.
	Relay bool
}

// The reasons. A log line has the addresses beside.
const (
	whyUnicast   = "sent from no address to the server alone"
	whyBootPort  = "sent to port 4011 by a host that is not on the wire with an address of its own"
	whyDiscover  = "a DISCOVER or a BOOTP request from an address: firmware has none, a pod on a node has"
	whyOther     = "about another address than the one that it came from"
	whyOwner     = "sent from the address of another machine"
	whyNobody    = "sent from an address that the machine does not have"
	whyForwarded = "forwarded by a machine: set the sysctl net.ipv4.conf.all.rp_filter=1 on nodes"
	whyHops      = "relayed without a hop (RFC 1542, section 4.1.1): name the source in subnets[].relays if it is a relay agent that does not count them"
	whyRelay     = "from a relay agent outside of the declared subnets: name its addresses in subnets[].relays"
	whyPort      = "relayed from another port than 67 (RFC 8357): name the source in subnets[].relays if it is a relay agent"
	whyVirtual   = "in the name of a virtual router (VRRP, HSRP): it is no machine"
	whyNode      = "relayed from the address of a machine: a node is no relay agent"
	whySilent    = "the host that sent it does not answer ARP for its source address"
	whyMachine   = "forwarded by a machine that no node declares: set the sysctl net.ipv4.conf.all.rp_filter=1 on it; " +
		"if the sender is a router, name its address in subnets[].router or relays, and end its lease with drover lease release"
)

// relayPort is the port of servers and relay agents.
const relayPort = 67

func spoofed(why string) Verdict { return Verdict{Drop: Spoofed, Why: why} }

// Judge decides on a packet. A subnet that the client may not select is then left aside.
func (s *Senders) Judge(r *Request, from Sender) Verdict {
	if err := r.check(); err != nil {
		return Verdict{Drop: Malformed, Err: err}
	}
	if subnet := r.subnetSelection(); subnet.IsValid() && !s.maySelect(subnet, r.Giaddr, from.Addr) {
		r.foreign = fmt.Errorf("option 118: %s is in no subnet of the network that the client asks from", subnet)
	}
	switch {
	case r.MAC.IsVirtualRouter():
		return spoofed(whyVirtual)
	case r.Giaddr.IsValid():
		return s.relayed(r, from)
	case !from.Addr.IsUnspecified():
		return s.addressed(r, from)
	case from.BootPort:
		return spoofed(whyBootPort)
	case from.MAC != r.MAC && !from.Broadcast:
		return spoofed(whyUnicast)
	}
	return Verdict{}
}

// maySelect reports whether a client may select a subnet. Without a relay agent it asks from
// its own address, or from the wire.
func (s *Senders) maySelect(subnet, relay, from netip.Addr) bool {
	switch {
	case relay.IsValid():
		return s.Networks.ListsRelay(relay) || s.Networks.OneNetwork(relay, subnet)
	case !from.IsUnspecified():
		return s.Networks.OneNetwork(from, subnet)
	}
	return slices.ContainsFunc(s.Wire, func(p netip.Prefix) bool { return s.Networks.OneNetwork(p.Addr(), subnet) })
}

// addressed decides on a packet that a client sent from an address.
func (s *Senders) addressed(r *Request, from Sender) Verdict {
	onWire := from.MAC == r.MAC || s.onWire(from.Addr)
	switch {
	case r.Type == dhcpv4.MessageTypeDiscover, r.bootp():
		return spoofed(whyDiscover)
	case !r.concerns(from.Addr):
		return spoofed(whyOther)
	case from.BootPort && !onWire:
		return spoofed(whyBootPort)
	}
	owned, own := s.Machines.Owns(from.Addr, r.MAC)
	switch {
	case own:
		return s.forwarded(r, from, onWire)
	case owned:
		return spoofed(whyOwner)
	case from.MAC != r.MAC:
		return spoofed(whyNobody)
	case from.BootPort, r.renews(), r.Type == dhcpv4.MessageTypeInform:
		return confirm(from.Addr, r.MAC)
	case r.Type == dhcpv4.MessageTypeRequest && r.options.Has(wire.OptServerID):
		return Verdict{} // a ROM that uses the address of an OFFER too early
	}
	return spoofed(whyNobody)
}

// forwarded decides on the frame of a packet from an address that is the client's own.
func (s *Senders) forwarded(r *Request, from Sender, onWire bool) Verdict {
	if from.MAC == r.MAC {
		return Verdict{}
	}
	if _, card := s.Machines.Owns(from.Addr, from.MAC); card {
		return Verdict{} // another card of the machine, chosen by its routes
	}
	switch {
	case !from.MAC.IsVirtualRouter() && s.Machines.Declares(from.MAC):
		return spoofed(whyForwarded)
	case onWire: // a bridge that puts its own MAC into frames also answers ARP with it
		return confirm(from.Addr, from.MAC)
	}
	return s.unlessMachine(from.MAC) // a router: the client renews past its relay agent
}

// confirm lets a packet count whose sender answers ARP for an address.
func confirm(a netip.Addr, by pools.MAC) Verdict { return Verdict{Confirm: a, By: by, Why: whySilent} }

// unlessMachine lets a packet count that was forwarded by a MAC that no node has, unless that
// is a machine: it answers for an address that it leases.
func (s *Senders) unlessMachine(mac pools.MAC) Verdict {
	if mac.IsVirtualRouter() {
		return Verdict{}
	}
	return Verdict{Unless: s.Machines.Leased(mac), By: mac, Why: whyMachine}
}

// relayed decides on a packet of a relay agent. Its source can be another address than
// giaddr: that of the interface towards the server, or that of a second relay agent,
// which leaves the giaddr of the first.
func (s *Senders) relayed(r *Request, from Sender) Verdict {
	switch {
	case from.BootPort:
		return spoofed(whyBootPort)
	case r.hops() == 0 && !s.onWire(from.Addr) && !s.Networks.ListsRelay(from.Addr):
		return spoofed(whyHops)
	}
	why := s.noRelay(from.Addr)
	if why == "" && r.Giaddr != from.Addr {
		why = s.noRelay(r.Giaddr)
	}
	switch {
	case why != "":
		return spoofed(why)
	case from.Port != relayPort && !s.Networks.ListsRelay(from.Addr):
		return spoofed(whyPort)
	case from.Relay:
		return Verdict{}
	case !from.MAC.IsVirtualRouter() && s.Machines.Declares(from.MAC):
		return spoofed(whyForwarded)
	}
	v := s.unlessMachine(from.MAC)
	if s.onWire(from.Addr) && !s.Networks.ListsRelay(from.Addr) {
		v = confirm(from.Addr, from.MAC)
	}
	v.Relay = true
	return v
}

// noRelay returns the reason why an address cannot be that of a relay agent, or "".
func (s *Senders) noRelay(a netip.Addr) string {
	if !s.Networks.InSubnet(a) && !s.Networks.ListsRelay(a) {
		return whyRelay
	}
	if owned, _ := s.Machines.Owns(a, pools.MAC{}); owned || s.Networks.InRange(a) {
		return whyNode
	}
	return ""
}

// onWire reports whether a host with the address is on the wire, without a router
// between.
func (s *Senders) onWire(a netip.Addr) bool {
	for _, p := range s.Wire {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// concerns reports whether a packet is about the address a and no other.
func (r *Request) concerns(a netip.Addr) bool {
	for _, b := range [...]netip.Addr{r.ciaddr(), r.requestedOption()} {
		if b.IsValid() && b != a {
			return false
		}
	}
	return true
}

// hops returns how many relay agents have forwarded the packet. Each of them adds one.
func (r *Request) hops() byte { return r.header[wire.HopsAt] }
