package dhcpd_test

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"testing"

	"drover/dhcp/dhcpd"
)

func TestARP(t *testing.T) {
	squatter := netip.MustParseAddr("10.28.72.10")
	probe := dhcpd.ARPProbe(net.HardwareAddr(web1[:]), squatter)
	want := slices.Concat(bytes.Repeat([]byte{0xff}, 6), web1[:], []byte{8, 6, 0, 1, 8, 0, 6, 4, 0, 1},
		web1[:], []byte{0, 0, 0, 0}, make([]byte, 6), []byte{10, 28, 72, 10})
	if !bytes.Equal(probe, want) {
		t.Errorf("got the probe\n% x, want\n% x", probe, want)
	}

	reply := slices.Clone(probe)
	reply[21] = 2 // an answer
	copy(reply[22:], stray[:])
	copy(reply[28:], squatter.AsSlice())
	broken := func(at int, with byte) []byte {
		f := slices.Clone(reply)
		f[at] = with
		return f
	}
	for _, tt := range []struct {
		name  string
		frame []byte
		ok    bool
	}{
		{"an answer", reply, true},
		{"an announcement", broken(21, 1), true},
		{"a probe claims nothing", probe, false},
		{"not ARP", broken(13, 0), false},
		{"not IPv4", broken(16, 9), false},
		{"too short", reply[:41], false},
		{"nothing", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mac, a, ok := dhcpd.ARPSender(tt.frame)
			if ok != tt.ok || ok && (mac != stray || a != squatter) {
				t.Errorf("got %s at %s, %t, want %t", a, mac, ok, tt.ok)
			}
		})
	}
}
