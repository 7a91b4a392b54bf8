package dhcp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp/wire"
	"drover/internal/printable"
	"drover/pools"
	"drover/pools/resolve"
)

// client is the data about the sender of a request.
type client struct {
	resolve.Query    // the query to the farm
	messageType      dhcpv4.MessageType
	relayServerID    netip.Addr   // option 82.11: the server identifier that replies to the client carry
	relayPort        bool         // option 82.19: the relay agent receives answers at the port that it sent from
	parameters       wire.CodeSet // option 55
	hasParameterList bool         // option 55 is not empty
	grub             bool         // the client is GRUB, started from a medium
	warning          string       // for the operator: the parts of the request that were left aside
}

// newClient returns the sender of a request that arrived at the address own.
// The error gives the reason why the packet cannot come from a machine that
// drover serves.
func newClient(req *Request, own netip.Addr) (c client, err error) {
	c.messageType = req.Type
	if err := req.check(); err != nil {
		return c, err
	}
	c.MAC = req.MAC
	var link netip.Addr
	c.leaveAside(req.cut)
	c.leaveAside(req.foreign)
	if req.Giaddr.IsValid() { // without a relay agent anybody may have added option 82
		link = c.readRelay(req.RelayInfo())
	}
	if req.options.Has(wire.OptSubnetSelection) {
		c.oneUnicast("118", req.options.Get(wire.OptSubnetSelection))
	}
	if c.Link, err = linkOf(req, link, own); err != nil {
		return c, err
	}
	c.Relayed = req.Giaddr.IsValid() || req.subnetSelection().IsValid()
	c.Renewing, c.grub = req.usesItsAddress(), req.noOptions()
	c.Keeps = req.keeps()
	c.Class, c.ClientID = string(req.options.Get(wire.OptClass)), string(req.options.Get(wire.OptClientID))
	if id := req.options.Get(wire.OptMachineID); len(id) == 17 && id[0] == 0 { // RFC 4578: no type but 0 is defined
		c.UUID = string(id[1:])
	}
	c.UserClass, c.IPXE = userClass(req.options.Get(wire.OptUserClass))
	c.IPXE = c.IPXE || req.options.Has(wire.OptIPXE)
	c.NoHTTP = c.IPXE && lacksHTTP(req.options.Get(wire.OptIPXE))
	c.Archs = Archs(c.Class, req.options.Get(wire.OptArch))
	c.Firmware = pools.FirmwareOf(c.Class, c.Archs)
	if req.bootp() && c.Class == "" && c.Archs == nil {
		c.Firmware = pools.BIOS // BOOTP is a boot program's, and older than all other firmware
	}
	if c.raspberryPi(req.options.Get(wire.OptMachineID)) {
		c.Firmware = pools.RaspberryPi
	}
	if c.NoHTTP && c.Firmware.Loader() != "" {
		c.leaveAside(errors.New("the boot script, which its iPXE cannot fetch without HTTP"))
	}
	for _, code := range req.options.Get(wire.OptParameters) {
		c.parameters.Add(code)
		c.hasParameterList = true
	}
	return c, nil
}

// raspberryPi reports whether the client is the boot loader of a Raspberry Pi. It sends
// the class and the architecture of a PC, and its REQUESTs may lack the class. Its
// identifier (option 97) begins with RPi4 or RPi5; early versions send the serial number
// four times, and are known by the maker in the MAC.
func (c *client) raspberryPi(machineID []byte) bool {
	if len(machineID) == 17 && bytes.HasPrefix(machineID[1:], []byte("RPi")) {
		return !c.IPXE
	}
	return c.Firmware == pools.BIOS && c.pxeClass() && !c.IPXE && isRaspberryPiMAC(c.MAC)
}

// isRaspberryPiMAC reports whether a MAC begins as those that IEEE has assigned to the
// maker of the Raspberry Pi.
func isRaspberryPiMAC(mac pools.MAC) bool {
	switch [3]byte(mac[:3]) {
	case [3]byte{0xb8, 0x27, 0xeb}, [3]byte{0xdc, 0xa6, 0x32}, [3]byte{0xe4, 0x5f, 0x01}, [3]byte{0x28, 0xcd, 0xc1},
		[3]byte{0xd8, 0x3a, 0xdd}, [3]byte{0x2c, 0xcf, 0x67}, [3]byte{0x88, 0xa2, 0x9e}:
		return true
	}
	return false
}

// leaveAside warns of a part of the request that does not count. nil is none.
func (c *client) leaveAside(err error) {
	switch {
	case err == nil:
	case c.warning == "":
		c.warning = "left aside: " + err.Error()
	default:
		c.warning += "; " + err.Error()
	}
}

// exchange returns the exchange of a request from this client, without its outcome.
func (c *client) exchange(now time.Time) Exchange {
	kind := typeName(c.messageType)
	if c.messageType == dhcpv4.MessageTypeNone && !c.MAC.IsZero() {
		kind = bootRequest
	}
	return Exchange{
		Time: now, MAC: c.MAC, Type: kind, Firmware: c.Firmware, IPXE: c.IPXE, Netboot: c.netboot(),
		Class: printable.Quote(c.Class, 64), Circuit: printable.Quote(c.CircuitID, 64), Remote: printable.Quote(c.RemoteID, 64),
	}
}

// netboot reports whether the client is a boot program, not an operating system.
func (c *client) netboot() bool { return c.Boots() || c.grub }

func (c *client) pxeClass() bool  { return strings.HasPrefix(c.Class, "PXEClient") }
func (c *client) httpClass() bool { return strings.HasPrefix(c.Class, "HTTPClient") }

// asksFor reports whether the client asks for an option: it lists the option,
// or sends no list (RFC 2131, section 3.5).
func (c *client) asksFor(code uint8) bool { return !c.hasParameterList || c.parameters.Has(code) }

// userClass returns the first class of option 77, and reports whether one of
// its classes is iPXE. RFC 3004 defines a list of counted texts. iPXE and
// others send bare text.
//
// Class and architecture do not distinguish iPXE from the firmware that it
// replaced: both send the same values.
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

// lacksHTTP reports whether an iPXE lists its features in option 175, and HTTP (19) is not among them.
// Features are the sub-options from 16 to 79; others are versions and settings.
func lacksHTTP(data []byte) bool {
	features, http := false, false
	err := wire.EachOption(data, func(code uint8, value []byte) {
		if code >= 16 && code < 80 && len(value) == 1 && value[0] != 0 {
			features, http = true, http || code == 19
		}
	})
	return err == nil && features && !http
}

const ipxeClass = "iPXE"

// Archs returns the processor architectures (option 93, RFC 4578). ROMs without
// that option send the number in a class such as
// "PXEClient:Arch:00007:UNDI:003000".
func Archs(class string, data []byte) (list []uint16) {
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
