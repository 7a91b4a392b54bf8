package explain

import (
	"cmp"
	"fmt"
	"slices"

	"drover/dhcp/bootprogram"
	"drover/pools"
	"drover/pools/resolve"
)

// NextBoot returns the server's answer to a machine whose firmware asks as it did the last time. last
// is how it asked then; without it, what the list of unknown machines has of it counts. assumed says
// what is not known. An error is the reason for silence.
func (e *Server) NextBoot(mac pools.MAC, last resolve.Query, known bool) (x Explanation, assumed string, err error) {
	d, assumed := e.discover(mac, last, known)
	if last.IPv6 || !known && e.WantsIPv6(mac) {
		x, err = e.Explain6(d)
	} else {
		x, err = e.Explain(d.Packet().ToBytes())
	}
	return x, assumed, err
}

// discover returns the DISCOVER that is explained, and what is assumed of it.
func (e *Server) discover(mac pools.MAC, last resolve.Query, known bool) (d *bootprogram.Discover, assumed string) {
	if known {
		return &bootprogram.Discover{
			MAC: mac, Firmware: last.Firmware, IPXE: last.IPXE, Class: last.Class, UserClass: last.UserClass, ClientID: last.ClientID,
			UUID: last.UUID, Relay: last.Link.Unmap(), CircuitID: last.CircuitID, RemoteID: last.RemoteID,
		}, ""
	}
	i := slices.IndexFunc(e.Unknown, func(u pools.Unknown) bool { return u.MAC == mac })
	if i < 0 {
		return &bootprogram.Discover{MAC: mac, Firmware: pools.UEFIx64}, fmt.Sprintf("No DISCOVER of it is known. This is for firmware %s, without a relay agent.", pools.UEFIx64)
	}
	u := &e.Unknown[i]
	d = &bootprogram.Discover{MAC: mac, Firmware: cmp.Or(u.Firmware, pools.UEFIx64), Class: u.Class, Relay: u.Relay, CircuitID: u.Circuit, RemoteID: u.Remote}
	if u.Firmware == "" {
		d.Class, assumed = "", fmt.Sprintf("Only an operating system has asked so far. This is for firmware %s.", pools.UEFIx64)
	}
	return d, assumed
}
