package bootprogram

import (
	"bytes"
	"cmp"
	"encoding/binary"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
)

// The options that DHCPv6 clients ask for: firmware for the boot file and its parameters,
// the name servers and the vendor class of HTTP Boot; operating systems for names alone.
var (
	asksFirmware6 = []dhcpv6.OptionCode{dhcpv6.OptionBootfileURL, dhcpv6.OptionBootfileParam, dhcpv6.OptionDNSRecursiveNameServer, dhcpv6.OptionVendorClass}
	asksSystem6   = []dhcpv6.OptionCode{dhcpv6.OptionDNSRecursiveNameServer, dhcpv6.OptionDomainSearchList}
)

// intel is the enterprise whose vendor classes PXE and UEFI send.
const intel = 343

// Solicit returns the SOLICIT that the boot program sends over IPv6, as the server receives
// it: with the message of a relay agent around it if d has one. Relay is then the
// link-address, ClientID the DUID.
func (d *Discover) Solicit() []byte {
	p := d.program()
	m := &dhcpv6.Message{MessageType: dhcpv6.MessageTypeSolicit, TransactionID: dhcpv6.TransactionID(d.MAC[3:])}
	m.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionClientID, OptionData: d.duid()})
	m.AddOption(&dhcpv6.OptIANA{IaId: [4]byte(d.MAC[2:])})
	asks := asksSystem6
	if class := cmp.Or(d.Class, p.class); class != "" {
		asks = asksFirmware6
		m.AddOption(&dhcpv6.OptVendorClass{EnterpriseNumber: intel, Data: [][]byte{[]byte(class)}})
	}
	if p.class != "" {
		m.AddOption(dhcpv6.OptClientArchType(iana.Arch(p.arch)))
	}
	user := d.UserClass
	if d.IPXE {
		user = cmp.Or(user, "iPXE")
	}
	if user != "" {
		m.AddOption(&dhcpv6.OptUserClass{UserClasses: [][]byte{[]byte(user)}})
	}
	m.AddOption(dhcpv6.OptRequestedOption(asks...))
	return d.forward(m.ToBytes())
}

// duid returns the client identifier: ClientID, else one with the UUID (RFC 6355), else one
// with the MAC.
func (d *Discover) duid() []byte {
	switch {
	case d.ClientID != "":
		return []byte(d.ClientID)
	case len(d.UUID) == 16:
		return append([]byte{0, byte(dhcpv6.DUID_UUID)}, d.UUID...)
	}
	return append([]byte{0, byte(dhcpv6.DUID_LL), 0, byte(iana.HWTypeEthernet)}, d.MAC[:]...)
}

// forward puts the message of a relay agent around a packet, if d has one. Its peer is the
// client's link-local address, of the form EUI-64.
func (d *Discover) forward(packet []byte) []byte {
	if !d.Relay.Is6() {
		return packet
	}
	link, m := d.Relay.As16(), d.MAC
	peer := [16]byte{0xfe, 0x80, 8: m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]}
	b := bytes.NewBuffer([]byte{byte(dhcpv6.MessageTypeRelayForward), 0})
	b.Write(link[:])
	b.Write(peer[:])
	option := func(code dhcpv6.OptionCode, data []byte) {
		b.Write(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, uint16(code)), uint16(len(data))))
		b.Write(data)
	}
	if d.CircuitID != "" {
		option(dhcpv6.OptionInterfaceID, []byte(d.CircuitID))
	}
	if d.RemoteID != "" {
		option(dhcpv6.OptionRemoteID, append(make([]byte, 4), d.RemoteID...)) // after the number of an enterprise
	}
	option(dhcpv6.OptionRelayMsg, packet)
	return b.Bytes()
}
