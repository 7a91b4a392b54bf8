package resolve

import (
	"encoding/hex"
	"strings"

	"drover/pools"
)

// The UUID of a machine comes in option 97 (RFC 4578). Firmware sends it as SMBIOS stores
// it, with its first three groups in little-endian order; iPXE sends it in network order.
// So a UUID of the config matches both.

// uuidOrders returns the UUID of option 97 in both byte orders; "" for other values.
func uuidOrders(id string) (sent, swapped string) {
	if len(id) != 16 {
		return "", ""
	}
	b := []byte(id)
	for _, group := range [][]byte{b[0:4], b[4:6], b[6:8]} {
		for i, j := 0, len(group)-1; i < j; i, j = i+1, j-1 {
			group[i], group[j] = group[j], group[i]
		}
	}
	return id, string(b)
}

// uuidText writes a UUID of 16 bytes as 4c4c4544-0034-4210-8035-b4c04f4d3132.
func uuidText(id string) string {
	h := hex.EncodeToString([]byte(id))
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// ParseUUID returns the 16 bytes of a UUID as text. One that many machines have, because
// their vendor set none, is an error.
func ParseUUID(s string) (string, error) {
	b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	if err != nil || len(b) != 16 || !strings.EqualFold(uuidText(string(b)), s) {
		return "", pools.Hint("write it as dmidecode -s system-uuid does: 4c4c4544-0034-4210-8035-b4c04f4d3132", "%q is not a UUID", s)
	}
	if same(b) {
		return "", pools.Hint("identify it by its MAC", "%q is the UUID of all machines without one", s)
	}
	return string(b), nil
}

// same reports whether all bytes are the same.
func same(b []byte) bool { return strings.Count(string(b), string(b[:1])) == len(b) }

// ParseSerial returns the 4 bytes of the serial number of a Raspberry Pi: its last 8 hex
// digits.
func ParseSerial(s string) (string, error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 4 && len(b) != 8 || same(b[len(b)-4:]) {
		return "", pools.Hint("write 8 or 16 hex digits, as in /proc/cpuinfo", "%q is not the serial number of a Raspberry Pi", s)
	}
	return string(b[len(b)-4:]), nil
}

// serialOf returns the serial number in option 97, and false for a machine that sends
// none. The Raspberry Pi 4 and 5 send RPi4 or RPi5, the revision of the board, 4 bytes of
// the MAC and 4 of the serial number; older ones send these four times. PCs put their
// serial number, if at all, into a UUID in a way of their vendor.
func serialOf(id string) (serial string, ok bool) {
	if len(id) != 16 {
		return "", false
	}
	serial = id[12:]
	return serial, strings.HasPrefix(id, "RPi") || id == strings.Repeat(serial, 4)
}

// reversed returns the bytes of a serial number in the other order. The numbers beside it
// are in little-endian order; no source says it of the serial number.
func reversed(serial string) string {
	b := []byte(serial)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

// matchesMachine reports whether the client meets the conditions of option 97.
func (m *matcher) matchesMachine(q *Query) bool {
	if m.uuid != nil {
		sent, swapped := uuidOrders(q.UUID)
		if sent == "" || !m.uuid.matches(uuidText(sent)) && !m.uuid.matches(uuidText(swapped)) {
			return false
		}
	}
	return m.reported == nil || m.matchesSerial(q)
}

// matchesSerial reports whether the client sends the serial number, or has reported it.
func (m *matcher) matchesSerial(q *Query) bool {
	if serial, ok := serialOf(q.UUID); ok && m.serial != "" {
		return serial == m.serial || reversed(serial) == m.serial
	}
	return q.Hardware != nil && q.Hardware.Serial != "" && m.reported.matches(q.Hardware.Serial)
}
