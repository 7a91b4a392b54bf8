package explain

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"

	"drover/dhcp"
	"drover/dhcp/bootprogram"
	"drover/dhcp/dhcp6"
	"drover/pools"
)

// dhcp6Reply is the reply to a DHCPv6 message, decoded.
type dhcp6Reply struct {
	Request string       `json:"request"` // SOLICIT
	Type    string       `json:"type"`    // ADVERTISE, REPLY
	Address netip.Addr   `json:"address,omitzero"`
	Options []optionText `json:"options"`
	Size    int          `json:"size"` // bytes of the UDP payload
	Note    string       `json:"note,omitempty"`
	Packet  string       `json:"packet"` // the whole UDP payload, in hex
}

// WantsIPv6 reports whether a machine is explained by DHCPv6 without being asked for that:
// its node, or the whole farm, has IPv6 only.
func (e *Server) WantsIPv6(mac pools.MAC) bool {
	if e.Farm.Declares(mac) {
		return !e.Farm.HasAddress(mac, false) && e.Farm.HasAddress(mac, true)
	}
	return e.Farm.Config.HasIPv6() && !e.Farm.Config.HasIPv4()
}

// Explain6 returns the server's answer to the SOLICIT of a machine. An error is the reason
// for silence, or why there is no address for it.
func (e *Server) Explain6(d *bootprogram.Discover) (Explanation, error) {
	leases := newStandIn(e.Farm, e.Leases, true, e.Now())
	s := &dhcp6.Responder{
		Farm: liveFarm{e.Farm, leases, e.Now(), e.Unknown}, Leases: leases, Mode: e.Farm.Config.Server.DHCP,
		DUID: dhcp6.NewDUID(pools.MAC{}), // that of the server is not known here
	}
	var request dhcp6.Request
	request.Parse(d.Solicit(), dhcp6.Sender{MAC: d.MAC})
	var answer *dhcp6.Message
	var x dhcp.Exchange
	var own netip.Addr
	for _, own = range e.addresses6() {
		if answer, x = s.Reply(&request, own, e.Now()); x.Plan != nil {
			break
		}
	}
	if x.Plan != nil && x.Plan.LacksIPv6() != "" {
		return Explanation{}, fmt.Errorf("%s gets no address over IPv6: %s", x.MAC, x.Plan.LacksIPv6())
	}
	silent := answer == nil || s.Mode == pools.DHCPOff
	out, err := e.planned(&x, silent)
	if err != nil || silent {
		return out, err
	}
	reply, err := newDHCP6Reply(answer.Bytes, &x)
	if err != nil {
		return out, err
	}
	lacks := ""
	if own.IsUnspecified() {
		lacks = "the server has no IPv6 address on this host, so that it lacks here: set address in the subnet"
	}
	reply.Note = note(&x, leases, lacks)
	out.DHCP6 = reply
	return out, nil
}

// addresses6 returns the server's possible IPv6 addresses in the subnets: those of its
// interfaces on this host, and those of the config. Without any it returns the unspecified
// address.
func (e *Server) addresses6() []netip.Addr {
	var all []netip.Addr
	for _, l := range e.Farm.Locals6() {
		if a := l.Prefix.Addr(); e.inSubnet(a) {
			all = append(all, a)
		}
	}
	for i, s := range e.Farm.Config.Subnets {
		if a, _ := e.Farm.BootAddress(i); a.Is6() && s.CIDR.Contains(a) {
			all = append(all, a)
		}
	}
	if len(all) > 0 {
		return all
	}
	return append(all, netip.IPv6Unspecified())
}

func newDHCP6Reply(packet []byte, x *dhcp.Exchange) (*dhcp6Reply, error) {
	options, err := dhcp6.Describe(packet)
	if err != nil {
		return nil, err
	}
	r := &dhcp6Reply{Request: x.Type, Type: x.Reply, Address: x.Address, Size: len(packet), Packet: hex.EncodeToString(packet)}
	for _, o := range options {
		for _, set := range x.Plan.Options6 { // in the notation of the config
			if set.Code == o.Code && string(set.Data) == string(o.Data) {
				o.Name, o.Value = set.Name, set.Text
			}
		}
		r.Options = append(r.Options, optionText{Code: o.Code, Name: o.Name, Value: o.Value, Hex: hex.EncodeToString(o.Data)})
	}
	return r, nil
}

func (r *dhcp6Reply) text() string {
	var b strings.Builder
	writeHeader(&b, "DHCPv6", r.Request, r.Type, r.Size, r.Note)
	writeOptions(&b, r.Options)
	return b.String()
}
