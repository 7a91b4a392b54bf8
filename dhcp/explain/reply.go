package explain

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"

	"drover/dhcp"
	"drover/dhcp/wire"
	"drover/pools"
)

// dhcpReply is the reply to a DHCP request, decoded.
type dhcpReply struct {
	Request string       `json:"request"` // DISCOVER, ...
	Type    string       `json:"type"`    // OFFER, ...
	YIAddr  netip.Addr   `json:"yiaddr"`
	SIAddr  netip.Addr   `json:"siaddr"`
	SName   string       `json:"sname,omitempty"`
	File    string       `json:"file,omitempty"`
	Options []optionText `json:"options"`
	Size    int          `json:"size"` // bytes of the UDP payload
	Note    string       `json:"note,omitempty"`
	Packet  string       `json:"packet"` // the whole UDP payload, in hex
}

type optionText struct {
	Code  uint16 `json:"code"`
	Name  string `json:"name,omitempty"`
	Value string `json:"value"`
	Hex   string `json:"hex"`
	In    string `json:"in,omitempty"` // the field with the option: file or sname; empty: options
}

// Explain returns the server's answer to a request of DHCPv4. An error is the reason for
// silence; the explanation may then have a Plan.
func (e *Server) Explain(request []byte) (Explanation, error) {
	leases := newStandIn(e.Farm, e.Leases, false, e.Now())
	s := &dhcp.Responder{Farm: liveFarm{e.Farm, leases, e.Now(), e.Unknown}, Leases: leases, Mode: e.Farm.Config.Server.DHCP}
	var x dhcp.Exchange
	var packet []byte
	for _, s.Address = range e.addresses() {
		packet, x = s.ReplyTo(request, e.Now())
		if x.Plan != nil {
			break
		}
	}
	silent := packet == nil || s.Mode == pools.DHCPOff
	out, err := e.planned(&x, silent)
	if err != nil || silent {
		return out, err
	}
	reply, err := newDHCPReply(packet, x)
	if err != nil {
		return out, err
	}
	lacks := ""
	if s.Address.IsUnspecified() {
		lacks = "the server has no address on this host, so that it lacks here: set server.address"
	}
	reply.Note = note(&x, leases, lacks)
	out.DHCP = reply
	return out, nil
}

// planned returns the explanation of an exchange without the reply. An error is the reason
// for silence; drover that does no DHCP has none.
func (e *Server) planned(x *dhcp.Exchange, silent bool) (Explanation, error) {
	if x.Plan == nil {
		return Explanation{}, silence(x)
	}
	plan := x.Plan.WithNextBoot(e.NextBoots[x.Plan.Node])
	out := Explanation{Plan: plan, Why: plan.Why(), TLS: explainTLS(e.Farm, plan)}
	if silent && e.Farm.Config.Server.DHCP != pools.DHCPOff {
		return out, silence(x)
	}
	return out, nil
}

// note returns what there is to say about a reply. lacks is what it lacks on this host.
func note(x *dhcp.Exchange, leases *standIn, lacks string) string {
	var notes []string
	if leases.guessed {
		notes = append(notes, x.Address.String()+" is leased when it asks")
	}
	for _, text := range []string{lacks, x.Warning} {
		if text != "" {
			notes = append(notes, text)
		}
	}
	return strings.Join(notes, "; ")
}

// addresses returns the server's possible addresses: the first of each of its interfaces on
// this host, and those of the config. Without any it returns 0.0.0.0.
func (e *Server) addresses() []netip.Addr {
	var all []netip.Addr
	locals := e.Farm.Locals()
	for i, l := range locals {
		first := i == 0 || locals[i-1].Interface != l.Interface
		if a := l.Prefix.Addr(); first && e.inSubnet(a) {
			all = append(all, a)
		}
	}
	if a := e.Farm.Address(); a.Is4() {
		all = append(all, a)
	}
	for i, s := range e.Farm.Config.Subnets { // of interfaces that this host does not have
		if a, _ := e.Farm.BootAddress(i); a.Is4() && s.CIDR.Contains(a) {
			all = append(all, a)
		}
	}
	if len(all) > 0 {
		return all
	}
	return append(all, netip.IPv4Unspecified())
}

// inSubnet reports whether an address is in a subnet of the config. An interface of
// the same name on another host has one outside.
func (e *Server) inSubnet(a netip.Addr) bool {
	for _, s := range e.Farm.Config.Subnets {
		if s.CIDR.Contains(a) {
			return true
		}
	}
	return false
}

// silence returns the reason for no answer as an error.
func silence(x *dhcp.Exchange) error {
	why := string(x.Decision)
	switch {
	case x.Err != nil:
		why += ": " + x.Err.Error()
	case x.Why != "":
		why = x.Why
	}
	if x.MAC.IsZero() {
		return fmt.Errorf("the request gets silence: %s", why)
	}
	return fmt.Errorf("%s gets silence: %s", x.MAC, why)
}

func newDHCPReply(packet []byte, x dhcp.Exchange) (*dhcpReply, error) {
	options, err := wire.Describe(packet)
	if err != nil {
		return nil, err
	}
	r := &dhcpReply{
		Request: x.Type, Type: x.Reply, Size: len(packet), Packet: hex.EncodeToString(packet),
		YIAddr: netip.AddrFrom4([4]byte(packet[16:])), SIAddr: netip.AddrFrom4([4]byte(packet[20:])),
	}
	used := map[string]bool{}
	for _, o := range options {
		used[o.In] = true
		t := optionText{uint16(o.Code), o.Name, o.Value, hex.EncodeToString(o.Data), o.In}
		for _, set := range x.Plan.Options { // in the notation of the config
			if set.Code == o.Code && string(set.Data) == string(o.Data) {
				t.Name, t.Value = set.Name, set.Text
			}
		}
		r.Options = append(r.Options, t)
	}
	if !used["sname"] {
		r.SName = cString(packet[44:108])
	}
	if !used["file"] {
		r.File = cString(packet[108:236])
	}
	return r, nil
}

// cString returns the text of a field up to its NUL.
func cString(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}

func (r *dhcpReply) text() string {
	var b strings.Builder
	writeHeader(&b, "DHCP", r.Request, r.Type, r.Size, r.Note)
	for _, f := range []struct{ name, value string }{
		{"yiaddr", r.YIAddr.String()}, {"siaddr", r.SIAddr.String()}, {"sname", r.SName}, {"file", r.File},
	} {
		if f.value != "" {
			fmt.Fprintf(&b, "  %-24s  %s\n", f.name, f.value)
		}
	}
	writeOptions(&b, r.Options)
	return b.String()
}

func writeHeader(b *strings.Builder, protocol string, request, answer string, size int, note string) {
	fmt.Fprintf(b, "%s: %s is answered with %s, %d bytes", protocol, request, answer, size)
	if note != "" {
		fmt.Fprintf(b, " (%s)", note)
	}
	b.WriteByte('\n')
}

func writeOptions(b *strings.Builder, options []optionText) {
	for _, o := range options {
		fmt.Fprintf(b, "  %3d %-20s  %s", o.Code, o.Name, o.Value)
		if o.In != "" {
			fmt.Fprintf(b, " (in %s)", o.In)
		}
		b.WriteByte('\n')
	}
}
