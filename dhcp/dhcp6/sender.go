package dhcp6

import (
	"net/netip"
	"slices"

	"drover/dhcp"
	"drover/pools"
)

// Senders decides which packets count. These are the rules:
//
//   - A client sends from a link-local address, which no router forwards. It is the machine
//     whose card sent the frame. An address made from the MAC of another machine is forged.
//   - A boot program sends from port 546, which no user may have, and behind a relay agent
//     from a link-local address. What begins a boot is a packet of a boot program. RFC 8415,
//     section 7.2, has ports to listen on alone, so operating systems may send from any.
//   - A relay agent has its address in declared subnets, or the operator lists it. It is no
//     machine's and in no range. The network that it names (link address) is a declared one
//     too. The packet comes from port 547, unless the operator lists the source, and its
//     frame is not from a machine, which would forward the packet of a pod: it is from the
//     relay agent, which then answers neighbour discovery for a source on the wire that is not
//     listed, or from a router. Anyone can lease an address in the name of a router, so a MAC that
//     only holds a lease is that of a machine if it answers for the leased address.
//   - A relay agent behind another one has an address that the operator lists. If it sends
//     from a link-local address, as one in a switch does (RFC 6221), the operator lists the
//     link address of the other. Otherwise it can be a client that relays for itself: its
//     port and its frame are not known here.
type Senders struct {
	Machines dhcp.Machines
	Networks dhcp.Networks
	Wire     []netip.Prefix // the networks of the interface that received the packet
}

// The reasons. A log line has the addresses beside.
const (
	whyVirtual   = "in the name of a virtual router (VRRP, HSRP): it is no machine"
	whyRouted    = "a client sends from its link-local address; this one was routed"
	whyOther     = "sent from the link-local address of another machine"
	whyForwarded = "forwarded by a machine: a node is no relay agent"
	whyLeased    = "forwarded by a machine that no node declares: if the sender is a router or a relay agent, name its address in subnets[].relays, or end the lease with drover lease release"
	whySilent    = "relayed by a host that does not answer neighbour discovery for its source address: name that in subnets[].relays if it is a relay agent"
	whyRelay     = "from a relay agent outside of the declared subnets: name its addresses in subnets[].relays"
	whyLink      = "for a network (link address) that is in no declared subnet: name it in subnets[].relays"
	whyPort      = "relayed from another port than 547 (RFC 8357): name the source in subnets[].relays if it is a relay agent"
	whyNode      = "relayed from the address of a machine: a node is no relay agent"
	whyBootPort  = "from a boot program, but not from port 546: any user of a node can send that"
	whyBootPeer  = "from a boot program, but its relay agent did not receive it from a link-local address: a pod on a node can send that"
	whyBehind    = "from a relay agent behind another one (peer): name its address in subnets[].relays if it is not a client"
	whySwitch    = "from a link-local address (peer) that relays to a relay agent: name the link address of that agent in subnets[].relays if its network has relay agents in switches (RFC 6221)"
)

// Judge decides on a packet.
func (s *Senders) Judge(r *Request) dhcp.Verdict {
	if r.err != nil {
		return dhcp.Verdict{Drop: dhcp.Malformed, Err: r.err}
	}
	switch {
	case r.MAC.IsVirtualRouter():
		return spoofed(whyVirtual)
	case r.Relayed():
		return s.relayed(r)
	}
	return s.direct(r)
}

func (s *Senders) direct(r *Request) dhcp.Verdict {
	mac, made := eui64(r.From.Addr)
	made = made && mac != r.From.MAC
	switch {
	case !isLinkLocal(r.From.Addr):
		return spoofed(whyRouted)
	case made && s.Machines.Declares(mac):
		return spoofed(whyOther)
	case r.From.Port != ClientPort && r.boots():
		return spoofed(whyBootPort)
	case made:
		return s.unlessMachine(mac, whyOther)
	}
	return dhcp.Verdict{}
}

func spoofed(why string) dhcp.Verdict { return dhcp.Verdict{Drop: dhcp.Spoofed, Why: why} }

// unlessMachine lets a packet count unless a MAC that no node has is that of a machine: it answers
// for an address that it leases.
func (s *Senders) unlessMachine(mac pools.MAC, why string) dhcp.Verdict {
	leased := s.Machines.Leased(mac)
	if len(leased) == 0 {
		return dhcp.Verdict{}
	}
	return dhcp.Verdict{Unless: leased, By: mac, Why: why}
}

func (s *Senders) relayed(r *Request) dhcp.Verdict {
	if why := s.noAgent(r); why != "" {
		return spoofed(why)
	}
	onWire := slices.ContainsFunc(s.Wire, func(p netip.Prefix) bool { return p.Contains(r.From.Addr) })
	switch {
	case r.From.Relay, r.From.MAC.IsVirtualRouter(), s.Networks.ListsRelay(r.From.Addr):
		return dhcp.Verdict{}
	case onWire:
		return dhcp.Verdict{Confirm: r.From.Addr, By: r.From.MAC, Why: whySilent, Relay: true}
	}
	v := s.unlessMachine(r.From.MAC, whyLeased)
	v.Relay = true
	return v
}

// noAgent returns the reason why a packet is not that of a relay agent, or "".
func (s *Senders) noAgent(r *Request) (why string) {
	from, listed := r.From.Addr, s.Networks.ListsRelay(r.From.Addr)
	owned, _ := s.Machines.Owns(from, pools.MAC{})
	switch {
	case !s.Networks.InSubnet(from) && !listed:
		return whyRelay
	case owned || s.Networks.InRange(from):
		return whyNode
	case r.From.Port != ServerPort && !listed:
		return whyPort
	case !r.From.MAC.IsVirtualRouter() && s.Machines.Declares(r.From.MAC):
		return whyForwarded
	}
	if link := r.Link(); link.IsValid() && !s.isLink(link) {
		return whyLink
	}
	if why := s.behind(r); why != "" {
		return why
	}
	if !isLinkLocal(r.relays[r.hops-1].peer()) && r.boots() {
		return whyBootPeer
	}
	return ""
}

// behind decides on the relay agents behind the one that sent the packet. Each hop has the
// address that its message came from: that of the next agent, at last that of the client.
func (s *Senders) behind(r *Request) (why string) {
	var link netip.Addr // of the agent that received the message; those in switches have none
	for i := range r.hops - 1 {
		at := &r.relays[i]
		if a := at.link(); !a.IsUnspecified() {
			link = a
		}
		switch peer := at.peer(); {
		case !isLinkLocal(peer) && !s.Networks.ListsRelay(peer):
			return whyBehind
		case !isLinkLocal(peer):
			link = netip.Addr{} // the next agent is on another network
		case !s.Networks.ListsRelay(link):
			return whySwitch
		}
	}
	return ""
}

// isLinkLocal reports whether an address is in fe80::/10. Addresses of IPv4 are not.
func isLinkLocal(a netip.Addr) bool { return !a.Is4In6() && a.IsLinkLocalUnicast() }

// isLink reports whether a link address names a declared network.
func (s *Senders) isLink(a netip.Addr) bool {
	return s.Networks.InSubnet(a) || s.Networks.ListsRelay(a)
}
