package dhcp6

import (
	"net/netip"

	"drover/dhcp"
	"drover/pools"
)

// Senders decides which packets count. These are the rules:
//
//   - A client sends from a link-local address, which no router forwards. It is the machine
//     whose card sent the frame. An address made from the MAC of another machine is forged.
//   - A relay agent has its address in declared subnets, or the operator lists it. It is no
//     machine's and in no range. The network that it names (link address) is a declared one
//     too. The packet comes from port 547, unless the operator lists the source, and its
//     frame is not from a machine, which would forward the packet of a pod.
type Senders struct {
	Machines dhcp.Machines
	Networks dhcp.Networks
}

// The reasons. A log line has the addresses beside.
const (
	whyRouted    = "a client sends from its link-local address; this one was routed"
	whyOther     = "sent from the link-local address of another machine"
	whyForwarded = "forwarded by a machine: a node is no relay agent"
	whyRelay     = "from a relay agent outside of the declared subnets: name its addresses in subnets[].relays"
	whyLink      = "for a network (link address) that is in no declared subnet: name it in subnets[].relays"
	whyPort      = "relayed from another port than 547 (RFC 8357): name the source in subnets[].relays if it is a relay agent"
	whyNode      = "relayed from the address of a machine: a node is no relay agent"
)

// Judge decides on a packet.
func (s *Senders) Judge(r *Request) dhcp.Verdict {
	if r.err != nil {
		return dhcp.Verdict{Drop: dhcp.Malformed, Err: r.err}
	}
	why := s.direct(r)
	if r.Relayed() {
		why = s.relayed(r)
	}
	if why != "" {
		return dhcp.Verdict{Drop: dhcp.Spoofed, Why: why}
	}
	return dhcp.Verdict{}
}

func (s *Senders) direct(r *Request) (why string) {
	if !r.From.Addr.IsLinkLocalUnicast() {
		return whyRouted
	}
	if mac, ok := eui64(r.From.Addr); ok && mac != r.From.MAC && s.Machines.Known(mac) {
		return whyOther
	}
	return ""
}

func (s *Senders) relayed(r *Request) (why string) {
	from, listed := r.From.Addr, s.Networks.ListsRelay(r.From.Addr)
	owned, _ := s.Machines.Owns(from, pools.MAC{})
	switch {
	case !s.Networks.InSubnet(from) && !listed:
		return whyRelay
	case owned || s.Networks.InRange(from):
		return whyNode
	case r.From.Port != ServerPort && !listed:
		return whyPort
	case s.Machines.Known(r.From.MAC):
		return whyForwarded
	}
	if link := r.link(); link.IsValid() && !s.isLink(link) {
		return whyLink
	}
	return ""
}

// isLink reports whether a link address names a declared network.
func (s *Senders) isLink(a netip.Addr) bool {
	return s.Networks.InSubnet(a) || s.Networks.ListsRelay(a)
}
