package dhcp

import (
	"cmp"
	"iter"
	"math/bits"
	"net"
	"net/netip"
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

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
	infiniBand                     bool   // the client has no MAC: mac stands for it
	relayPort                      uint16 // of the relay agent, unless it is 67
	sname, file                    string // at most maxSname and maxBootFile bytes
	options
	order []uint8 // the codes of the options in the order in which they are sent, see arrange
}

const broadcastFlag = 1 << 15

// Append appends the message to b in its wire format, without the UDP header.
func (m *Message) Append(b []byte) []byte {
	b = slices.Grow(b, minMessage)
	start := len(b)
	hardware, mac := iana.HWTypeEthernet, m.mac[:]
	if m.infiniBand {
		hardware, mac = iana.HWTypeInfiniband, nil
	}
	b = append(b, byte(dhcpv4.OpcodeBootReply), byte(hardware), byte(len(mac)), 0)
	b = append(b, m.xid[:]...)
	b = append(b, 0, 0, byte(m.flags>>8), byte(m.flags))
	for _, a := range [...]netip.Addr{m.ciaddr, m.yiaddr, m.siaddr, m.giaddr} {
		four := [4]byte{}
		if a.IsValid() {
			four = a.As4()
		}
		b = append(b, four[:]...)
	}
	b = appendField(b, mac, snameAt-chaddrAt)
	b = appendField(b, m.sname, fileAt-snameAt)
	b = appendField(b, m.file, cookieAt-fileAt)
	cookie := magicCookie()
	b = append(b, cookie[:]...)
	for _, code := range m.order {
		b = appendOption(b, code, m.get(code))
	}
	b = append(b, optEnd)
	// A BOOTP message has 300 bytes. Some relay agents drop shorter ones.
	for len(b)-start < minBOOTP {
		b = append(b, optPad)
	}
	return b
}

// appendField appends s, padded with zeros to n bytes.
func appendField[T string | []byte](b []byte, s T, n int) []byte {
	var zero [128]byte
	return append(append(b, s...), zero[:n-len(s)]...)
}

// appendOption appends an option. It sends more than 255 bytes in pieces (RFC
// 3396).
func appendOption(b []byte, code uint8, data []byte) []byte {
	for len(data) > 255 {
		b = append(append(b, code, 255), data[:255]...)
		data = data[255:]
	}
	return append(append(b, code, byte(len(data))), data...)
}

// messageType returns OFFER, ACK or NAK, or none for a reply by BOOTP.
func (m *Message) messageType() dhcpv4.MessageType {
	if t := m.get(optMessageType); len(t) > 0 {
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
	m.Message.values, m.Message.short, m.Message.order = m.values[:0], m.short[:0], m.order[:0]
	return &m.Message
}

// arrange sets the order in which the options are sent. The message type comes first.
// The options of the client's list follow in its order (RFC 2132, section 9.8), with the
// mask before the router (section 3.3), and then the others in the order of their codes.
// The option of the relay agent is the last (RFC 3046, section 2.1).
func (m *Message) arrange(list []byte) {
	order, left := m.order[:0], m.codes
	left.remove(optRelay)
	if left.has(optMessageType) {
		left.remove(optMessageType)
		order = append(order, optMessageType)
	}
	for _, code := range list {
		if !left.has(code) {
			continue
		}
		if code == optRouter && left.has(optSubnetMask) {
			left.remove(optSubnetMask)
			order = append(order, optSubnetMask)
		}
		left.remove(code)
		order = append(order, code)
	}
	for i, word := range left {
		for ; word != 0; word &= word - 1 {
			order = append(order, uint8(i*64+bits.TrailingZeros64(word)))
		}
	}
	if m.codes.has(optRelay) {
		order = append(order, optRelay)
	}
	m.order = order
}

// options holds the options of a message, at most one of each code. The zero
// value is ready to use.
type options struct {
	codes  codeSet
	at     [256]uint8 // by code: the index of the value in values
	values [][]byte
	short  []byte // the bytes of short values
}

// get returns the value of an option, or nil when the option is not set.
func (o *options) get(code uint8) []byte {
	if !o.codes.has(code) {
		return nil
	}
	return o.values[o.at[code]]
}

// set makes data the value of an option. The caller must not change data
// afterwards.
func (o *options) set(code uint8, data []byte) {
	if !o.codes.has(code) {
		o.codes.add(code)
		o.at[code] = uint8(len(o.values))
		o.values = append(o.values, nil)
	}
	o.values[o.at[code]] = data
}

// put makes a copy of data the value of an option.
func (o *options) put(code uint8, data ...byte) {
	start := len(o.short)
	o.short = append(o.short, data...)
	o.set(code, o.short[start:len(o.short):len(o.short)])
}

func (o *options) putAddr(code uint8, a netip.Addr) {
	four := a.As4()
	o.put(code, four[:]...)
}

func (o *options) putUint32(code uint8, n uint32) {
	o.put(code, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

// codeSet is a set of option codes.
type codeSet [4]uint64

func (s *codeSet) has(c uint8) bool { return s[c/64]&(1<<(c%64)) != 0 }
func (s *codeSet) add(c uint8)      { s[c/64] |= 1 << (c % 64) }
func (s *codeSet) remove(c uint8)   { s[c/64] &^= 1 << (c % 64) }

// all yields the codes in ascending order.
func (s *codeSet) all() iter.Seq[uint8] {
	return func(yield func(uint8) bool) {
		for i, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(uint8(i*64 + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}
