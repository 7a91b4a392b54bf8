package dhcp

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp/wire"
	"drover/pools"
)

// Request is a parsed packet of a client. It refers to the bytes that it was
// parsed from. Parse may be called again for the next packet.
type Request struct {
	MAC    pools.MAC          // chaddr, even when it is not an Ethernet address; zero for a packet without a header; see portMAC for InfiniBand
	Type   dhcpv4.MessageType // none for BOOTP, and for a packet that is not DHCP
	Giaddr netip.Addr         // the relay agent; the zero Addr for a packet that came directly
	From   netip.Addr         // source address, which Parse does not know; the zero Addr: unknown, or 0.0.0.0
	Port   uint16             // source port, which Parse does not know; zero: unknown

	header  []byte
	options wire.Options
	err     error // the reason why the packet is not a request
	cut     error // an option is cut off; those before it count
	foreign error // the subnet that the client selects is of another network, and does not count
}

// MaxRequest is the size of the longest request that is answered, in bytes.
// Requests are no longer than the MTU, and need no more than 1500 bytes.
const MaxRequest = 2047

// Parse parses a packet. It accepts a broken packet too: it sets the fields
// before the broken part, and Reply reports the error.
func (r *Request) Parse(b []byte) {
	*r = Request{options: r.options.Empty()}
	switch {
	case len(b) > MaxRequest:
		r.err = fmt.Errorf("packet of more than %d bytes", MaxRequest)
	case len(b) < wire.OptionsAt:
		r.err = fmt.Errorf("%d bytes are less than the header of a DHCP message", len(b))
	default:
		r.header = b[:wire.OptionsAt]
		copy(r.MAC[:], b[wire.ChaddrAt:])
		r.Giaddr = address(b[wire.GiaddrAt : wire.GiaddrAt+4])
		r.parse(b)
	}
}

// Copy returns the request with the bytes of a packet of its own, the same that it was parsed
// from. What Parse does not know, and what [Senders] left aside, stays so.
func (r *Request) Copy(packet []byte) *Request {
	c := new(Request)
	c.Parse(bytes.Clone(packet))
	c.From, c.Port, c.foreign = r.From, r.Port, r.foreign
	return c
}

// parse reads the options of a packet. Those of a packet without the magic cookie
// are not DHCP's: it is BOOTP, which has at least 300 bytes.
func (r *Request) parse(b []byte) {
	if [4]byte(b[wire.CookieAt:]) != wire.MagicCookie() {
		if len(b) < minBOOTP {
			r.err = errors.New("not a DHCP packet: the magic cookie is not there")
		}
		return
	}
	r.cut = wire.EachOption(b[wire.OptionsAt:], r.add)
	if flags := r.options.Get(wire.OptOverload); len(flags) == 1 {
		if flags[0]&wire.OverloadFile != 0 {
			r.cut = cmp.Or(r.cut, wire.EachOption(b[wire.FileAt:wire.CookieAt], r.addOverloaded))
		}
		if flags[0]&wire.OverloadSname != 0 {
			r.cut = cmp.Or(r.cut, wire.EachOption(b[wire.SnameAt:wire.FileAt], r.addOverloaded))
		}
	}
	if r.infiniBand() {
		r.MAC = portMAC(r.options.Get(wire.OptClientID))
	}
}

// add adds an option. It joins options that were sent in pieces (RFC 3396).
func (r *Request) add(code uint8, data []byte) {
	if r.options.Has(code) {
		data = slices.Concat(r.options.Get(code), data)
	}
	r.options.Set(code, data)
	if code == wire.OptMessageType && len(data) > 0 {
		r.Type = dhcpv4.MessageType(data[0])
	}
}

// addOverloaded adds an option of the file or sname field. Relay agents add option 82 to
// the options field, and do not search the others for one of the client.
func (r *Request) addOverloaded(code uint8, data []byte) {
	if code != wire.OptRelay {
		r.add(code, data)
	}
}

// check returns an error for a packet that cannot come from a machine that
// drover serves.
func (r *Request) check() error {
	switch {
	case r.err != nil:
		return r.err
	case r.header[0] != byte(dhcpv4.OpcodeBootRequest):
		return fmt.Errorf("op is %d, not a request", r.header[0])
	case r.infiniBand() && len(r.options.Get(wire.OptClientID)) == 0:
		return errors.New("InfiniBand without a client identifier (RFC 4390)")
	case !r.infiniBand() && !r.ethernet():
		return fmt.Errorf("hardware address is neither Ethernet nor InfiniBand: htype %d, hlen %d", r.header[1], r.header[2])
	case r.MAC.IsZero() || r.MAC[0]&1 != 0:
		return fmt.Errorf("hardware address %s is not unicast", r.MAC)
	case r.bootp() && r.cut != nil:
		return r.cut
	}
	// An echoed option must not fill the whole answer. An option that was sent
	// in several pieces could do so (RFC 3396).
	for _, code := range echoed() {
		if n := len(r.options.Get(code)); n > 255 && code != wire.OptSubnetSelection {
			return fmt.Errorf("option %d has %d bytes", code, n)
		}
	}
	return nil
}

