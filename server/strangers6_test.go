package server

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"drover/dhcp/dhcp6"
	"drover/pools"
	"drover/state"
)

// serverAt is the server's address in FuzzStrangers6.
var serverAt = netip.MustParseAddr("fd00:28::2")

// ask6 is a packet of DHCPv6, as it was sent.
type ask6 struct {
	name   string
	from   dhcp6.Sender
	packet []byte
}

// eui64 returns the link-local address that is made of a MAC.
func eui64(m pools.MAC) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]})
}

// message6 returns a message of a machine about an address.
func message6(m pools.MAC, t dhcpv6.MessageType, address netip.Addr, firmware bool) dhcpv6.DHCPv6 {
	d := &dhcpv6.Message{MessageType: t, TransactionID: dhcpv6.TransactionID{1, 2, 3}}
	d.AddOption(dhcpv6.OptClientID(&dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: m[:]}))
	ia := &dhcpv6.OptIANA{IaId: [4]byte{3: 1}}
	if address.IsValid() {
		ia.Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: address.AsSlice()})
	}
	d.AddOption(ia)
	switch t {
	case dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeRelease, dhcpv6.MessageTypeDecline:
		d.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionServerID, OptionData: dhcp6.NewDUID(pools.MAC{2, 1})})
	}
	if firmware {
		d.AddOption(dhcpv6.OptClientArchType(iana.EFI_X86_64))
		d.AddOption(&dhcpv6.OptVendorClass{EnterpriseNumber: 343, Data: [][]byte{[]byte("PXEClient:Arch:00007:UNDI:003000")}})
	}
	return d
}

// relayed6 returns the message of a relay agent that has received a message of a machine.
func relayed6(d dhcpv6.DHCPv6, m pools.MAC, link netip.Addr) dhcpv6.DHCPv6 {
	r := &dhcpv6.RelayMessage{MessageType: dhcpv6.MessageTypeRelayForward, LinkAddr: link.AsSlice(), PeerAddr: eui64(m).AsSlice()}
	r.AddOption(dhcpv6.OptClientLinkLayerAddress(iana.HWTypeEthernet, m[:]))
	r.AddOption(dhcpv6.OptRelayMessage(d))
	return r
}

// honest6 are packets of machines, and of the router and relay agents for them.
func honest6() []ask6 {
	near, far, rack := netip.MustParseAddr("fd00:28::36:1"), netip.MustParseAddr("fd00:29::7"), netip.MustParseAddr("fd00:29::1")
	solicit := func(m pools.MAC) dhcpv6.DHCPv6 { return message6(m, dhcpv6.MessageTypeSolicit, netip.Addr{}, true) }
	machine := dhcp6.Sender{MAC: nearMAC, Addr: eui64(nearMAC), Port: 546}
	agent := func(m pools.MAC, a string) dhcp6.Sender {
		return dhcp6.Sender{MAC: m, Addr: netip.MustParseAddr(a), Port: 547, Unicast: true}
	}
	return []ask6{
		{"a node boots", machine, solicit(nearMAC).ToBytes()},
		{"a node renews", machine, message6(nearMAC, dhcpv6.MessageTypeRenew, near, false).ToBytes()},
		{"a node boots behind the router", agent(wireRouter, "fd00:28::fe"), relayed6(solicit(farMAC), farMAC, rack).ToBytes()},
		{"a node boots behind the router, relayed from its other address", agent(wireRouter, "fd00:29::1"), relayed6(solicit(farMAC), farMAC, rack).ToBytes()},
		{"a node boots behind a virtual router", agent(pools.MAC{0, 0, 0x5e, 0, 2, 7}, "fd00:29::1"), relayed6(solicit(farMAC), farMAC, rack).ToBytes()},
		{"a node boots behind a listed relay agent", agent(listedAgent, "fd00:28::fd"), relayed6(solicit(farMAC), farMAC, rack).ToBytes()},
		{"a node renews behind the router", agent(wireRouter, "fd00:28::fe"), relayed6(message6(farMAC, dhcpv6.MessageTypeRenew, far, false), farMAC, rack).ToBytes()},
	}
}

