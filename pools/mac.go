package pools

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// MAC is an Ethernet hardware address (EUI-48). The zero MAC is "none".
// It is comparable, so that it can key maps without allocating.
type MAC [6]byte

// ParseMAC reads the forms that operators and firmware write: twelve hex
// digits in pairs separated by ':' or '-', in groups of four separated by '.',
// or without separators. Multicast and all-zero addresses are errors: no network card
// boots with one.
func ParseMAC(s string) (MAC, error) {
	var m MAC
	digits := strings.NewReplacer(":", "", "-", "", ".", "").Replace(s)
	_, err := hex.Decode(m[:], []byte(digits[:min(len(digits), 12)]))
	h := m.Hex()
	forms := []string{m.String(), m.Dashed(), h[:4] + "." + h[4:8] + "." + h[8:], h}
	switch {
	case err != nil || !slices.Contains(forms, strings.ToLower(s)):
		return MAC{}, Hint("write six pairs such as 52:54:00:12:34:56", "%q is not a MAC address", s)
	case m.IsZero():
		return MAC{}, Hint("see the label on the machine", "MAC address %s is all zero", m)
	case m[0]&1 != 0:
		return MAC{}, Hint("no network card boots with one", "MAC address %s is a multicast address", m)
	}
	return m, nil
}

// String returns the usual form, 52:54:00:12:34:56.
func (m MAC) String() string { return string(m.append(nil, ':')) }

// Dashed returns the form of PXE paths and BOOTIF, 52-54-00-12-34-56.
func (m MAC) Dashed() string { return string(m.append(nil, '-')) }

// Hex returns the twelve digits alone, 525400123456.
func (m MAC) Hex() string { return hex.EncodeToString(m[:]) }

// IsZero reports whether m is no address.
func (m MAC) IsZero() bool { return m == MAC{} }

// IsVirtualRouter reports whether m is the MAC of a virtual router, which several routers share and
// no machine has: VRRP (RFC 5798, section 7.3), or HSRP (00:00:0c:07:ac and 00:00:0c:9f:f).
func (m MAC) IsVirtualRouter() bool {
	switch [3]byte(m[:3]) {
	case [3]byte{0, 0, 0x5e}:
		return m[3] == 0 && (m[4] == 1 || m[4] == 2)
	case [3]byte{0, 0, 0x0c}:
		return m[3] == 7 && m[4] == 0xac || m[3] == 0x9f && m[4]&0xf0 == 0xf0
	}
	return false
}

func (m MAC) append(b []byte, sep byte) []byte {
	const digits = "0123456789abcdef"
	for i, v := range m {
		if i > 0 {
			b = append(b, sep)
		}
		b = append(b, digits[v>>4], digits[v&15])
	}
	return b
}

// MarshalText writes the form of [MAC.String].
func (m MAC) MarshalText() ([]byte, error) { return m.append(nil, ':'), nil }

// UnmarshalText reads the forms of [ParseMAC].
func (m *MAC) UnmarshalText(b []byte) (err error) {
	*m, err = ParseMAC(string(b))
	return err
}

// MachineID returns the machine-id(5) of a node: 32 hex digits, made from the first
// of its declared MACs. A node without a disk so keeps its machine-id over boots,
// whichever network card it boots from. Its journal and its DHCP client rely on that.
func MachineID(first MAC) string {
	sum := sha256.Sum256([]byte("drover machine-id " + first.String()))
	b := sum[:16]
	b[6] = b[6]&0x0f | 0x40 // machine-id(5) asks for a UUID of version 4
	b[8] = b[8]&0x3f | 0x80
	return hex.EncodeToString(b)
}
