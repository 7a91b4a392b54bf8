package dhcp_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/pools"
	"drover/pools/resolve"
)

const (
	discover = dhcpv4.MessageTypeDiscover
	request  = dhcpv4.MessageTypeRequest
	decline  = dhcpv4.MessageTypeDecline
	release  = dhcpv4.MessageTypeRelease
	inform   = dhcpv4.MessageTypeInform
)

// step is one packet of a sequence, and the expected outcome.
type step struct {
	name     string
	packet   *dhcpv4.DHCPv4
	reply    string // OFFER, ACK, NAK or empty
	address  string // yiaddr of the reply
	decision dhcp.Decision
}

func play(t *testing.T, s *responder, steps []step) {
	t.Helper()
	for _, st := range steps {
		t.Run(st.name, func(t *testing.T) {
			r, x := s.Reply(on(t, st.packet), noon)
			if x.Reply != st.reply || (r != nil) != (st.reply != "") || x.Decision != st.decision {
				t.Fatalf("got reply %q, decision %q (%v), want %q, %q", x.Reply, x.Decision, x.Err, st.reply, st.decision)
			}
			if r == nil {
				return
			}
			if got := r.YourIPAddr.String(); st.address != "" && got != st.address {
				t.Errorf("got address %s, want %s", got, st.address)
			}
			if got := r.ServerIdentifier().String(); got != serverAddr.String() {
				t.Errorf("got server identifier %s, want %s", got, serverAddr)
			}
			if r.TransactionID != st.packet.TransactionID || !bytes.Equal(r.ClientHWAddr, st.packet.ClientHWAddr) {
				t.Errorf("got %s, which does not answer %s", r, st.packet)
			}
		})
	}
}

func TestFixedNode(t *testing.T) {
	s, l := newServer()
	play(t, s, []step{
		{"web1 looks for an address", message(web1, discover), "OFFER", "10.28.36.1", dhcp.Offered},
		{"and wishes for another one", message(web1, discover, requested("10.28.99.9")), "OFFER", "10.28.36.1", dhcp.Offered},
		{"it chooses us", message(web1, request, serverID(serverAddr), requested("10.28.36.1")), "ACK", "10.28.36.1", dhcp.Acknowledged},
		{"its second NIC gets the same", message(web1b, discover), "OFFER", "10.28.36.1", dhcp.Offered},
		{"it chooses another server", message(web1, request, serverID(otherAddr), requested("10.28.36.1")), "", "", dhcp.OtherServer},
		{"it chooses us with an address we did not offer", message(web1, request, serverID(serverAddr), requested("10.28.36.2")), "NAK", "0.0.0.0", dhcp.Refused},
		{"it chooses us with the address in ciaddr", message(web1, request, serverID(serverAddr), ciaddr("10.28.36.1")), "ACK", "10.28.36.1", dhcp.Acknowledged},
		{"it chooses us and no address", message(web1, request, serverID(serverAddr)), "", "", dhcp.Unusable},
		{"it reboots with its address", message(web1, request, requested("10.28.36.1")), "ACK", "10.28.36.1", dhcp.Acknowledged},
		{"it reboots with an address from elsewhere", message(web1, request, requested("192.168.1.7")), "NAK", "0.0.0.0", dhcp.Refused},
		{"it renews", message(web1, request, ciaddr("10.28.36.1")), "ACK", "10.28.36.1", dhcp.Acknowledged},
		{"it renews an address from elsewhere", message(web1, request, ciaddr("192.168.1.7")), "NAK", "0.0.0.0", dhcp.Refused},
		{"it requests nothing", message(web1, request), "", "", dhcp.Unusable},
		{"it finds its address in use", message(web1, decline, serverID(serverAddr), requested("10.28.36.1")), "", "", dhcp.Declined},
		{"it declines another server's offer", message(web1, decline, serverID(otherAddr), requested("10.28.36.1")), "", "", dhcp.OtherServer},
		{"it leaves", message(web1, release, serverID(serverAddr), ciaddr("10.28.36.1")), "", "", dhcp.Released},
		{"it comes back", message(web1, discover), "OFFER", "10.28.36.1", dhcp.Offered},
		{"it has an address and asks for the rest", message(web1, inform, ciaddr("10.28.36.1")), "ACK", "0.0.0.0", dhcp.Informed},
		{"it asks for the rest from elsewhere", message(web1, inform, ciaddr("8.8.8.8")), "", "", dhcp.Unusable},
		{"it asks for the rest from everywhere", message(web1, inform, ciaddr("10.28.255.255")), "", "", dhcp.Unusable},
		{"it talks like a server", message(web1, dhcpv4.MessageTypeAck), "", "", dhcp.Unusable},
		{"it says something unheard of", message(web1, dhcpv4.MessageType(42)), "", "", dhcp.Unusable},
	})
	if len(l.Offered) != 0 {
		t.Errorf("a fixed node has leases: %v", l.Offered)
	}
}

