package dhcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"drover/pools"
)

// client is what a request says of the machine that sent it.
type client struct {
	mac      pools.MAC
	firmware pools.Firmware
	ipxe     bool     // the program that asks is iPXE
	class    string   // option 60, as sent
	asked    *codeSet // option 55; nil: not sent or empty, the client takes everything
}

// newClient reads the client out of a request. Its errors say why the packet
// cannot come from a machine that drover serves.
func newClient(req *dhcpv4.DHCPv4) (client, error) {
	var c client
	if req.OpCode != dhcpv4.OpcodeBootRequest {
		return c, fmt.Errorf("op is %d, not a request", req.OpCode)
	}
	if req.HWType != iana.HWTypeEthernet || len(req.ClientHWAddr) != len(c.mac) {
		return c, fmt.Errorf("hardware address is not Ethernet: htype %d, hlen %d", req.HWType, len(req.ClientHWAddr))
	}
	copy(c.mac[:], req.ClientHWAddr)
	if c.mac.IsZero() || c.mac[0]&1 != 0 {
		return c, fmt.Errorf("hardware address %s is not unicast", c.mac)
	}
	// These are echoed. One that was put together from several pieces
	// (RFC 3396) could fill the whole answer.
	for _, code := range []dhcpv4.OptionCode{dhcpv4.OptionClientIdentifier,
		dhcpv4.OptionClientMachineIdentifier, dhcpv4.OptionRelayAgentInformation} {
		if n := len(req.Options.Get(code)); n > 255 {
			return c, fmt.Errorf("option %d has %d bytes", code.Code(), n)
		}
	}
	if gi := addr(req.GatewayIPAddr); gi.IsValid() && !unicast(gi) {
		return c, fmt.Errorf("relay address %s is not unicast", gi)
	}
	c.class = string(req.Options.Get(dhcpv4.OptionClassIdentifier))
	c.ipxe = isIPXE(req.Options)
	c.firmware = firmware(c.class, req.Options.Get(dhcpv4.OptionClientSystemArchitectureType))
	if list := req.Options.Get(dhcpv4.OptionParameterRequestList); list != nil {
		c.asked = newCodeSet(list...)
	}
	if req.MessageType() == dhcpv4.MessageTypeNone {
		return c, errors.New("no message type: BOOTP is not served")
	}
	return c, nil
}

// query is the question that the farm is asked about this client.
func (c client) query() pools.Query {
	return pools.Query{MAC: c.mac, Firmware: c.firmware, IPXE: c.ipxe}
}

// netboot tells whether a boot program asks, not an operating system.
func (c client) netboot() bool {
	return c.firmware != "" || c.ipxe || c.pxeClass() || c.httpClass()
}

func (c client) pxeClass() bool  { return strings.HasPrefix(c.class, "PXEClient") }
func (c client) httpClass() bool { return strings.HasPrefix(c.class, "HTTPClient") }

// wants tells whether the client listed the option as one that it uses. A
// client that sent no list is given all (RFC 2131, section 3.5).
func (c client) wants(code uint8) bool { return c.asked == nil || c.asked.has(code) }

// isIPXE tells iPXE apart from the firmware that it replaced, which sends the
// same class and architecture. iPXE writes its user class as bare text, not
// as the list that RFC 3004 wants; builds without user class still send its
// own option 175.
func isIPXE(o dhcpv4.Options) bool {
	if o.Has(dhcpv4.OptionEtherboot) {
		return true
	}
	v := o.Get(dhcpv4.OptionUserClassInformation)
	if string(v) == "iPXE" {
		return true
	}
	var list dhcpv4.Strings
	return list.FromBytes(v) == nil && slices.Contains(list, "iPXE")
}

// firmware finds the kind of boot program from the vendor class (option 60)
// and the architectures (option 93). It returns "" for an operating system,
// and for an architecture that there is no loader for.
//
// Nothing depends on the class being PXEClient: U-Boot says U-Boot.armv8, and
// some ROMs send none.
func firmware(class string, archs []byte) pools.Firmware {
	// U-Boot of the years 2013 to 2016 says 0x100 for every board; later
	// ones have numbers of their own. The class is what they agree on.
	if strings.HasPrefix(class, "U-Boot") || strings.HasPrefix(class, "U-boot") {
		return pools.UBootArm64
	}
	if len(archs) == 0 {
		archs = classArch(class)
	}
	for ; len(archs) >= 2; archs = archs[2:] {
		if f := byArch(binary.BigEndian.Uint16(archs)); f != "" {
			return httpBoot(f, strings.HasPrefix(class, "HTTPClient"))
		}
	}
	return ""
}

// byArch maps the processor architecture types of RFC 4578 and IANA.
func byArch(arch uint16) pools.Firmware {
	switch arch {
	case 0:
		return pools.BIOS
	case 7, 9: // RFC 4578 and its erratum name them the other way round; firmware sends both for x64
		return pools.UEFIx64
	case 11:
		return pools.UEFIarm64
	case 15, 16:
		return pools.UEFIx64HTTP
	case 19:
		return pools.UEFIarm64HTTP
	case 0x15, 0x16, 0x100:
		return pools.UBootArm64
	}
	return ""
}

// httpBoot corrects the firmware by the class: what says HTTPClient takes a
// URL, whatever its architecture number.
func httpBoot(f pools.Firmware, http bool) pools.Firmware {
	switch {
	case http && f == pools.UEFIx64:
		return pools.UEFIx64HTTP
	case http && f == pools.UEFIarm64:
		return pools.UEFIarm64HTTP
	}
	return f
}

// classArch reads the architecture out of a class such as
// "PXEClient:Arch:00007:UNDI:003000", for ROMs that send no option 93.
func classArch(class string) []byte {
	_, rest, ok := strings.Cut(class, ":Arch:")
	if !ok || len(rest) < 5 {
		return nil
	}
	n, err := strconv.ParseUint(rest[:5], 10, 16)
	if err != nil {
		return nil
	}
	return binary.BigEndian.AppendUint16(nil, uint16(n))
}

// codeSet is a set of option codes.
type codeSet [4]uint64

func newCodeSet(codes ...uint8) *codeSet {
	var s codeSet
	for _, c := range codes {
		s[c/64] |= 1 << (c % 64)
	}
	return &s
}

func (s *codeSet) has(c uint8) bool { return s[c/64]&(1<<(c%64)) != 0 }
