package attack

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"

	"drover/e2e/dhcptest"
	"drover/pools"
)

// Recorded reads the DHCP messages of recordings, the files NAME.hex of a directory: see
// e2e/record.
func Recorded(dir string) (messages [][]byte, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.hex"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		of, err := dhcptest.Recorded(file)
		if err != nil {
			return nil, err
		}
		messages = append(messages, of...)
	}
	if len(messages) == 0 {
		return nil, fmt.Errorf("%s has no recordings", dir)
	}
	return messages, nil
}

// Mutator makes broken messages from good ones. The same seed makes the same ones.
type Mutator struct {
	Rand  *rand.Rand
	Seeds [][]byte
}

// Offsets in a DHCP message (RFC 2131, section 2).
const (
	atFlags   = 10
	atCiaddr  = 12
	atGiaddr  = 24
	atChaddr  = 28
	atOptions = 240
)

// Next returns a message that is a seed with one to four mutations.
func (m *Mutator) Next() []byte {
	b := append([]byte(nil), m.Seeds[m.Rand.IntN(len(m.Seeds))]...)
	for range 1 + m.Rand.IntN(4) {
		b = m.mutate(b)
	}
	return b
}

// mutate changes a message, in place or not.
func (m *Mutator) mutate(b []byte) []byte {
	at := func() int { return m.Rand.IntN(max(len(b), 1)) }
	put := func(offset int, with ...byte) {
		if len(b) > offset {
			copy(b[offset:], with)
		}
	}
	switch m.Rand.IntN(16) {
	case 0: // a bit
		if len(b) > 0 {
			b[at()] ^= 1 << m.Rand.IntN(8)
		}
	case 1: // a byte
		if len(b) > 0 {
			b[at()] = byte(m.Rand.Uint32())
		}
	case 2: // cut off
		b = b[:at()]
	case 3: // longer
		b = append(b, m.bytes(m.Rand.IntN(1200))...)
	case 4: // a part twice
		from := at()
		b = append(b, b[from:from+min(len(b)-from, m.Rand.IntN(300))]...)
	case 5: // the end of another message
		other := m.Seeds[m.Rand.IntN(len(m.Seeds))]
		b = append(b[:at()], other[m.Rand.IntN(len(other)):]...)
	case 6:
		put(m.Rand.IntN(4), byte(m.Rand.Uint32())) // op, htype, hlen, hops
	case 7:
		put(atGiaddr, m.address()...)
	case 8:
		put(atCiaddr, m.address()...)
	case 9:
		mac := randomMAC()
		put(atChaddr, mac[:]...)
	case 10:
		put(atFlags, byte(m.Rand.Uint32()), byte(m.Rand.Uint32()))
	case 11: // the type
		b = m.option(b, 53, byte(m.Rand.IntN(20)))
	case 12: // overload of sname and file
		b = m.option(b, 52, byte(m.Rand.IntN(5)))
		put(44, m.bytes(192)...)
	case 13: // a relay agent's option, whole or not
		b = m.option(b, 82, m.bytes(m.Rand.IntN(60))...)
	case 14:
		b = m.option(b, 50, m.address()...)
	default:
		b = m.option(b, byte(m.Rand.Uint32()), m.bytes(m.Rand.IntN(256))...)
	}
	return b[:min(len(b), 1472)]
}

// option inserts an option before all others. One length in ten is wrong.
func (m *Mutator) option(b []byte, code byte, value ...byte) []byte {
	if len(b) < atOptions {
		return b
	}
	length := byte(len(value))
	if m.Rand.IntN(10) == 0 {
		length = byte(m.Rand.Uint32())
	}
	head := append([]byte(nil), b[:atOptions]...)
	return append(append(append(head, code, length), value...), b[atOptions:]...)
}

// address returns an address of the lab, or any other.
func (m *Mutator) address() []byte {
	if m.Rand.IntN(2) == 0 {
		return m.bytes(4)
	}
	return binary.BigEndian.AppendUint16([]byte{10, 77}, uint16(m.Rand.Uint32()))
}

func (m *Mutator) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(m.Rand.Uint32())
	}
	return b
}

// Fuzz broadcasts count mutated messages at a rate to port 67, as hosts without an
// address do, and sends mutated TFTP requests to port 69 beside them.
func (l *Lab) Fuzz(m *Mutator, count, rate int, done <-chan struct{}) (sent int, err error) {
	w, err := NewWire(l.Wire)
	if err != nil {
		return 0, err
	}
	defer w.Close()
	reads := &Mutator{Rand: m.Rand, Seeds: [][]byte{
		request("undionly.kpxe"), request("snponly.efi", "tsize", "0", "blksize", "1468", "windowsize", "64"),
		request("pxelinux.cfg/default"), request("grub/grub.cfg", "timeout", "1"), {0, 2, 'x', 0}, {0, 4, 0, 1}, {0, 5, 0, 0, 0},
	}}
	return paceUntil(done, count, rate, func(i int) error {
		if i%8 == 7 {
			return w.Send(ServerMAC, Packet{From: addrPort(WireAddr, uint16(20000+i%20000)), To: addrPort(ServerAddr, 69), Payload: reads.Next()})
		}
		b := m.Next()
		if len(b) >= atChaddr+6 {
			copy(w.mac[:], b[atChaddr:])
			w.mac[0] &^= 1 // no group
		}
		p := broadcast(b)
		if i%5 == 4 { // as a relay agent, or a client that has its address
			p = Packet{From: addrPort(WireAddr, 67), To: addrPort(ServerAddr, 67), Payload: b}
			return w.Send(ServerMAC, p)
		}
		return w.Send(pools.MAC{}, p)
	})
}

// ServerMAC is the MAC of br0.
var ServerMAC = pools.MAC{2, 0, 0, 0, 0, 1}
