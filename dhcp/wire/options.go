package wire

import (
	"fmt"
	"iter"
	"math/bits"
	"net/netip"
)

// Option codes (RFC 2132 unless noted).
const (
	OptPad             = 0
	OptSubnetMask      = 1
	OptRouter          = 3
	OptDNS             = 6
	OptHostName        = 12
	OptDomain          = 15
	OptBroadcast       = 28
	OptVendor          = 43
	OptRequested       = 50
	OptLease           = 51
	OptOverload        = 52
	OptMessageType     = 53
	OptServerID        = 54
	OptParameters      = 55
	OptMessage         = 56
	OptMaxSize         = 57
	OptRenew           = 58
	OptRebind          = 59
	OptClass           = 60
	OptClientID        = 61
	OptTFTPServer      = 66
	OptBootFile        = 67
	OptUserClass       = 77  // RFC 3004
	OptFQDN            = 81  // RFC 4702
	OptRelay           = 82  // RFC 3046
	OptArch            = 93  // RFC 4578
	OptUNDI            = 94  // RFC 4578
	OptMachineID       = 97  // RFC 4578
	OptIPv6Only        = 108 // RFC 8925
	OptSubnetSelection = 118 // RFC 3011
	OptIPXE            = 175
	OptEnd             = 255
)

// Options holds the options of a message, at most one of each code. The zero
// value is ready to use.
type Options struct {
	codes  CodeSet
	at     [256]uint8 // by code: the index of the value in values
	values [][]byte
	short  []byte // the bytes of short values
}

// OptionsIn returns no options. The first ones that are set need no memory but that of
// values, and of short for the bytes of values that are copied.
func OptionsIn(values [][]byte, short []byte) Options { return Options{values: values, short: short} }

// Empty returns no options, in the memory of o.
func (o *Options) Empty() Options { return OptionsIn(o.values[:0], o.short[:0]) }

// Has reports whether an option is set.
func (o *Options) Has(code uint8) bool { return o.codes.Has(code) }

// Codes returns the codes of the options that are set.
func (o *Options) Codes() CodeSet { return o.codes }

// Len returns the number of options that have been set.
func (o *Options) Len() int { return len(o.values) }

// Remove removes an option.
func (o *Options) Remove(code uint8) { o.codes.Remove(code) }

// Get returns the value of an option, or nil when the option is not set.
func (o *Options) Get(code uint8) []byte {
	if !o.codes.Has(code) {
		return nil
	}
	return o.values[o.at[code]]
}

// Set makes data the value of an option. The caller must not change data
// afterwards.
func (o *Options) Set(code uint8, data []byte) {
	if !o.codes.Has(code) {
		o.codes.Add(code)
		o.at[code] = uint8(len(o.values))
		o.values = append(o.values, nil)
	}
	o.values[o.at[code]] = data
}

// Put makes a copy of data the value of an option.
func (o *Options) Put(code uint8, data ...byte) {
	start := len(o.short)
	o.short = append(o.short, data...)
	o.Set(code, o.short[start:len(o.short):len(o.short)])
}

// PutAddr makes an IPv4 address the value of an option.
func (o *Options) PutAddr(code uint8, a netip.Addr) {
	four := a.As4()
	o.Put(code, four[:]...)
}

// PutUint32 makes n the value of an option.
func (o *Options) PutUint32(code uint8, n uint32) {
	o.Put(code, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

// CodeSet is a set of option codes.
type CodeSet [4]uint64

// Has reports whether a code is in the set.
func (s *CodeSet) Has(c uint8) bool { return s[c/64]&(1<<(c%64)) != 0 }

// Add adds a code.
func (s *CodeSet) Add(c uint8) { s[c/64] |= 1 << (c % 64) }

// Remove removes a code.
func (s *CodeSet) Remove(c uint8) { s[c/64] &^= 1 << (c % 64) }

// All yields the codes in ascending order.
func (s *CodeSet) All() iter.Seq[uint8] {
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

// EachOption calls do for each option of a field. The field may lack the END
// option, which some clients forget. A truncated option is an error.
func EachOption(b []byte, do func(code uint8, data []byte)) error {
	for len(b) > 0 && b[0] != OptEnd {
		if b[0] == OptPad {
			b = b[1:]
			continue
		}
		if len(b) < 2 || len(b) < 2+int(b[1]) {
			return fmt.Errorf("option %d is cut off", b[0])
		}
		do(b[0], b[2:2+int(b[1])])
		b = b[2+int(b[1]):]
	}
	return nil
}

// AppendOption appends an option. It sends more than 255 bytes in pieces (RFC
// 3396).
func AppendOption(b []byte, code uint8, data []byte) []byte {
	for len(data) > 255 {
		b = append(append(b, code, 255), data[:255]...)
		data = data[255:]
	}
	return append(append(b, code, byte(len(data))), data...)
}

// OptionSize returns the size of an option in bytes, with the headers of all
// its pieces. An option of more than 255 bytes is sent in pieces (RFC 3396).
func OptionSize(data []byte) int {
	return len(data) + 2*max(1, (len(data)+254)/255)
}
