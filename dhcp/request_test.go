package dhcp_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/dhcp/wire"
	"drover/pools"
	"drover/pools/resolve"
)

func TestParse(t *testing.T) {
	whole := message(web1, request, requested("10.28.36.1")).ToBytes()
	options := func(o ...byte) []byte { return append(slices.Clone(whole[:240]), o...) }
	for _, tt := range []struct {
		name string
		in   []byte
		mac  pools.MAC
		kind dhcpv4.MessageType
	}{
		{"a REQUEST", whole, web1, request},
		{"type behind others", options(0, 0, 61, 2, 53, 1, 53, 1, 1, 255), web1, discover},
		{"no type", options(61, 1, 1, 255, 53, 1, 1), web1, 0},
		{"cut off in an option", options(61, 200, 1, 2, 3), web1, 0},
		{"cut off in the type", options(53, 1), web1, 0},
		{"no options", options(), web1, 0},
		{"too short", whole[:239], pools.MAC{}, 0},
		{"nothing", nil, pools.MAC{}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var req dhcp.Request
			if req.Parse(tt.in); req.MAC != tt.mac || req.Type != tt.kind {
				t.Errorf("got %s from %s, want %s from %s", req.Type, req.MAC, tt.kind, tt.mac)
			}
		})
	}
}

// overloaded returns a packet with options in its file and sname fields (RFC 2131, section
// 4.1). An empty text leaves its field alone.
func overloaded(d *dhcpv4.DHCPv4, file, sname string) []byte {
	flags := byte(0)
	if file != "" {
		flags |= 1
	}
	if sname != "" {
		flags |= 2
	}
	d.Options[52] = []byte{flags}
	b := d.ToBytes()
	copy(b[108:236], file)
	copy(b[44:108], sname)
	return b
}

// TestOptionsInOtherFieldsOfRequests: the options of sname and file are read as those of
// the options field, file first.
func TestOptionsInOtherFieldsOfRequests(t *testing.T) {
	const class, x64 = "\x3c\x09PXEClient", "\x5d\x02\x00\x07"
	unmarked := overloaded(message(web1, discover, option(55, 1, 3)), class+"\xff", x64+"\xff")
	unmarked = bytes.Replace(unmarked, []byte{52, 1, 3}, []byte{0, 0, 0}, 1)
	typeless := message(web1, discover, noType)
	for _, tt := range []struct {
		name    string
		in      []byte
		file    string
		warning bool
	}{
		{"file", overloaded(message(web1, discover), class+x64+"\xff", ""), "snponly.efi", false},
		{"sname", overloaded(message(web1, discover), "", class+x64+"\xff"), "snponly.efi", false},
		{"both", overloaded(message(web1, discover), class+"\xff", x64+"\xff"), "snponly.efi", false},
		{"pieces of an option", overloaded(message(web1, discover, text(60, "PXE")), "\x3c\x06Client\xff", "\x3c\x0c:Arch:00007:\xff"), "snponly.efi", false},
		{"padding and no end", overloaded(message(web1, discover), "\x00\x00"+class+"\x00"+x64, ""), "snponly.efi", false},
		{"the message type", overloaded(typeless, "\x35\x01\x01"+class+x64+"\xff", ""), "snponly.efi", false},
		{"an overload within", overloaded(message(web1, discover), class+"\x34\x01\x03"+"\xff", ""), "undionly.kpxe", false},
		{"cut off in the field", overloaded(message(web1, discover), class+x64+"\x0c\xffweb", ""), "snponly.efi", true},
		{"without option 52", unmarked, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := newServer()
			r, x := s.handle(tt.in, noon)
			if r == nil || r.MessageType() != dhcpv4.MessageTypeOffer || r.BootFileName != tt.file || (x.Warning != "") != tt.warning {
				t.Errorf("got %v, warning %q, %q (%v), want file %q", r, x.Warning, x.Decision, x.Err, tt.file)
			}
		})
	}
}

// TestOption82InOtherFields: a client can hide an option 82 in its file field from its
// relay agent. It does not count.
func TestOption82InOtherFields(t *testing.T) {
	hidden := "\x52\x0a\x02\x02sw\x05\x04\x0a\x02\x00\x00\xff"
	for name, mods := range map[string][]dhcpv4.Modifier{"alone": nil, "beside the relay agent's": {option(82, 1, 1, 'x')}} {
		var got resolve.Query
		s := &responder{Responder: dhcp.Responder{Farm: asked{&got}, Address: serverAddr}}
		s.handle(overloaded(message(web1, discover, append(mods, giaddr("10.1.0.254"))...), hidden, hidden), noon)
		if got.RemoteID != "" || got.Link.String() != "10.1.0.254" || got.MAC != web1 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// FuzzParse compares the parser with that of the library. Both must read the
// same values from each packet that the library accepts. The library does not read
// the options of sname and file; Describe does.
func FuzzParse(f *testing.F) {
	for _, d := range firstDiscovers() {
		f.Add(d.ToBytes())
	}
	f.Add(overloaded(message(web1, discover, option(61, 1)), "\x3d\x01\x02\xff", "\x3d\x02\x03\x04"))
	f.Add(message(web1, discover, infiniBand(web1)).ToBytes())
	f.Add(withoutCookie(bootp(web1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var req dhcp.Request
		req.Parse(b)
		p, err := dhcpv4.FromBytes(b)
		if err != nil || len(b) > dhcp.MaxRequest {
			return
		}
		if len(p.ClientHWAddr) == 6 && string(p.ClientHWAddr) != string(req.MAC[:]) || len(p.Options[53]) == 1 && p.MessageType() != req.Type {
			t.Errorf("got %s from %s, the library %s from %s", req.Type, req.MAC, p.MessageType(), p.ClientHWAddr)
		}
		options := p.Options
		if len(options[52]) == 1 {
			all, err := wire.Describe(b)
			if err != nil {
				t.Fatal(err)
			}
			options = dhcpv4.Options{}
			for _, o := range all {
				options[o.Code] = o.Data
			}
			options[82] = p.Options[82]
		}
		for code := range 255 {
			if got, want := req.Option(uint8(code)), options[uint8(code)]; !bytes.Equal(got, want) {
				t.Errorf("option %d: got %x, want %x", code, got, want)
			}
		}
	})
}
