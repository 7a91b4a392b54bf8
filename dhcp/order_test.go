package dhcp_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp/wire"
	"drover/pools/resolve"
)

// codes returns the codes of the options field in the order of the wire.
func codes(b []byte) (list []uint8) {
	_ = wire.EachOption(b[240:], func(code uint8, _ []byte) { list = append(list, code) })
	return list
}

// TestOrderOfTheList (W13): the options of the client's list come in its order (RFC 2132,
// section 9.8), but the mask before the router (section 3.3).
func TestOrderOfTheList(t *testing.T) {
	s, _ := newServer()
	s.Farm = farm{Options: []resolve.Option{{Code: 42, Data: []byte{10, 28, 0, 1}}, {Code: 119, Data: []byte("\x01x\x00")}}}
	for _, tt := range []struct {
		name string
		in   *dhcpv4.DHCPv4
		want []uint8
	}{
		{"no list", message(web1, discover), []uint8{53, 1, 3, 6, 12, 15, 28, 42, 51, 54, 58, 59, 119}},
		{"a list", message(web1, discover, option(55, 119, 15, 42, 6, 1, 3, 15, 99)), []uint8{53, 119, 15, 42, 6, 1, 3, 51, 54, 58, 59}},
		{"router before mask", message(web1, discover, option(55, 15, 3, 6, 1)), []uint8{53, 15, 1, 3, 6, 51, 54, 58, 59}},
		{"router and no mask", message(web1, discover, option(55, 12, 3)), []uint8{53, 12, 1, 3, 51, 54, 58, 59}},
		{"times and the server in the list", message(web1, discover, option(55, 59, 54, 51, 58, 6)), []uint8{53, 59, 54, 51, 58, 6, 1}},
		{"the relay agent's own option", message(web1, discover, giaddr("10.28.0.254"), option(82, 1, 1, 'x'), option(55, 82, 119, 6)), []uint8{53, 119, 6, 1, 51, 54, 58, 59, 82}},
		{"a ROM", message(web1, discover, rom, option(55, 67, 66, 43, 3)), []uint8{53, 67, 66, 43, 1, 3, 51, 54, 58, 59, 60}},
		{"a NAK", message(web1, request, requested("10.28.36.9"), option(61, 1, 2), option(55, 61, 56, 54)), []uint8{53, 61, 56, 54}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s.Reply(on(t, tt.in), noon)
			if got := codes(s.last.Append(nil)); !slices.Equal(got, tt.want) {
				t.Errorf("got  %d\nwant %d", got, tt.want)
			}
		})
	}
}

// TestLastOfTheListIsLeftOut (W13): of what does not fit, the client gets what it lists
// first.
func TestLastOfTheListIsLeftOut(t *testing.T) {
	fill := func(code uint8, n int) resolve.Option {
		return resolve.Option{Code: code, Data: bytes.Repeat([]byte{code}, n)}
	}
	for _, tt := range []struct {
		list    []byte
		options []resolve.Option
		want    []uint8
	}{
		{[]byte{121, 119, 224, 225}, []resolve.Option{fill(119, 100), fill(121, 100), fill(224, 60), fill(225, 60)}, []uint8{119, 121, 224}},
		{[]byte{225, 224, 119, 121}, []resolve.Option{fill(119, 100), fill(121, 100), fill(224, 60), fill(225, 60)}, []uint8{224, 225}},
		{[]byte{121, 119}, []resolve.Option{fill(119, 120), fill(121, 120)}, []uint8{121}},
		{[]byte{119, 121}, []resolve.Option{fill(119, 120), fill(121, 120)}, []uint8{119}},
	} {
		s, _ := newServer()
		in := message(web1, discover, rom, text(97, "\x00123456789abcdef0"), option(55, tt.list...))
		s.Farm = farmFunc(func(p *resolve.Plan) { p.Options, p.Boot.File = tt.options, "f.efi" })
		r, x := s.Reply(on(t, in), noon)
		got := unfold(t, r.ToBytes())
		for _, o := range tt.options {
			if want := slices.Contains(tt.want, o.Code); (got[o.Code] != nil) != want {
				t.Errorf("list %d: option %d is there: %t, want %t (%s)", tt.list, o.Code, !want, want, x.Warning)
			}
		}
		if len(r.ToBytes()) > 548 {
			t.Errorf("got %d bytes", len(r.ToBytes()))
		}
	}
}

// TestIPv6OnlyIsForThoseWhoAsk (W8, RFC 8925, section 3.3).
func TestIPv6OnlyIsForThoseWhoAsk(t *testing.T) {
	s, _ := newServer()
	s.Farm = farm{Options: []resolve.Option{{Code: 108, Data: []byte{0, 0, 1, 44}}}}
	for _, tt := range []struct {
		name string
		in   *dhcpv4.DHCPv4
		want bool
	}{
		{"no list", message(web1, discover), false},
		{"an empty list", message(web1, discover, option(55)), false},
		{"a list without it", message(web1, discover, option(55, 1, 3)), false},
		{"a list with it", message(web1, discover, option(55, 1, 108)), true},
		{"an ACK", message(web1, request, requested("10.28.36.1"), option(55, 108)), true},
		{"an ACK without a list", message(web1, request, requested("10.28.36.1")), false},
		{"an INFORM without a list", message(web1, inform, ciaddr("10.28.36.1")), false},
	} {
		r, _ := s.Reply(on(t, tt.in), noon)
		if got := r.Options[108] != nil; got != tt.want {
			t.Errorf("%s: option 108 is there: %t, want %t", tt.name, got, tt.want)
		}
	}
}

// TestNAKHasNothingElse (W11): RFC 2131, table 3, with RFC 6842 and RFC 3046.
func TestNAKHasNothingElse(t *testing.T) {
	s, _ := newServer()
	in := message(web1, request, giaddr("10.28.0.254"), requested("10.28.36.9"), rom, option(61, 1, 2), text(97, "\x00123456789abcdef0"),
		option(82, 1, 1, 'x'), option(118, 10, 28, 0, 0), text(81, "\x01\x00\x00web1"), text(12, "web1"), option(55, 1, 3, 6, 97, 118))
	for _, nak := range []*dhcpv4.DHCPv4{in, message(web1, request, serverID(serverAddr), requested("10.28.36.9"), text(97, "\x00123456789abcdef0"), option(118, 10, 28, 0, 0))} {
		r, _ := s.Reply(on(t, nak), noon)
		if r.MessageType() != dhcpv4.MessageTypeNak {
			t.Fatalf("got %s", r.Summary())
		}
		for code := range r.Options {
			if !slices.Contains([]uint8{53, 54, 56, 61, 82}, code) {
				t.Errorf("option %d is there", code)
			}
		}
		if len(nak.Options[61]) != len(r.Options[61]) || len(nak.Options[82]) != len(r.Options[82]) {
			t.Error("options 61 and 82 do not come back")
		}
		if !r.YourIPAddr.IsUnspecified() || !r.ServerIPAddr.IsUnspecified() || !r.ClientIPAddr.IsUnspecified() || r.BootFileName != "" {
			t.Errorf("got %s", r.Summary())
		}
	}
}
