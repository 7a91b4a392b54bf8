// Package routes reads the IPv4 routes of the kernel.
package routes

import (
	"encoding/binary"
	"encoding/hex"
	"net"
	"net/netip"
	"strings"
)

// Route is a line of the kernel's main table.
type Route struct {
	Link    string
	To      netip.Prefix
	Gateway netip.Addr // 0.0.0.0 for the network of the link itself
}

// Parse returns the routes in the text of /proc/net/route. It leaves out what is no route,
// such as the header.
func Parse(text string) (all []Route) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line) // Iface Destination Gateway Flags RefCnt Use Metric Mask
		if len(f) < 8 {
			continue
		}
		to, ok := address(f[1])
		gateway, ok2 := address(f[2])
		mask, ok3 := address(f[7])
		if !ok || !ok2 || !ok3 {
			continue
		}
		m := mask.As4()
		bits, _ := net.IPMask(m[:]).Size()
		all = append(all, Route{f[0], netip.PrefixFrom(to, bits), gateway})
	}
	return all
}

// address parses an address as the kernel writes it, in the order of bytes of the processor.
func address(text string) (netip.Addr, bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 4 {
		return netip.Addr{}, false
	}
	var a [4]byte
	binary.NativeEndian.PutUint32(a[:], binary.BigEndian.Uint32(b))
	return netip.AddrFrom4(a), true
}