func TestNotOurs(t *testing.T) {
	s, _ := newServer()
	for _, st := range []step{
		{name: "looks for an address", packet: message(foreign, discover)},
		{name: "takes another server's offer", packet: message(foreign, request, serverID(otherAddr), requested("10.28.36.1"))},
		{name: "claims to have chosen us", packet: message(foreign, request, serverID(serverAddr), requested("10.28.36.1"))},
		{name: "reboots", packet: message(foreign, request, requested("10.28.36.1"))},
		{name: "reboots with an address from elsewhere", packet: message(foreign, request, requested("192.168.1.7"))},
		{name: "renews", packet: message(foreign, request, ciaddr("10.28.36.1"))},
		{name: "informs", packet: message(foreign, inform, ciaddr("10.28.36.1"))},
		{name: "releases", packet: message(foreign, release, serverID(serverAddr), ciaddr("10.28.36.1"))},
	} {
		st.decision = dhcp.NotOurs
		play(t, s, []step{st})
	}
}

func TestCatchAll(t *testing.T) {
	s, l := newServer()
	second := mac("52:54:00:77:01:02")
	lease := netip.MustParseAddr("10.28.72.10")
	play(t, s, []step{
		{"a stray looks for an address", message(stray, discover), "OFFER", "10.28.72.10", dhcp.Offered},
		{"and again", message(stray, discover), "OFFER", "10.28.72.10", dhcp.Offered},
		{"another gets another", message(second, discover), "OFFER", "10.28.72.11", dhcp.Offered},
	})
	if got := l.Active[lease]; !got.IsZero() {
		t.Errorf("an offer is already a lease of %s", got)
	}
	play(t, s, []step{
		{"it takes the offer", message(stray, request, serverID(serverAddr), requested("10.28.72.10")), "ACK", "10.28.72.10", dhcp.Acknowledged},
	})
	if got := l.Active[lease]; got != stray {
		t.Errorf("lease belongs to %s, want %s", got, stray)
	}
	play(t, s, []step{
		{"the other wants it too", message(second, request, serverID(serverAddr), requested("10.28.72.10")), "NAK", "0.0.0.0", dhcp.Refused},
		{"the other cannot give it back", message(second, release, serverID(serverAddr), ciaddr("10.28.72.10")), "", "", dhcp.Released},
		{"it renews", message(stray, request, ciaddr("10.28.72.10")), "ACK", "10.28.72.10", dhcp.Acknowledged},
		{"it reboots", message(stray, request, requested("10.28.72.10")), "ACK", "10.28.72.10", dhcp.Acknowledged},
	})
	if got := l.Active[lease]; got != stray {
		t.Errorf("lease belongs to %s, want %s", got, stray)
	}
	play(t, s, []step{
		{"it leaves another server", message(stray, release, serverID(otherAddr), ciaddr("10.28.72.10")), "", "", dhcp.OtherServer},
		{"it leaves nothing", message(stray, release, serverID(serverAddr)), "", "", dhcp.Unusable},
	})
	if got := l.Active[lease]; got != stray {
		t.Errorf("lease belongs to %s, want %s", got, stray)
	}
	play(t, s, []step{
		{"it leaves", message(stray, release, serverID(serverAddr), ciaddr("10.28.72.10")), "", "", dhcp.Released},
	})
	if got := l.Active[lease]; !got.IsZero() {
		t.Errorf("released lease still belongs to %s", got)
	}
}