func (r *Request) xid() [4]byte { return [4]byte(r.header[wire.XidAt:]) }

func (r *Request) flags() uint16 { return binary.BigEndian.Uint16(r.header[wire.FlagsAt:]) }

// Chaddr returns the first bytes of the hardware address as the packet has it; zero for a
// packet without a header, and for InfiniBand.
func (r *Request) Chaddr() (mac pools.MAC) {
	if r.header != nil {
		copy(mac[:], r.header[wire.ChaddrAt:])
	}
	return mac
}

// bootp reports whether the packet has no message type: it is BOOTP (RFC 951), unless
// check returns an error.
func (r *Request) bootp() bool { return r.Type == dhcpv4.MessageTypeNone }

// ciaddr returns the address that the client claims to have; the zero Addr for
// none.
func (r *Request) ciaddr() netip.Addr { return address(r.header[wire.CiaddrAt : wire.CiaddrAt+4]) }

// RelayInfo returns the value of option 82; nil for none.
func (r *Request) RelayInfo() []byte { return r.options.Get(wire.OptRelay) }

// requestedOption returns the address in option 50; the zero Addr for none.
func (r *Request) requestedOption() netip.Addr { return address(r.options.Get(wire.OptRequested)) }

// usesItsAddress reports whether the client uses the address in ciaddr. In the
// other states that field should be zero, but some ROMs fill it.
func (r *Request) usesItsAddress() bool {
	switch r.Type {
	case dhcpv4.MessageTypeRequest:
		return r.renews()
	case dhcpv4.MessageTypeRelease, dhcpv4.MessageTypeInform:
		return true
	}
	return false
}

// keeps returns the address that the client has or was offered, and that the message is about; the
// zero Addr for a message that begins anew.
func (r *Request) keeps() netip.Addr {
	switch r.Type {
	case dhcpv4.MessageTypeNone, dhcpv4.MessageTypeDiscover:
		return netip.Addr{}
	case dhcpv4.MessageTypeInform:
		return r.informed()
	}
	if a := r.requestedOption(); a.IsValid() {
		return a
	}
	return r.ciaddr()
}

// renews reports whether this is a REQUEST of a client that renews or rebinds.
func (r *Request) renews() bool {
	return r.Type == dhcpv4.MessageTypeRequest && !r.options.Has(wire.OptServerID) && !r.options.Has(wire.OptRequested)
}

// runsOn reports whether the client uses the address a already, and so answers ARP for
// it: it renews, from that address or through a relay agent. A ROM that puts the
// address of its OFFER into ciaddr does not have it before the ACK.
func (r *Request) runsOn(a netip.Addr) bool {
	return r.renews() && r.ciaddr() == a && (r.Giaddr.IsValid() || r.From == a)
}

// subnetSelection returns the network that the client selects (118, RFC 3011); the zero
// Addr for none, for a value that is no address, and for one that [Senders] left aside.
func (r *Request) subnetSelection() netip.Addr {
	if r.foreign != nil {
		return netip.Addr{}
	}
	if a := address(r.options.Get(wire.OptSubnetSelection)); unicast(a) {
		return a
	}
	return netip.Addr{}
}

// informed returns the address that an INFORM is about: ciaddr, or the source of a packet
// that leaves ciaddr empty. The source of a relayed packet is the relay agent.
func (r *Request) informed() netip.Addr {
	if ci := r.ciaddr(); ci.IsValid() || r.Giaddr.IsValid() {
		return ci
	}
	return r.From
}

// noOptions reports whether this is a DISCOVER that has only its type and the
// options that a relay agent adds. GRUB sends it (net_bootp of 2.06, as on a
// medium by drover media). Operating systems list at least the options that
// they expect.
func (r *Request) noOptions() bool {
	n := r.options.Len()
	if r.options.Has(wire.OptRelay) {
		n--
	}
	return n == 1 && r.Type == dhcpv4.MessageTypeDiscover
}

// sizeLimit returns the size in bytes of the largest message that the client
// accepts (option 57), limited to the size of an Ethernet frame. A BOOTP client accepts
// 300 bytes (RFC 951, section 3).
func (r *Request) sizeLimit() int {
	size := r.options.Get(wire.OptMaxSize)
	if len(size) != 2 && r.bootp() {
		return minBOOTP
	}
	if len(size) != 2 {
		return minMessage
	}
	return min(max(int(binary.BigEndian.Uint16(size))-udpOverhead, minMessage), maxMessage)
}

// address reads an IPv4 address. It returns the zero Addr for 0.0.0.0 and for
// bytes that are not an IPv4 address.
func address(b []byte) netip.Addr {
	if len(b) != 4 || [4]byte(b) == [4]byte{} {
		return netip.Addr{}
	}
	return netip.AddrFrom4([4]byte(b))
}

// unicast reports whether a is the address of one host.
func unicast(a netip.Addr) bool {
	return a.Is4() && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() && a.As4()[0] < 240
}