// outcome is what becomes of an honest packet, as with IPv4: a router does not answer for an address
// that it does not have.
func (a *ask6) outcome(s *dhcp6.Senders, r *dhcp6.Responder) string {
	var req dhcp6.Request
	req.Parse(a.packet, a.from)
	v := s.Judge(&req)
	if !v.Confirm.IsValid() {
		v.By = pools.MAC{}
	}
	_, x := r.Reply(&req, serverAt, time.Now())
	return fmt.Sprintf("dropped %q %v, %s of %s, then %s for %s", v.Drop, v.Err, v.Confirm, v.By, x.Reply, x.Address)
}

// FuzzStrangers6 is FuzzStrangers for DHCPv6.
func FuzzStrangers6(f *testing.F) {
	store, err := state.Open(f.TempDir(), state.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = store.Close() })
	d := newDirectory(nil, store)
	d.Farm = fixedFarm{strangersFarm}
	senders := &dhcp6.Senders{Machines: d, Networks: d, Wire: []netip.Prefix{netip.MustParsePrefix("fd00:28::/64")}}
	responder := &dhcp6.Responder{Farm: d, Leases: store.Leases6, DUID: dhcp6.NewDUID(pools.MAC{2, 1})}
	others := honest6()
	outcomes := func() (all []string) {
		for i := range others {
			all = append(all, others[i].name+": "+others[i].outcome(senders, responder))
		}
		return all
	}
	for _, x := range outcomes() {
		if !strings.Contains(x, `: dropped ""`) {
			f.Fatal(x)
		}
	}
	for kind := byte(1); kind <= 13; kind++ {
		for host := range byte(6) {
			f.Add([]byte{kind, host, 5, 0, 0, kind, host, 5, 1, 1, kind, host, host, 2, 1})
			f.Add([]byte{1, host, host, 6, 0, 3, host, host, 6, 0, kind, host, 5, 6, 0})  // after a lease
			f.Add([]byte{3, host, 5, 6, 2, 3, host, 5, 6, 6, kind, host, 5, 6, 2})        // after a lease by way of a relay agent
			f.Add([]byte{3, host, 0, 8, 2, kind, host, 1, 8, 2, kind, host, host, 1, 14}) // in the frames of the router and the agent
		}
	}
	fuzzStrangers(f, outcomes, func(b []byte) { strange6(senders, responder, b) })
}

// strange6 sends a packet of a stranger, as strange does: the last byte chooses whether it is a boot
// program's, whether a relay agent has it, and for which network. The stranger answers neighbour
// discovery for every address that nobody has.
func strange6(s *dhcp6.Senders, r *dhcp6.Responder, b []byte) {
	macs := []pools.MAC{wireRouter, listedAgent, nearMAC, farMAC, {0, 0, 0x5e, 0, 2, 7}, strangerMAC}
	addrs := []string{"fd00:28::fe", "fd00:28::fd", "fd00:29::1", "fd00:28::2", "fd00:28::36:1", "fd00:29::7", "fd00:28::72:11", "fd00:28::72:20", "fd00:28::99"}
	a := netip.MustParseAddr(addrs[int(b[3])%len(addrs)])
	name, frame := macs[int(b[1])%len(macs)], macs[int(b[2])%len(macs)]
	d := message6(name, dhcpv6.MessageType(b[0]%14), a, b[4]&1 != 0)
	from := dhcp6.Sender{MAC: frame, Addr: eui64(name), Port: 546}
	if b[4]&2 != 0 {
		link := netip.MustParseAddr("fd00:28::fe")
		if b[4]&4 != 0 {
			link = netip.MustParseAddr("fd00:29::1")
		}
		if b[4]&8 != 0 {
			d = relayed6(d, name, link) // in the name of an agent behind the first one
		}
		d = relayed6(d, name, link)
		from = dhcp6.Sender{MAC: frame, Addr: a, Port: 547, Unicast: true}
	}
	var req dhcp6.Request
	req.Parse(d.ToBytes(), from)
	v := s.Judge(&req)
	if v.Drop != "" || v.Confirm.IsValid() && frame != strangerMAC || len(v.Unless) > 0 && v.By == strangerMAC {
		return // its frame is not that of the stranger, whose answers neighbour discovery has
	}
	_, _ = r.Reply(&req, serverAt, time.Now())
}