func TestLeaseStoreFails(t *testing.T) {
	take := message(stray, request, serverID(serverAddr), requested("10.28.72.10"))
	with := func(set func(l *leases)) dhcp.Leases {
		l := newLeases()
		set(l)
		return l
	}
	for _, tt := range []struct {
		name   string
		leases dhcp.Leases
		packet *dhcpv4.DHCPv4
		err    error // nil means any error
	}{
		{"no offer when no address is free", with(func(l *leases) { l.OfferErr = errDisk }), message(stray, discover), errDisk},
		{"no ACK when no address is free", with(func(l *leases) { l.OfferErr = errDisk }), take, errDisk},
		{"no ACK for a lease that cannot be stored", with(func(l *leases) { l.CommitErr = errDisk }), take, errDisk},
		{"no offer without a store", nil, message(stray, discover), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &responder{Responder: dhcp.Responder{Farm: farm{}, Leases: tt.leases, Address: serverAddr}}
			r, x := s.Reply(on(t, tt.packet), noon)
			if r != nil || x.Decision != dhcp.NoAddress || x.Err == nil || (tt.err != nil && !errors.Is(x.Err, tt.err)) {
				t.Errorf("got reply %v, decision %q, error %v", r, x.Decision, x.Err)
			}
		})
	}
}

func TestMalformed(t *testing.T) {
	s, _ := newServer()
	long := bytes.Repeat([]byte{1}, 256)
	for _, tt := range []struct {
		name   string
		packet *dhcpv4.DHCPv4
	}{
		{"a reply", message(web1, discover, func(d *dhcpv4.DHCPv4) { d.OpCode = dhcpv4.OpcodeBootReply })},
		{"ARCNET", message(web1, discover, func(d *dhcpv4.DHCPv4) { d.HWType = 7 })},
		{"short hardware address", message(web1, discover, func(d *dhcpv4.DHCPv4) { d.ClientHWAddr = d.ClientHWAddr[:4] })},
		{"long hardware address", message(web1, discover, func(d *dhcpv4.DHCPv4) { d.ClientHWAddr = make([]byte, 16) })},
		{"no hardware address", message(web1, discover, func(d *dhcpv4.DHCPv4) { d.ClientHWAddr = nil })},
		{"zero hardware address", message(pools.MAC{}, discover)},
		{"multicast hardware address", message(pools.MAC{1}, discover)},
		{"relay that is everybody", message(web1, discover, giaddr("255.255.255.255"))},
		{"relay that is a group", message(web1, discover, giaddr("224.0.0.1"))},
		{"relay that is ourselves", message(web1, discover, giaddr("127.0.0.1"))},
		{"huge client identifier", message(web1, discover, option(61, long...))},
		{"huge machine identifier", message(web1, discover, option(97, long...))},
		{"huge relay option", message(web1, discover, option(82, long...))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, x := s.Reply(on(t, tt.packet), noon)
			if r != nil || x.Decision != dhcp.Malformed || x.Err == nil {
				t.Errorf("got reply %v, decision %q, error %v, want it dropped as malformed", r, x.Decision, x.Err)
			}
		})
	}
}

func TestBrokenBytes(t *testing.T) {
	s, _ := newServer()
	whole := message(web1, discover, text(60, "PXEClient")).ToBytes()
	for _, tt := range []struct {
		name string
		b    []byte
	}{
		{"nothing", nil},
		{"half a header", whole[:100]},
		{"no options", whole[:236]},
		{"wrong cookie", append(bytes.Clone(whole[:236]), 1, 2, 3, 4, 255)},
		{"option beyond the end", append(bytes.Clone(whole[:240]), 53, 200, 1)},
		{"too long", make([]byte, dhcp.MaxRequest+1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, x := s.handle(bytes.Clone(tt.b), noon)
			if r != nil || x.Decision != dhcp.Malformed || x.Err == nil {
				t.Errorf("got reply %v, decision %q, error %v, want it dropped as malformed", r, x.Decision, x.Err)
			}
		})
	}
	t.Run("no END option is forgiven", func(t *testing.T) {
		b := append(bytes.Clone(whole[:240]), 53, 1, 1)
		if r, x := s.handle(b, noon); r == nil {
			t.Errorf("got silence, %q: %v", x.Decision, x.Err)
		}
	})
}

