package dhcp

import (
	"cmp"
	"math/bits"
	"net"
	"net/netip"
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"drover/dhcp/wire"
	"drover/pools"
)

// Message is a reply (RFC 2131, section 2). It holds no reference to the
// request.
type Message struct {
	// Wait returns nil when the lease is on disk. Unless Wait is nil, the reply
	// must not be sent earlier. After an error the client gets silence.
	Wait func() error
	// Fresh reports that the offered address is new to the machine. Such an
	// address may be probed before the offer is sent.
	Fresh bool

	xid                            [4]byte
	flags                          uint16
	ciaddr, yiaddr, siaddr, giaddr netip.Addr // the zero Addr is 0.0.0.0
	mac                            pools.MAC
	htype                          byte   // that the client sent
	infiniBand                     bool   // the client has no MAC: mac stands for it
	relayPort                      uint16 // of the relay agent, unless it is 67
	sname, file                    string // at most maxSname and maxBootFile bytes
	options                        wire.Options
	order                          []uint8 // the codes of the options in the order in which they are sent, see arrange
}

const broadcastFlag = 1 << 15

// Append appends the message to b in its wire format, without the UDP header.
func (m *Message) Append(b []byte) []byte {
	b = slices.Grow(b, minMessage)
	start := len(b)
	mac := m.mac[:]
	if m.infiniBand {
		mac = nil
	}
	b = append(b, byte(dhcpv4.OpcodeBootReply), m.htype, byte(len(mac)), 0)
	b = append(b, m.xid[:]...)
	b = append(b, 0, 0, byte(m.flags>>8), byte(m.flags))
	for _, a := range [...]netip.Addr{m.ciaddr, m.yiaddr, m.siaddr, m.giaddr} {
		four := [4]byte{}
		if a.IsValid() {
			four = a.As4()
		}
		b = append(b, four[:]...)
	}
	b = appendField(b, mac, wire.SnameAt-wire.ChaddrAt)
	b = appendField(b, m.sname, wire.FileAt-wire.SnameAt)
	b = appendField(b, m.file, wire.CookieAt-wire.FileAt)
	cookie := wire.MagicCookie()
	b = append(b, cookie[:]...)
	for _, code := range m.order {
		b = wire.AppendOption(b, code, m.options.Get(code))
		if code == wire.OptBootFile {
			b = append(b, wire.OptPad) // see nameEnd
		}
	}
	b = append(b, wire.OptEnd)
	// A BOOTP message has 300 bytes. Some relay agents drop shorter ones.
	for len(b)-start < minBOOTP {
		b = append(b, wire.OptPad)
	}
	return b
}

// appendField appends s, padded with zeros to n bytes.
func appendField[T string | []byte](b []byte, s T, n int) []byte {
	var zero [128]byte
	return append(append(b, s...), zero[:n-len(s)]...)
}

// messageType returns OFFER, ACK or NAK, or none for a reply by BOOTP.
func (m *Message) messageType() dhcpv4.MessageType {
	if t := m.options.Get(wire.OptMessageType); len(t) > 0 {
		return dhcpv4.MessageType(t[0])
	}
	return dhcpv4.MessageTypeNone
}

const (
	serverPort = 67
	clientPort = 68
)

// Destination returns the receiver of the message (RFC 2131, section 4.1). The
// message goes over UDP when mac is nil, and otherwise in a frame to mac.
//
// Only a client that uses its address answers ARP. All other answers,
// broadcasts too, go in frames that the server writes. A frame carries the
// server identifier as its source and a complete UDP checksum. On virtual NICs
// the packets of the local stack do not, and dhclient and old PXE stacks drop
// those.
func (m *Message) Destination() (to netip.AddrPort, mac net.HardwareAddr) {
	switch {
	case m.giaddr.IsValid():
		return netip.AddrPortFrom(m.giaddr, cmp.Or(m.relayPort, serverPort)), nil
	case m.messageType() == dhcpv4.MessageTypeNak:
	case m.ciaddr.IsValid():
		return netip.AddrPortFrom(m.ciaddr, clientPort), nil
	case m.flags&broadcastFlag == 0 && m.yiaddr.IsValid():
		return netip.AddrPortFrom(m.yiaddr, clientPort), m.mac[:]
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{255, 255, 255, 255}), clientPort), net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
}

// newMessage returns a message with room for the options of a typical reply.
func newMessage() *Message {
	m := &struct {
		Message
		values [22][]byte
		short  [192]byte
		order  [22]uint8
	}{}
	m.htype = byte(iana.HWTypeEthernet)
	m.options, m.Message.order = wire.OptionsIn(m.values[:0], m.short[:0]), m.order[:0]
	return &m.Message
}

// arrange sets the order in which the options are sent. The message type comes first.
// The options of the client's list follow in its order (RFC 2132, section 9.8), with the
// mask before the router (section 3.3), and then the others in the order of their codes.
// The option of the relay agent is the last (RFC 3046, section 2.1).
func (m *Message) arrange(list []byte) {
	order, left := m.order[:0], m.options.Codes()
	left.Remove(wire.OptRelay)
	if left.Has(wire.OptMessageType) {
		left.Remove(wire.OptMessageType)
		order = append(order, wire.OptMessageType)
	}
	for _, code := range list {
		if !left.Has(code) {
			continue
		}
		if code == wire.OptRouter && left.Has(wire.OptSubnetMask) {
			left.Remove(wire.OptSubnetMask)
			order = append(order, wire.OptSubnetMask)
		}
		left.Remove(code)
		order = append(order, code)
	}
	for i, word := range left {
		for ; word != 0; word &= word - 1 {
			order = append(order, uint8(i*64+bits.TrailingZeros64(word)))
		}
	}
	if m.options.Has(wire.OptRelay) {
		order = append(order, wire.OptRelay)
	}
	m.order = order
}
