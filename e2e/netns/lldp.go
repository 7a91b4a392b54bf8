package netns

import "strings"

// TLV is an element of LLDP (IEEE 802.1AB).
func TLV(kind byte, value string) string {
	return string([]byte{kind<<1 | byte(len(value)>>8), byte(len(value))}) + value
}

// LLDP is the announcement of a switch for one of its ports.
func LLDP(system, port string) string {
	return strings.Join([]string{
		TLV(1, "\x04\x02\x00\x00\x00\x00\x01"), TLV(2, "\x05"+port), TLV(3, "\x00\x78"), TLV(4, "to a server"), TLV(5, system), TLV(0, ""),
	}, "")
}

// Announce sends an announcement of LLDP on a device.
func (n Namespace) Announce(device, pdu string) error {
	return n.Do(func() error {
		return sendFrame(device, [6]byte{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e}, 0x88cc, []byte(pdu))
	})
}
