package dhcp

import (
	"iter"
	"maps"
	"math/bits"
	"net"
	"net/netip"
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"drover/pools"
)

// message is a reply in the making (RFC 2131, section 2). It is written to the
// wire as it stands, which costs a third of the detour over a map of options.
type message struct {
	xid                            dhcpv4.TransactionID
	flags                          uint16
	ciaddr, yiaddr, siaddr, giaddr netip.Addr // the zero Addr is 0.0.0.0
	mac                            pools.MAC
	sname, file                    string // at most maxSname and maxBootFile bytes
	options
}

const broadcastFlag = 1 << 15

// append writes the message to the end of b.
func (m *message) append(b []byte) []byte {
	b = slices.Grow(b, minMessage)
	start := len(b)
	b = append(b, byte(dhcpv4.OpcodeBootReply), byte(iana.HWTypeEthernet), byte(len(m.mac)), 0)
	b = append(b, m.xid[:]...)
	b = append(b, 0, 0, byte(m.flags>>8), byte(m.flags))
	for _, a := range [...]netip.Addr{m.ciaddr, m.yiaddr, m.siaddr, m.giaddr} {
		four := [4]byte{}
		if a.IsValid() {
			four = a.As4()
		}
		b = append(b, four[:]...)
	}
	b = appendField(b, m.mac[:], 16)
	b = appendField(b, m.sname, maxSname+1)
	b = appendField(b, m.file, maxBootFile+1)
	b = append(b, 99, 130, 83, 99) // the magic cookie
	for code, data := range m.all() {
		b = appendOption(b, code, data)
	}
	b = append(b, optEnd)
	// A BOOTP message has 300 bytes. Some relay agents drop shorter ones.
	for len(b)-start < minBOOTP {
		b = append(b, optPad)
	}
	return b
}

// appendField writes s and fills it up to n bytes.
func appendField[T string | []byte](b []byte, s T, n int) []byte {
	var zero [128]byte
	return append(append(b, s...), zero[:n-len(s)]...)
}

// appendOption writes an option, one of more than 255 bytes in pieces
// (RFC 3396).
func appendOption(b []byte, code uint8, data []byte) []byte {
	for len(data) > 255 {
		b = append(append(b, code, 255), data[:255]...)
		data = data[255:]
	}
	return append(append(b, code, byte(len(data))), data...)
}

// messageType is OFFER, ACK or NAK.
func (m *message) messageType() dhcpv4.MessageType {
	return dhcpv4.MessageType(m.get(optMessageType)[0])
}

// dhcpv4 is the message as the library has it; nil for none.
func (m *message) dhcpv4() *dhcpv4.DHCPv4 {
	if m == nil {
		return nil
	}
	r := &dhcpv4.DHCPv4{
		OpCode: dhcpv4.OpcodeBootReply, HWType: iana.HWTypeEthernet, TransactionID: m.xid, Flags: m.flags,
		ClientIPAddr: ip(m.ciaddr), YourIPAddr: ip(m.yiaddr), ServerIPAddr: ip(m.siaddr), GatewayIPAddr: ip(m.giaddr),
		ClientHWAddr: m.mac[:], ServerHostName: m.sname, BootFileName: m.file, Options: dhcpv4.Options{},
	}
	maps.Insert(r.Options, m.all())
	return r
}

func ip(a netip.Addr) net.IP {
	if !a.IsValid() {
		return net.IPv4zero
	}
	return a.AsSlice()
}

// newMessage is a message that a usual reply fits into without further garbage.
func newMessage() *message {
	m := &struct {
		message
		values [24][]byte
		short  [192]byte
	}{}
	m.options.values, m.options.short = m.values[:0], m.short[:0]
	return &m.message
}

// options are those of a message, one of each code. The zero value is ready.
type options struct {
	codes  codeSet
	at     [256]uint8 // where in values the option of a code is
	values [][]byte
	short  []byte // what short values share
}

// get returns the value of an option; nil when there is none.
func (o *options) get(code uint8) []byte {
	if !o.codes.has(code) {
		return nil
	}
	return o.values[o.at[code]]
}

// set makes data the value of an option. It must not change afterwards.
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

func (o *options) putText(code uint8, s string) {
	start := len(o.short)
	o.short = append(o.short, s...)
	o.set(code, o.short[start:len(o.short):len(o.short)])
}

func (o *options) putAddr(code uint8, a netip.Addr) {
	four := a.As4()
	o.put(code, four[:]...)
}

func (o *options) putUint32(code uint8, n uint32) {
	o.put(code, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

// all yields the options by code, that of the relay agent last (RFC 3046,
// section 2.1).
func (o *options) all() iter.Seq2[uint8, []byte] {
	return func(yield func(uint8, []byte) bool) {
		for i, word := range o.codes {
			for ; word != 0; word &= word - 1 {
				code := uint8(i*64 + bits.TrailingZeros64(word))
				if code != optRelay && !yield(code, o.get(code)) {
					return
				}
			}
		}
		if o.codes.has(optRelay) {
			yield(optRelay, o.get(optRelay))
		}
	}
}
