package dhcp_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/pools"
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

// FuzzParse compares the parser with that of the library. Both must read the
// same values from each packet that the library accepts.
func FuzzParse(f *testing.F) {
	for _, d := range firstDiscovers() {
		f.Add(d.ToBytes())
	}
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
		for code := range 255 {
			if got, want := req.Option(uint8(code)), p.Options[uint8(code)]; !bytes.Equal(got, want) {
				t.Errorf("option %d: got %x, want %x", code, got, want)
			}
		}
	})
}
