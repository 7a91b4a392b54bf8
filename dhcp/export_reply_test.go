package dhcp

import (
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// Wait is what the shell does before the reply leaves.
func (x *Exchange) Wait() error {
	if x.wait == nil {
		return nil
	}
	return x.wait()
}

// Fresh tells whether the shell would probe the address.
func (x *Exchange) Fresh() bool { return x.fresh }

// Fit makes a reply fit, see fit.
func Fit(r *dhcpv4.DHCPv4, limit int) (*dhcpv4.DHCPv4, []uint8) {
	m := messageOf(r)
	left := fit(m, limit)
	return m.dhcpv4(), left
}

// Wire is what is sent of a reply.
func Wire(r *dhcpv4.DHCPv4) []byte { return messageOf(r).append(nil) }

// Frame is all the work for one packet, but for the system calls.
func (s *Server) Frame(b []byte, now time.Time, src netip.AddrPort) []byte {
	m, _ := s.handle(b, now)
	if m == nil {
		return nil
	}
	d := destinationOf(m)
	return frame(d.mac, d.mac, src, d.addr, m.append(nil))
}

// messageOf is what [message.dhcpv4] was made from.
func messageOf(r *dhcpv4.DHCPv4) *message {
	m := newMessage()
	m.xid, m.flags, m.sname, m.file = r.TransactionID, r.Flags, r.ServerHostName, r.BootFileName
	copy(m.mac[:], r.ClientHWAddr)
	m.ciaddr, m.yiaddr, m.siaddr, m.giaddr = addr(r.ClientIPAddr), addr(r.YourIPAddr), addr(r.ServerIPAddr), addr(r.GatewayIPAddr)
	for code, data := range r.Options {
		m.set(code, data)
	}
	return m
}

// RelayInfo reads option 82.
func RelayInfo(data []byte) (ids [3]string, link, server netip.Addr, err error) {
	r, err := newRelayInfo(data)
	return [3]string{r.circuitID, r.remoteID, r.subscriberID}, r.link, r.serverID, err
}
