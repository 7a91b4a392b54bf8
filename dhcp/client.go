package dhcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"drover/pools"
	"drover/pools/printable"
)

// client is what a request says of the machine that sent it.
type client struct {
	mac         pools.MAC
	firmware    pools.Firmware
	archs       []uint16 // option 93, or what the class says of it
	ipxe        bool     // the program that asks is iPXE
	class       string   // option 60, as sent
	userClass   string   // option 77, the first of the list
	id          string   // option 61, as sent
	relay       relayInfo
	link        netip.Addr // of the network that it asks from
	asked       codeSet    // option 55
	choosy      bool       // asked is not empty
	messageType dhcpv4.MessageType
	renewing    bool // it asks from an address that it runs on
	grub        bool // it is GRUB, from a medium
}

// newClient reads the client out of a request that came to the address own. Its
// errors say why the packet cannot come from a machine that drover serves.
func newClient(req *dhcpv4.DHCPv4, own netip.Addr) (c client, err error) {
	c.messageType = req.MessageType()
	if req.OpCode != dhcpv4.OpcodeBootRequest {
		return c, fmt.Errorf("op is %d, not a request", req.OpCode)
	}
	if req.HWType != iana.HWTypeEthernet || len(req.ClientHWAddr) != len(c.mac) {
		return c, fmt.Errorf("hardware address is not Ethernet: htype %d, hlen %d", req.HWType, len(req.ClientHWAddr))
	}
	mac := pools.MAC(req.ClientHWAddr)
	if mac.IsZero() || mac[0]&1 != 0 {
		return c, fmt.Errorf("hardware address %s is not unicast", mac)
	}
	c.mac = mac
	if c.messageType == dhcpv4.MessageTypeNone {
		return c, errors.New("no message type: BOOTP is not served")
	}
	// What is echoed must not fill the whole answer, as one could that was put
	// together from several pieces (RFC 3396).
	for _, code := range echoed() {
		if n := len(req.Options[code]); n > 255 {
			return c, fmt.Errorf("option %d has %d bytes", code, n)
		}
	}
	if c.relay, err = newRelayInfo(req.Options[optRelay]); err != nil {
		return c, err
	}
	if c.link, err = linkOf(req, c.relay, own); err != nil {
		return c, err
	}
	c.renewing, c.grub = usesItsAddress(req), saysNothing(req)
	c.class, c.id = string(req.Options[optClass]), string(req.Options[optClientID])
	c.userClass, c.ipxe = userClass(req.Options[optUserClass])
	c.ipxe = c.ipxe || req.Options.Has(dhcpv4.OptionEtherboot)
	c.archs = archs(c.class, req.Options[optArch])
	c.firmware = firmware(c.class, c.archs)
	if list := req.Options[optParameters]; len(list) > 0 {
		c.choosy = true
		for _, code := range list {
			c.asked.add(code)
		}
	}
	return c, nil
}

// query is the question that the farm is asked about this client.
func (c *client) query() pools.Query {
	return pools.Query{
		MAC: c.mac, Firmware: c.firmware, IPXE: c.ipxe, Link: c.link, Archs: c.archs, Class: c.class,
		UserClass: c.userClass, ClientID: c.id, CircuitID: c.relay.circuitID, RemoteID: c.relay.remoteID,
		SubscriberID: c.relay.subscriberID, Renewing: c.renewing,
	}
}

// exchange begins what is told of a request from this client.
func (c *client) exchange(now time.Time) Exchange {
	return Exchange{
		Time: now, MAC: c.mac, Type: typeName(c.messageType), Firmware: c.firmware, IPXE: c.ipxe, Netboot: c.netboot(),
		Class: printable.Quote(c.class, 64), Circuit: printable.Quote(c.relay.circuitID, 64), Remote: printable.Quote(c.relay.remoteID, 64),
	}
}

// netboot tells whether a boot program asks, not an operating system.
func (c *client) netboot() bool {
	return c.firmware != "" || c.ipxe || c.pxeClass() || c.httpClass() || c.grub
}

// saysNothing tells a DISCOVER with no option but its type, and what a relay
// agent adds. GRUB sends it (net_bootp of 2.06, as on a medium by drover media):
// operating systems list at least the options that they want.
func saysNothing(req *dhcpv4.DHCPv4) bool {
	n := len(req.Options)
	if req.Options.Has(dhcpv4.GenericOptionCode(optRelay)) {
		n--
	}
	return n == 1 && req.MessageType() == dhcpv4.MessageTypeDiscover
}

func (c *client) pxeClass() bool  { return strings.HasPrefix(c.class, "PXEClient") }
func (c *client) httpClass() bool { return strings.HasPrefix(c.class, "HTTPClient") }

// wants tells whether the client listed the option as one that it uses. A
// client that sent no list is given all (RFC 2131, section 3.5).
func (c *client) wants(code uint8) bool { return !c.choosy || c.asked.has(code) }

// userClass reads option 77: its first class, and whether iPXE is among them.
// RFC 3004 makes it a list of counted texts; iPXE and others write bare text.
//
// iPXE cannot be told by class and architecture from the firmware that it
// replaced, which sends the same.
func userClass(data []byte) (first string, ipxe bool) {
	if string(data) == ipxeClass {
		return ipxeClass, true
	}
	var list dhcpv4.Strings
	if len(data) == 0 || list.FromBytes(data) != nil {
		return string(data), false
	}
	return list[0], slices.Contains(list, ipxeClass)
}

const ipxeClass = "iPXE"

// archs reads the processor architectures (option 93, RFC 4578). ROMs that send
// none tell it in a class such as "PXEClient:Arch:00007:UNDI:003000".
func archs(class string, data []byte) (list []uint16) {
	for ; len(data) >= 2; data = data[2:] {
		list = append(list, binary.BigEndian.Uint16(data))
	}
	if list != nil {
		return list
	}
	_, rest, ok := strings.Cut(class, ":Arch:")
	if !ok || len(rest) < 5 {
		return nil
	}
	n, err := strconv.ParseUint(rest[:5], 10, 16)
	if err != nil {
		return nil
	}
	return []uint16{uint16(n)}
}

// firmware finds the kind of boot program from the vendor class and the
// architectures. It returns "" for an operating system, and for an architecture
// that there is no loader for.
//
// Nothing depends on the class being PXEClient: U-Boot says U-Boot.armv8, and
// some ROMs send none.
func firmware(class string, archs []uint16) pools.Firmware {
	// U-Boot of the years 2013 to 2016 says 0x100 for every board; later
	// ones have numbers of their own. The class is what they agree on.
	if strings.HasPrefix(class, "U-Boot") || strings.HasPrefix(class, "U-boot") {
		return pools.UBootArm64
	}
	for _, arch := range archs {
		if f := byArch(arch); f != "" {
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

// codeSet is a set of option codes.
type codeSet [4]uint64

func (s *codeSet) has(c uint8) bool { return s[c/64]&(1<<(c%64)) != 0 }
func (s *codeSet) add(c uint8)      { s[c/64] |= 1 << (c % 64) }
func (s *codeSet) remove(c uint8)   { s[c/64] &^= 1 << (c % 64) }
