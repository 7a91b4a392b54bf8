package dhcpd_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"drover/dhcp/dhcpd"
)

// TestFrameOfVLAN: the kernel also gives the socket of an interface the frames of the VLANs
// on it, which are for the server of the VLAN alone.
func TestFrameOfVLAN(t *testing.T) {
	const bond, vlan = 2, 300
	for _, tt := range []struct {
		kind byte
		by   int
		want bool
	}{
		{unix.PACKET_HOST, bond, true},
		{unix.PACKET_BROADCAST, bond, true},
		{unix.PACKET_OTHERHOST, bond, false},
		{unix.PACKET_OUTGOING, bond, false},
		{unix.PACKET_HOST, vlan, false},
		{unix.PACKET_BROADCAST, vlan, false},
	} {
		if got := dhcpd.ForHost(tt.kind, tt.by, bond); got != tt.want {
			t.Errorf("a frame of type %d by interface %d: %t, want %t", tt.kind, tt.by, got, tt.want)
		}
	}
}