func TestEcho(t *testing.T) {
	s, _ := newServer()
	uuid := append([]byte{0}, bytes.Repeat([]byte{0xab}, 16)...)
	in := message(web1, discover, option(61, 1, 2, 3), option(97, uuid...), option(82, 1, 2, 'x', 'y'),
		text(12, "i-name-myself"), giaddr("10.28.0.254"), dhcpv4.WithBroadcast(true))
	r, x := s.Reply(on(t, in), noon)
	for code, want := range map[uint8]string{61: "\x01\x02\x03", 97: string(uuid), 82: "\x01\x02xy", 12: "web1"} {
		if got := string(r.Options[code]); got != want {
			t.Errorf("option %d: got %q, want %q", code, got, want)
		}
	}
	if got, want := r.GatewayIPAddr.String(), "10.28.0.254"; got != want || x.Giaddr.String() != want {
		t.Errorf("got giaddr %s, exchange %s, want %s", got, x.Giaddr, want)
	}
	if !r.IsBroadcast() {
		t.Error("broadcast flag is lost")
	}
}

func TestOnlyWhatIsAsked(t *testing.T) {
	s, _ := newServer()
	s.Farm = farm{Options: []resolve.Option{
		{Code: 42, Data: []byte{10, 28, 0, 1}}, {Code: 26, Data: []byte{5, 220}},
		{Code: 54, Data: []byte{9, 9, 9, 9}}, // reserved: an operator cannot set it
	}}
	for _, tt := range []struct {
		name    string
		in      *dhcpv4.DHCPv4
		present []uint8
		absent  []uint8
	}{
		{"everything without a list", message(web1, discover), []uint8{1, 3, 6, 12, 15, 26, 28, 42, 51, 53, 54, 58, 59}, []uint8{43, 60, 66, 67, 175}},
		{"a list", message(web1, discover, option(55, 6, 42)), []uint8{1, 6, 42, 51, 53, 54}, []uint8{3, 12, 15, 26, 28, 60, 66, 67}},
		{"an empty list is none", message(web1, discover, option(55)), []uint8{1, 3, 6, 12, 15, 26, 28, 42, 51, 53, 54}, nil},
		{"a ROM that lists nothing of use", message(web1, discover, option(55, 128), arch(0), text(60, "PXEClient")), []uint8{1, 3, 43, 51, 60, 66}, []uint8{6, 12, 26, 42, 67, 175}},
		{"an address of its own", message(web1, inform, ciaddr("10.28.36.1")), []uint8{1, 3, 6, 53, 54}, []uint8{51, 58, 59}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, _ := s.Reply(on(t, tt.in), noon)
			for _, c := range tt.present {
				if _, ok := r.Options[c]; !ok {
					t.Errorf("option %d is missing", c)
				}
			}
			for _, c := range tt.absent {
				if v, ok := r.Options[c]; ok {
					t.Errorf("option %d is there: %q", c, v)
				}
			}
			if got := r.ServerIdentifier().String(); got != serverAddr.String() {
				t.Errorf("an operator's option took the place of the server identifier: %s", got)
			}
		})
	}
}

