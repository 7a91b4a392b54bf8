package dhcp_test

import (
	"bytes"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/dhcp/bootprogram"
	"drover/pools"
)

// TestDiscoverIsLikeRecorded: a generated DISCOVER equals the recorded one of
// the real client, except for the values that depend on the machine (its UUID,
// the identity of its system) or on chance.
func TestDiscoverIsLikeRecorded(t *testing.T) {
	tests := map[string]bootprogram.Discover{
		"ovmf-pxe":         {Firmware: pools.UEFIx64},
		"aavmf-pxe":        {Firmware: pools.UEFIarm64},
		"ovmf-http":        {Firmware: pools.UEFIx64HTTP},
		"u-boot":           {Firmware: pools.UBootArm64},
		"snponly-efi":      {Firmware: pools.UEFIx64, IPXE: true},
		"systemd-networkd": {},
		"pxe-rom":          {Firmware: pools.BIOS}, // composed by hand, not recorded
	}
	for name, d := range tests {
		t.Run(name, func(t *testing.T) {
			want := firstDiscovers()[name]
			d.MAC = pools.MAC(want.ClientHWAddr)
			got := d.Packet()
			if got.Flags != want.Flags && name != "systemd-networkd" || got.HWType != want.HWType || len(got.ToBytes()) < 300 {
				t.Errorf("got %s\nwant %s", got.Summary(), want.Summary())
			}
			for _, code := range slices.Sorted(maps.Keys(union(got.Options, want.Options))) {
				a, b := got.Options[code], want.Options[code]
				switch {
				case code == 97 && len(a) == len(b), name == "systemd-networkd" && (code == 12 || code == 61), name == "pxe-rom" && code == 57:
				case !bytes.Equal(a, b):
					t.Errorf("option %d: got %x, want %x", code, a, b)
				}
			}
		})
	}
}

func union(a, b dhcpv4.Options) dhcpv4.Options {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// TestDiscoverIsUnderstood: the server reads from a generated DISCOVER the
// values that it was generated from.
func TestDiscoverIsUnderstood(t *testing.T) {
	for _, f := range append(slices.Clone(pools.Firmwares), "") {
		for _, ipxe := range []bool{false, true} {
			d := bootprogram.Discover{
				MAC: web1, Firmware: f, IPXE: ipxe, Relay: netip.MustParseAddr("10.28.0.254"),
				Class: "", UserClass: "", ClientID: "", CircuitID: "ge-7", RemoteID: "sw\x01",
			}
			s, _ := newServer()
			reply, x := s.Reply(d.Packet(), noon)
			if reply == nil || x.Reply != "OFFER" || x.MAC != web1 || x.IPXE != ipxe || x.Netboot != (f != "" || ipxe) {
				t.Fatalf("%q, iPXE %t: got %+v", f, ipxe, x)
			}
			if x.Firmware != f && !ipxe {
				t.Errorf("got firmware %q, want %q", x.Firmware, f)
			}
			if x.Giaddr != d.Relay || x.Circuit != "ge-7" || x.Remote != `"sw\x01"` {
				t.Errorf("got relay %s, circuit %q, remote %q", x.Giaddr, x.Circuit, x.Remote)
			}
		}
	}
}

// TestReplyKeepsNothing: ReplyTo neither keeps nor changes the bytes of a
// packet, and needs no END option.
func TestReplyKeepsNothing(t *testing.T) {
	s, _ := newServer()
	d := bootprogram.Discover{MAC: web1, Firmware: pools.UEFIx64}
	s.Reply(d.Packet(), noon)
	want := s.last.Append(nil)
	packet := d.Packet().ToBytes()
	kept := bytes.Clone(packet)
	got, x := s.ReplyTo(packet[:len(packet)-1], noon) // some clients forget the END
	if !bytes.Equal(packet, kept) {
		t.Error("the packet is changed")
	}
	if !bytes.Equal(got, want) || x.Reply != "OFFER" {
		t.Errorf("got %x, %+v\nwant %x", got, x, want)
	}
	if got, x := s.ReplyTo([]byte("hello"), noon); got != nil || x.Decision != dhcp.Malformed {
		t.Errorf("got %x, %s for rubbish", got, x.Decision)
	}
}
