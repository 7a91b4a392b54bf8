package dhcp6

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv6"
)

// options is a sequence of options as on the wire: code and length of two bytes each, and
// the data.
type options []byte

var errOptions = errors.New("an option is cut off")

// check returns an error for a sequence that ends within an option.
func (o options) check() error {
	for len(o) > 0 {
		if len(o) < 4 || len(o)-4 < int(binary.BigEndian.Uint16(o[2:])) {
			return errOptions
		}
		o = o[4+int(binary.BigEndian.Uint16(o[2:])):]
	}
	return nil
}

// next returns the first option and the rest. ok is false at the end, and where an option
// is cut off.
func (o options) next() (code dhcpv6.OptionCode, data []byte, rest options, ok bool) {
	if len(o) < 4 {
		return 0, nil, nil, false
	}
	n := int(binary.BigEndian.Uint16(o[2:]))
	if len(o)-4 < n {
		return 0, nil, nil, false
	}
	return dhcpv6.OptionCode(binary.BigEndian.Uint16(o)), o[4 : 4+n], o[4+n:], true
}

// get returns the data of the first option with a code, not nil, or nil for none.
func (o options) get(code dhcpv6.OptionCode) []byte {
	for at, data, rest, ok := o.next(); ok; at, data, rest, ok = rest.next() {
		if at == code {
			return data
		}
	}
	return nil
}

// counted calls f with the texts of an option of counted texts, such as the user class.
func counted(data []byte, f func(text []byte)) {
	for len(data) >= 2 {
		n := int(binary.BigEndian.Uint16(data))
		if len(data)-2 < n {
			return
		}
		f(data[2 : 2+n])
		data = data[2+n:]
	}
}

// appendOption appends an option to a message.
func appendOption(b []byte, code dhcpv6.OptionCode, data ...byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(code))
	b = binary.BigEndian.AppendUint16(b, uint16(len(data)))
	return append(b, data...)
}

// begin appends the head of an option whose data follows. end sets its length.
func begin(b []byte, code dhcpv6.OptionCode) (_ []byte, start int) {
	b = binary.BigEndian.AppendUint16(b, uint16(code))
	return append(b, 0, 0), len(b) + 2
}

func end(b []byte, start int) []byte {
	binary.BigEndian.PutUint16(b[start-2:], uint16(len(b)-start))
	return b
}

// address reads an IPv6 address; the zero Addr if there is none.
func address(b []byte) netip.Addr {
	if len(b) < 16 {
		return netip.Addr{}
	}
	return netip.AddrFrom16([16]byte(b))
}
