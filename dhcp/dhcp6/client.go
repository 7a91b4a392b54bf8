package dhcp6

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"

	"drover/dhcp"
	"drover/internal/printable"
	"drover/pools"
	"drover/pools/resolve"
)

const (
	ipxeClass = "iPXE"
	intel     = 343 // the enterprise whose vendor classes PXE and UEFI send
	httpClass = "HTTPClient"
	duidUUID  = "\x00\x04" // the type of a DUID with the UUID of the machine (RFC 6355), as PXE and UEFI send
)

// query returns the query to the farm. own is an address of this server on the wire.
func (r *Request) query(own netip.Addr) resolve.Query {
	q := resolve.Query{
		MAC: r.MAC, IPv6: true, Link: own, Relayed: r.Relayed(), ClientID: string(r.duid()),
		Renewing:  r.Type == dhcpv6.MessageTypeRenew || r.Type == dhcpv6.MessageTypeRebind,
		CircuitID: string(r.fromRelays(dhcpv6.OptionInterfaceID)), SubscriberID: string(r.fromRelays(dhcpv6.OptionRelayAgentSubscriberID)),
	}
	if r.Type != dhcpv6.MessageTypeSolicit {
		q.Keeps = wanted(r)
	}
	if link := r.Link(); link.IsValid() {
		q.Link = link
	}
	if id := q.ClientID; len(id) == 18 && id[:2] == duidUUID {
		q.UUID = id[2:]
	}
	if remote := r.fromRelays(dhcpv6.OptionRemoteID); len(remote) > 4 {
		q.RemoteID = string(remote[4:]) // after the number of an enterprise
	}
	if class := r.options.get(dhcpv6.OptionVendorClass); len(class) > 4 {
		counted(class[4:], func(text []byte) {
			if q.Class == "" {
				q.Class = string(text)
			}
		})
	}
	q.UserClass, q.IPXE = userClass(r.options.get(dhcpv6.OptionUserClass))
	q.Archs = dhcp.Archs(q.Class, r.options.get(dhcpv6.OptionClientArchType)) // RFC 5970: as option 93
	q.Firmware = pools.FirmwareOf(q.Class, q.Archs)
	return q
}

// boots reports whether the client is a boot program, whose SOLICIT begins a boot.
func (r *Request) boots() bool {
	q := r.query(netip.Addr{})
	return q.Boots()
}

// userClass returns the first user class, and reports whether one of them is iPXE. Some
// clients send bare text.
func userClass(data []byte) (first string, ipxe bool) {
	if string(data) == ipxeClass {
		return ipxeClass, true
	}
	counted(data, func(text []byte) {
		if first == "" {
			first = string(text)
		}
		ipxe = ipxe || string(text) == ipxeClass
	})
	if first == "" {
		first = string(data)
	}
	return first, ipxe
}

// asksFor reports whether the client lists an option in its option request.
func (r *Request) asksFor(code dhcpv6.OptionCode) bool {
	for list := r.options.get(dhcpv6.OptionORO); len(list) >= 2; list = list[2:] {
		if binary.BigEndian.Uint16(list) == uint16(code) {
			return true
		}
	}
	return false
}

// Exchange returns the exchange of a request that is dropped.
func (r *Request) Exchange(d dhcp.Decision, received time.Time) dhcp.Exchange {
	return dhcp.Exchange{Time: received, MAC: r.MAC, Type: typeName(r.Type), Decision: d}
}

// exchange returns the exchange of a request with this query, without its outcome.
func (r *Request) exchange(q *resolve.Query, now time.Time) dhcp.Exchange {
	x := r.Exchange("", now)
	x.Firmware, x.IPXE, x.Netboot = q.Firmware, q.IPXE, q.Boots()
	x.Class, x.Circuit, x.Remote = printable.Quote(q.Class, 64), printable.Quote(q.CircuitID, 64), printable.Quote(q.RemoteID, 64)
	if r.Relayed() {
		x.Giaddr = r.From.Addr
	}
	return x
}

// typeName returns the name of a message of clients and servers; "" for others.
func typeName(t dhcpv6.MessageType) string {
	if t < dhcpv6.MessageTypeSolicit || t > dhcpv6.MessageTypeInformationRequest {
		return ""
	}
	return t.String()
}
