package dhcp

import (
	"net/netip"
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp/wire"
	"drover/pools"
)

// Fit is fit for a reply in the type of the library. It returns the packet, and
// the codes of the omitted options.
func Fit(r *dhcpv4.DHCPv4, limit int) (packet []byte, omitted []uint8) {
	m := messageOf(r)
	omitted = fit(m, limit, nil)
	return m.ByCode(), omitted
}

// ReplyOption returns the value of an option of a reply.
func ReplyOption(m *Message, code uint8) []byte { return m.options.Get(code) }

// Option returns the value of an option.
func (r *Request) Option(code uint8) []byte { return r.options.Get(code) }

// Wire returns a reply in its wire format.
func Wire(r *dhcpv4.DHCPv4) []byte { return messageOf(r).ByCode() }

// ByCode returns a reply in its wire format, with the options in the order of the
// library: by code, that of the relay agent last, and no pad option between them.
func (m *Message) ByCode() []byte {
	c := *m
	codes := c.options.Codes()
	c.order = slices.DeleteFunc(slices.Collect(codes.All()), func(code uint8) bool { return code == wire.OptRelay })
	if c.options.Has(wire.OptRelay) {
		c.order = append(c.order, wire.OptRelay)
	}
	return withoutNameEnd(c.Append(nil))
}

// withoutNameEnd removes the pad option behind option 67, which the library does not write.
func withoutNameEnd(packet []byte) []byte {
	for b := packet[wire.OptionsAt:]; len(b) > 2 && b[0] != wire.OptEnd; b = b[2+int(b[1]):] {
		end := len(packet) - len(b) + 2 + int(b[1])
		if b[0] == wire.OptBootFile && packet[end] == wire.OptPad {
			packet = slices.Delete(packet, end, end+1)
			b = packet[end-2-int(b[1]):]
		}
	}
	return append(packet, make([]byte, max(0, minBOOTP-len(packet)))...)
}

// messageOf returns the message with the fields of r.
func messageOf(r *dhcpv4.DHCPv4) *Message {
	m := newMessage()
	m.xid, m.flags, m.sname, m.file = r.TransactionID, r.Flags, r.ServerHostName, r.BootFileName
	copy(m.mac[:], r.ClientHWAddr)
	m.ciaddr, m.yiaddr, m.siaddr, m.giaddr = addr(r.ClientIPAddr), addr(r.YourIPAddr), addr(r.ServerIPAddr), addr(r.GatewayIPAddr)
	for code, data := range r.Options {
		m.options.Set(code, data)
	}
	return m
}

func addr(ip []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

// RelayInfo returns the identifiers, the link selection and the server
// identifier in the value of option 82.
func RelayInfo(data []byte) (ids [3]string, link, server netip.Addr, warning string) {
	var c client
	link = c.readRelay(data)
	return [3]string{c.CircuitID, c.RemoteID, c.SubscriberID}, link, c.relayServerID, c.warning
}

// FirmwareOf returns the firmware of a vendor class and a value of option 93.
func FirmwareOf(class string, data []byte) pools.Firmware {
	return pools.FirmwareOf(class, Archs(class, data))
}

// Broadcast returns the broadcast address of a network.
func Broadcast(p netip.Prefix) netip.Addr { return broadcast(p) }

// Order returns the order in which options with these codes are sent to a client with
// this list.
func Order(codes, list []byte) []uint8 {
	m := newMessage()
	for _, code := range codes {
		m.options.Set(code, nil)
	}
	m.arrange(list)
	return m.order
}
