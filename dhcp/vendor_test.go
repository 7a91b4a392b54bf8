package dhcp_test

import (
	"bytes"
	"testing"

	"drover/dhcp"
	"drover/pools/resolve"
)

// TestVendorOfSite: PXE firmware gets 43.6 = 8 beside the sub-options of the operator, which
// may set 43.6 too. Without it the firmware searches for boot servers on port 4011.
func TestVendorOfSite(t *testing.T) {
	for _, tt := range []struct {
		name       string
		site, want []byte
	}{
		{"none", nil, []byte{6, 1, 8, 255}},
		{"43.1", []byte{1, 4, 10, 28, 0, 9}, []byte{6, 1, 8, 1, 4, 10, 28, 0, 9, 255}},
		{"43.1 with END", []byte{1, 4, 10, 28, 0, 9, 255}, []byte{6, 1, 8, 1, 4, 10, 28, 0, 9, 255}},
		{"43.6 of the operator", []byte{6, 1, 3}, []byte{6, 1, 3}},
		{"a menu of the operator", []byte{9, 3, 0, 0, 0, 10, 1, 0}, []byte{9, 3, 0, 0, 0, 10, 1, 0}},
		{"43.6 behind 43.1", []byte{1, 1, 255, 6, 1, 0}, []byte{1, 1, 255, 6, 1, 0}},
		{"ends with a byte like END", []byte{1, 1, 255}, []byte{6, 1, 8, 1, 1, 255, 255}},
		{"no sub-options", []byte{1, 200, 3}, []byte{1, 200, 3}},
		{"bytes behind END", []byte{1, 1, 7, 255, 9}, []byte{6, 1, 8, 1, 1, 7, 255, 9}},
	} {
		s, _ := newServer()
		if tt.site != nil {
			s.Farm = farm{Options: []resolve.Option{{Code: 43, Data: tt.site}}}
		}
		r, x := s.Reply(message(web1, discover, rom, text(60, "PXEClient:Arch:00007:UNDI:003016")), noon)
		if r == nil || x.Decision != dhcp.Offered {
			t.Fatalf("%s: got %v, %q", tt.name, r, x.Decision)
		}
		if got := r.Options[43]; !bytes.Equal(got, tt.want) {
			t.Errorf("%s: got 43 = % x, want % x", tt.name, got, tt.want)
		}
	}
}
