package dhcp_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp/bootprogram"
	"drover/pools"
	"drover/pools/resolve"
)

// anyMachine takes each machine for web1.
type anyMachine struct{ farm }

func (f anyMachine) Resolve(q resolve.Query) *resolve.Plan {
	own := q.MAC
	q.MAC = web1
	p := f.farm.Resolve(q)
	p.MAC, p.MACs = own, []pools.MAC{own}
	return p
}

// TestRaspberryPi sends what the boot loader of a board sends: the class and the
// architecture of a PC, and an identifier of its own. Without the text in option 43 it
// takes no answer (facts of protocols, missing 8).
func TestRaspberryPi(t *testing.T) {
	const menu = "\x06\x01\x03\x0a\x04\x00PXE\x09\x14\x00\x00\x11Raspberry Pi Boot\xff"
	board := mac("dc:a6:32:01:36:c2")
	rom := []dhcpv4.Modifier{arch(0), text(60, "PXEClient:Arch:00000:UNDI:002001"), option(55, 1, 3, 43, 60, 66, 67, 128)}
	machineID := func(begin string) dhcpv4.Modifier {
		return text(97, "\x00"+begin+strings.Repeat("\x01", 16-len(begin)))
	}
	with := func(mods []dhcpv4.Modifier, more ...dhcpv4.Modifier) []dhcpv4.Modifier {
		return slices.Concat(mods, more)
	}
	for _, tt := range []struct {
		name string
		mac  pools.MAC
		mods []dhcpv4.Modifier
		want pools.Firmware
	}{
		{"a Pi 4", web1, with(rom, machineID("RPi4")), pools.RaspberryPi},
		{"a Pi 5", web1, with(rom, machineID("RPi5")), pools.RaspberryPi},
		{"its REQUEST without a class", web1, []dhcpv4.Modifier{machineID("RPi4"), option(55, 1, 3, 43, 60, 66)}, pools.RaspberryPi},
		{"an early Pi 4 by its MAC", board, with(rom, machineID("\xff\x9e\xfd\xef\xff\x9e\xfd\xef")), pools.RaspberryPi},
		{"a Pi 3 without an identifier", mac("b8:27:eb:64:46:1c"), rom, pools.RaspberryPi},
		{"a PC", web1, with(rom, machineID("\x11\x22")), pools.BIOS},
		{"a PC with a short identifier", web1, with(rom, text(97, "\x00RPi4")), pools.BIOS},
		{"the system of a Pi", board, []dhcpv4.Modifier{option(55, 1, 3, 6)}, ""},
		{"U-Boot of a Pi", board, []dhcpv4.Modifier{arch(22), text(60, "U-Boot.armv8")}, pools.UBootArm64},
		{"UEFI of a Pi", board, []dhcpv4.Modifier{arch(11), text(60, "PXEClient:Arch:00011:UNDI:003000")}, pools.UEFIarm64},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := newServer()
			s.Farm = anyMachine{}
			mods := tt.mods
			for _, kind := range []dhcpv4.MessageType{discover, request} {
				r, x := s.Reply(on(t, message(tt.mac, kind, mods...)), noon)
				if r == nil || x.Firmware != tt.want {
					t.Fatalf("%s: got firmware %q, %s; want %q", kind, x.Firmware, x.Decision, tt.want)
				}
				is := tt.want == pools.RaspberryPi
				if got := string(r.Options[43]) == menu; got != is {
					t.Errorf("%s: got option 43 %q", kind, r.Options[43])
				}
				if is && (string(r.Options[60]) != "PXEClient" || r.ServerIPAddr.String() != serverAddr.String() || string(r.Options[66]) != serverAddr.String()) {
					t.Errorf("%s: got class %q, server %s, %q", kind, r.Options[60], r.ServerIPAddr, r.Options[66])
				}
				mods = append(slices.Clone(tt.mods), serverID(serverAddr), requested(r.YourIPAddr.String()))
			}
		})
	}
}

// The operator's own option 43 stays.
func TestRaspberryPiOption43(t *testing.T) {
	s, _ := newServer()
	s.Farm = farm{Options: []resolve.Option{{Code: 43, Data: []byte("Raspberry Pi Boot")}}}
	d := bootprogram.Discover{MAC: web1, Firmware: pools.RaspberryPi}
	r, x := s.Reply(on(t, d.Packet()), noon)
	if x.Firmware != pools.RaspberryPi || string(r.Options[43]) != "Raspberry Pi Boot" {
		t.Errorf("got firmware %q, option 43 %q", x.Firmware, r.Options[43])
	}
}
