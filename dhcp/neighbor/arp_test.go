package neighbor

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	"drover/pools"
)

var ours, theirs = pools.MAC{2, 0, 0, 0, 0, 1}, pools.MAC{2, 0, 0, 0, 0, 0x77}

func TestARP(t *testing.T) {
	squatter := netip.MustParseAddr("10.28.72.10")
	probe := arpRequest(ours, netip.Addr{}, broadcast(), squatter)
	want := slices.Concat(bytes.Repeat([]byte{0xff}, 6), ours[:], []byte{8, 6, 0, 1, 8, 0, 6, 4, 0, 1},
		ours[:], []byte{0, 0, 0, 0}, make([]byte, 6), []byte{10, 28, 72, 10})
	if !bytes.Equal(probe, want) {
		t.Errorf("got the probe\n% x, want\n% x", probe, want)
	}

	reply := slices.Clone(probe)
	reply[21] = 2 // an answer
	copy(reply[22:], theirs[:])
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
			if h, ok := arpSender(tt.frame); ok != tt.ok || ok && h != (Host{squatter, theirs}) {
				t.Errorf("got %v, %t, want %t", h, ok, tt.ok)
			}
		})
	}
}

// advertisement returns the frame of a neighbour advertisement of theirs, with changes before its
// checksum is made.
func advertisement(a netip.Addr, change func(ip []byte)) []byte {
	f := solicitation(theirs, ours, a)
	ip := f[ethernetHeader:]
	copy(ip[ipHeader:], []byte{typeAdvertisement, 0, 0, 0, 0x60})
	if change != nil {
		change(ip)
	}
	sum := ^messageSum(ip)
	ip[ipHeader+2], ip[ipHeader+3] = byte(sum>>8), byte(sum)
	return f
}

func TestNeighbourDiscovery(t *testing.T) {
	a := netip.MustParseAddr("fd00:28::100")
	if _, ok := advertiser(solicitation(ours, theirs, a)); ok {
		t.Error("a question is taken for an answer")
	}
	padded := append(advertisement(a, nil), 0, 0, 0)
	short := advertisement(a, nil)
	wrong := advertisement(a, nil)
	wrong[ethernetHeader+ipHeader+10] ^= 1
	for _, tt := range []struct {
		name  string
		frame []byte
		ok    bool
	}{
		{"an answer", advertisement(a, nil), true},
		{"with a pad", padded, true},
		{"through a router", advertisement(a, func(ip []byte) { ip[7] = 254 }), false},
		{"a wrong checksum", wrong, false},
		{"an error", advertisement(a, func(ip []byte) { ip[ipHeader+1] = 1 }), false},
		{"of a group", advertisement(netip.MustParseAddr("ff02::1"), nil), false},
		{"UDP", advertisement(a, func(ip []byte) { ip[6] = 17 }), false},
		{"cut off", short[:len(short)-1], false},
		{"nothing", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if h, ok := advertiser(tt.frame); ok != tt.ok || ok && h != (Host{a, theirs}) {
				t.Errorf("got %v, %t, want %t", h, ok, tt.ok)
			}
		})
	}
}
