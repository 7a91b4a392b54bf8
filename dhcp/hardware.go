package dhcp

import (
	"hash/fnv"

	"github.com/insomniacslk/dhcp/iana"

	"drover/pools"
)

// infiniBand reports whether the client is on InfiniBand. Its hardware address of 20
// bytes has no room in chaddr, which is empty. The client identifier stands for it, and
// answers are broadcast (RFC 4390).
func (r *Request) infiniBand() bool {
	return r.header[1] == byte(iana.HWTypeInfiniband) && r.header[2] == 0
}

// ethernet reports whether the client has a MAC. Type 6, IEEE 802 networks, is what some cards and
// programs on Ethernet send; the answer repeats it (RFC 951).
func (r *Request) ethernet() bool {
	t := iana.HWType(r.header[1])
	return (t == iana.HWTypeEthernet || t == iana.HWTypeIEEE802) && int(r.header[2]) == len(r.MAC)
}

// portMAC returns the MAC that stands for an InfiniBand port with this client identifier.
// The identifier ends in the GUID of the port (8 bytes), and cards make the GUID of a
// port from a MAC and two bytes in its middle: of 00:02:c9:03:00:ab:cd:ef this is
// 00:02:c9:ab:cd:ef, as iPXE has it. For an identifier that does not end in such a
// GUID it is a locally administered MAC, made from the whole identifier.
func portMAC(id []byte) (mac pools.MAC) {
	if n := len(id); n >= 8 {
		copy(mac[:3], id[n-8:])
		copy(mac[3:], id[n-3:])
	}
	if mac.IsZero() || mac[0]&1 != 0 {
		h := fnv.New64a()
		h.Write(id)
		copy(mac[:], h.Sum(nil))
		mac[0] = 2
	}
	return mac
}
