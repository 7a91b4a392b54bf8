// Package bootprogram makes the packets that boot programs send: PC ROMs, UEFI, U-Boot,
// iPXE and the Raspberry Pi. With them an operator, or a test, can ask the server what it
// answers to a machine, without the machine.
package bootprogram

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"drover/dhcp/wire"
	"drover/pools"
)

// Discover describes the DISCOVER that the boot program of a machine sends. An
// operator can examine the answer to it without the machine.
type Discover struct {
	MAC      pools.MAC
	Firmware pools.Firmware // empty: an operating system
	IPXE     bool           // the firmware has loaded iPXE

	// These replace the program's own values, unless empty.
	Class, UserClass, ClientID string

	UUID string // option 97: 16 bytes; empty: made from the MAC, for programs that send one

	// A relay agent adds these.
	Relay               netip.Addr
	CircuitID, RemoteID string
}

// program is the part of a DISCOVER that depends on the boot program, not on
// the machine. Each byte of asksFor is an option code.
type program struct {
	arch      uint16
	class     string // option 60
	undi      string // option 94
	asksFor   string // option 55
	maxSize   uint16 // option 57
	broadcast bool   // the program receives no unicast before it has an address
	uuid      bool   // option 97
	board     string // option 97 begins with it; only a Raspberry Pi has it
	features  string // option 175; only iPXE sends it, with a user class and a client identifier
}

// The parameter lists. PC ROMs and EDK2 send the list of PXE 2.1, table 2-1.
// UEFI HTTP Boot leaves out the options of PXE.
const (
	asksHead  = "\x01\x02\x03\x04\x05\x06\x0c\x0d\x0f\x11\x12\x16\x17\x1c\x28\x29\x2a\x2b\x32\x33\x36\x3a\x3b\x3c"
	asksPXE   = asksHead + "\x42\x43\x61\x80\x81\x82\x83\x84\x85\x86\x87"
	asksHTTP  = asksHead + "\xeb\x43\x61"
	asksIPXE  = "\x01\x03\x06\x07\x0c\x0f\x11\x1a\x2b\x3c\x42\x43\x77\x80\x81\x82\x83\x84\x85\x86\x87\xaf\xcb"
	asksUBoot = "\x01\x03\x06\x0c\x11"

	asksRaspberryPi = "\x01\x03\x2b\x3c\x42\x43\x80\x81\x82\x83\x84\x85\x86\x87"

	asksSystem = "\x01\x03\x06\x0c\x0f\x21\x2a\x78\x79"
)

// program returns the values of the boot program as recorded in
// ../testdata/recorded. The values of BIOS ROMs that are not iPXE follow the
// specification instead. The operating system is systemd-networkd without its
// client identifier, which is derived from the identity of the machine.
func (d *Discover) program() program {
	switch {
	case d.IPXE:
		return d.ipxe()
	case d.Firmware == pools.BIOS:
		return program{class: programClass("PXEClient", 0, 2001), undi: "\x01\x02\x01", asksFor: asksPXE, maxSize: 1260, broadcast: true, uuid: true}
	case d.Firmware == pools.RaspberryPi:
		return program{class: programClass("PXEClient", 0, 2001), undi: "\x01\x02\x01", asksFor: asksRaspberryPi, maxSize: 1260, board: "RPi4"}
	case d.Firmware == pools.UBootArm64:
		return program{arch: 0x16, class: "U-Boot.armv8", undi: "\x01\x00\x00", asksFor: asksUBoot, maxSize: 576}
	case d.Firmware.HTTP():
		return uefiProgram("HTTPClient", d.Firmware.Arch(), asksHTTP)
	case d.Firmware != "":
		return uefiProgram("PXEClient", d.Firmware.Arch(), asksPXE)
	}
	return program{asksFor: asksSystem, maxSize: 1472}
}

func uefiProgram(kind string, arch uint16, asks string) program {
	return program{arch: arch, class: programClass(kind, arch, 3000), undi: "\x01\x03\x00", asksFor: asks, maxSize: 1472, broadcast: true, uuid: true}
}

// programClass returns the vendor class that PXE prescribes. undi is the
// version of the interface to the network card; 3000 is version 3.0.
func programClass(kind string, arch uint16, undi int) string {
	return fmt.Sprintf("%s:Arch:%05d:UNDI:%06d", kind, arch, undi)
}