func TestLeaseTimes(t *testing.T) {
	s, _ := newServer()
	for _, tt := range []struct {
		lease  time.Duration
		want   [3]uint32 // lease, T1, T2 in seconds
		reason string
	}{
		{8 * time.Minute, [3]uint32{480, 240, 420}, "as RFC 2131, section 4.4.5"},
		{0, [3]uint32{43200, 21600, 37800}, "the default"},
		{math.MaxInt64, [3]uint32{0xfffffffe, 0xfffffffe, 0xfffffffe}, "all ones would be for ever"},
	} {
		s.Farm = leaseTime(tt.lease)
		r, _ := s.Reply(on(t, message(web1, discover)), noon)
		for i, code := range []uint8{51, 58, 59} {
			if got := binary.BigEndian.Uint32(r.Options[code]); got != tt.want[i] {
				t.Errorf("%s: option %d: got %d s, want %d (%s)", tt.lease, code, got, tt.want[i], tt.reason)
			}
		}
	}
}

// leaseTime returns a farm whose plans have the lease time d.
func leaseTime(d time.Duration) dhcp.Resolver {
	return farmFunc(func(p *resolve.Plan) { p.Lease = pools.Duration(d) })
}

func TestLongBootFile(t *testing.T) {
	s, _ := newServer()
	for n, want := range map[int]bool{127: true, 128: false} {
		name := strings.Repeat("x", n)
		s.Farm = bootFile(name)
		r, x := s.Reply(on(t, message(web1, discover, arch(0))), noon)
		r = on(t, r)
		if got := r.BootFileName == name; got != want || (!want && r.BootFileName != "") {
			t.Errorf("%d characters: got file %q", n, r.BootFileName)
		}
		if got := string(r.Options[67]); got != name {
			t.Errorf("%d characters: got option 67 %q", n, got)
		}
		if got := x.Warning == ""; got != want {
			t.Errorf("%d characters: got warning %q", n, x.Warning)
		}
	}
}

// bootFile returns a farm whose machines all load the file name.
func bootFile(name string) dhcp.Resolver {
	return farmFunc(func(p *resolve.Plan) { p.Boot.File = name })
}

func TestBroadcastToThePool(t *testing.T) {
	s, _ := newServer()
	s.Farm = farmFunc(func(p *resolve.Plan) { p.Broadcast = true })
	const everybody, relay = "255.255.255.255:68", "10.28.0.254:67"
	for _, tt := range []struct {
		name string
		in   *dhcpv4.DHCPv4
		want string
	}{
		{"an offer", message(web1, discover), everybody},
		{"an ack", message(web1, request, serverID(serverAddr), requested("10.28.36.1")), everybody},
		{"an ack of a renewal", message(web1, request, ciaddr("10.28.36.1")), "10.28.36.1:68"},
		{"an offer to a relay", message(web1, discover, giaddr("10.28.0.254")), relay},
		{"an ack of an inform", message(web1, inform, ciaddr("10.28.36.1")), "10.28.36.1:68"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, _ := s.Reply(on(t, tt.in), noon)
			if to, _ := s.destination(); to != tt.want {
				t.Errorf("goes to %s, want %s", to, tt.want)
			}
			if r.IsBroadcast() && tt.want == relay {
				t.Error("the relay is told to broadcast")
			}
		})
	}
}

func TestVendorOptionsOfTheOperatorStand(t *testing.T) {
	s, _ := newServer()
	s.Farm = farm{Options: []resolve.Option{{Code: 43, Data: []byte("pxe")}, {Code: 175, Data: []byte("ipxe")}}}
	for _, tt := range []struct {
		name string
		in   *dhcpv4.DHCPv4
		want map[uint8]string
	}{
		{"a ROM that asks for none", message(web1, discover, rom, option(55, 1)), map[uint8]string{43: "pxe", 60: "PXEClient"}},
		{"iPXE that asks for none", message(web1, discover, rom, text(77, "iPXE"), option(55, 1)), map[uint8]string{43: "pxe", 175: "ipxe"}},
		{"a system that asks for none", message(web1, discover, option(55, 1)), map[uint8]string{43: "", 175: ""}},
		{"a system that asks for one", message(web1, discover, option(55, 1, 43)), map[uint8]string{43: "pxe", 175: ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, _ := s.Reply(on(t, tt.in), noon)
			for code, want := range tt.want {
				if got := string(r.Options[code]); got != want {
					t.Errorf("option %d: got %q, want %q", code, got, want)
				}
			}
		})
	}
}