// ipxe returns the values of the iPXE that the firmware loads. Option 175 lists
// its built-in features. The features here are those of snponly.efi.
func (d *Discover) ipxe() program {
	p := program{arch: 7, undi: "\x01\x03\x0a", asksFor: asksIPXE, maxSize: 1472, uuid: true,
		features: "\xb1\x05\x01\x1a\xf4\x10\x00\xeb\x03\x01\x00\x00\x17\x01\x01\x24\x01\x01\x13\x01\x01\x11\x01\x01\x27\x01\x01\x29\x01\x01\x15\x01\x01\x12\x01\x01"}
	version := 3010
	switch d.Firmware {
	case pools.BIOS:
		p.arch, version, p.undi = 0, 2001, "\x01\x02\x01"
	case pools.UEFIarm64, pools.UEFIarm64HTTP, pools.UBootArm64:
		p.arch = 11
	case pools.UEFIriscv64, pools.UEFIriscv64HTTP:
		p.arch = 27
	case pools.UEFIloong64, pools.UEFIloong64HTTP:
		p.arch = 39
	}
	p.class = programClass("PXEClient", p.arch, version)
	return p
}

// Packet returns the DISCOVER as the server receives it.
func (d *Discover) Packet() *dhcpv4.DHCPv4 {
	p := d.program()
	o := dhcpv4.Options{
		wire.OptMessageType: {byte(dhcpv4.MessageTypeDiscover)}, wire.OptParameters: []byte(p.asksFor),
		wire.OptMaxSize: binary.BigEndian.AppendUint16(nil, p.maxSize),
	}
	if p.class != "" {
		o[wire.OptClass], o[wire.OptUNDI] = []byte(p.class), []byte(p.undi)
		o[wire.OptArch] = binary.BigEndian.AppendUint16(nil, p.arch)
	}
	if p.uuid { // a UUID of type 0: the machine's own is unknown
		o[wire.OptMachineID] = append(make([]byte, 11), d.MAC[:]...)
	}
	if p.board != "" { // revision, end of the MAC, serial number
		o[wire.OptMachineID] = slices.Concat([]byte{0}, []byte(p.board), []byte{0x11, 0x31, 0xc0, 0}, d.MAC[2:], []byte{0, 0, 0, 1})
	}
	if d.UUID != "" {
		o[wire.OptMachineID] = append([]byte{0}, d.UUID...)
	}
	if p.features != "" {
		o[wire.OptIPXE], o[wire.OptUserClass] = []byte(p.features), []byte("iPXE")
		o[wire.OptClientID] = append([]byte{1}, d.MAC[:]...)
	}
	r := &dhcpv4.DHCPv4{OpCode: dhcpv4.OpcodeBootRequest, HWType: iana.HWTypeEthernet, ClientHWAddr: d.MAC[:], Options: o,
		ClientIPAddr: net.IPv4zero, YourIPAddr: net.IPv4zero, ServerIPAddr: net.IPv4zero, GatewayIPAddr: net.IPv4zero}
	copy(r.TransactionID[:], d.MAC[2:]) // as PC ROMs do
	if p.broadcast {
		r.SetBroadcast()
	}
	d.override(o)
	d.relay(r)
	return r
}

// override replaces the program's own texts by those that d sets.
func (d *Discover) override(o dhcpv4.Options) {
	for code, text := range map[uint8]string{wire.OptClass: d.Class, wire.OptUserClass: d.UserClass, wire.OptClientID: d.ClientID} {
		if text != "" {
			o[code] = []byte(text)
		}
	}
}

// relay adds the fields of a relay agent (RFC 3046).
func (d *Discover) relay(r *dhcpv4.DHCPv4) {
	if d.Relay.IsValid() {
		r.GatewayIPAddr, r.HopCount = d.Relay.AsSlice(), 1
	}
	var info []byte
	for i, s := range []string{d.CircuitID, d.RemoteID} {
		if s != "" {
			info = append(append(info, byte(1+i), byte(len(s))), s...)
		}
	}
	if info != nil {
		r.Options[wire.OptRelay] = info
	}
}
