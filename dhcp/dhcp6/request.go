package dhcp6

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv6"

	"drover/pools"
)

const (
	// MaxRequest is the size of the longest packet that is read, in bytes. Clients send
	// some 150, and each relay agent adds 60.
	MaxRequest = 4096

	maxRelays = 8   // HOP_COUNT_LIMIT of RFC 8415, section 7.6
	maxDUID   = 130 // RFC 8415, section 11.1
	minDUID   = 3
	maxIAs    = 8 // of one message; later ones are not answered

	relayHeader  = 34 // type, hop count, link address, peer address
	clientHeader = 4  // type, transaction
)

// Sender is the origin of a packet: what its frame and its headers say.
type Sender struct {
	MAC     pools.MAC  // source of the frame
	Addr    netip.Addr // source address, without a zone
	Port    uint16     // source port
	Unicast bool       // sent to an address of this host
	Relay   bool       // the frame is from a relay agent that was confirmed before
}

// Request is a message of a client. It refers to the bytes that Parse was given.
type Request struct {
	Type dhcpv6.MessageType // of the client's message; 0 if it has none
	MAC  pools.MAC          // of the machine, see the package comment
	From Sender

	transaction []byte
	options     options
	relays      [maxRelays]relay // the outermost first
	hops        int              // relays in use
	err         error
}

// relay is the message of a relay agent.
type relay struct {
	header  []byte
	options options
}

func (r *relay) link() netip.Addr { return address(r.header[2:]) }
func (r *relay) peer() netip.Addr { return address(r.header[18:]) }

// Parse reads a packet. It replaces all of r. A packet that is not DHCPv6 is reported by
// [Senders.Judge] and [Responder.Reply].
func (r *Request) Parse(packet []byte, from Sender) {
	*r = Request{From: from}
	if r.err = r.parse(packet); r.err == nil {
		r.MAC = r.machine()
	}
}

func (r *Request) parse(packet []byte) error {
	for len(packet) > 0 && dhcpv6.MessageType(packet[0]) == dhcpv6.MessageTypeRelayForward {
		switch {
		case r.hops == maxRelays:
			return errors.New("more than 8 relay agents")
		case len(packet) < relayHeader:
			return errors.New("the message of a relay agent is cut off")
		}
		at := relay{packet[:relayHeader], packet[relayHeader:]}
		if err := at.options.check(); err != nil {
			return err
		}
		r.relays[r.hops] = at
		r.hops++
		if packet = at.options.get(dhcpv6.OptionRelayMsg); packet == nil {
			return errors.New("the message of a relay agent has none of a client")
		}
	}
	if len(packet) < clientHeader {
		return errors.New("shorter than a header")
	}
	r.Type = dhcpv6.MessageType(packet[0])
	r.transaction, r.options = packet[1:clientHeader], packet[clientHeader:]
	if err := r.options.check(); err != nil {
		return err
	}
	if duid := r.duid(); duid != nil && (len(duid) < minDUID || len(duid) > maxDUID) {
		return errors.New("the client identifier has a length that no DUID has")
	}
	return nil
}

// duid returns the client identifier, or nil.
func (r *Request) duid() []byte { return r.options.get(dhcpv6.OptionClientID) }

// Relayed reports whether a relay agent sent the packet.
func (r *Request) Relayed() bool { return r.hops > 0 }

// Link returns the link address of the relay agent nearest to the client that has one. An
// agent in a switch may have none (RFC 6221).
func (r *Request) Link() netip.Addr {
	for i := r.hops - 1; i >= 0; i-- {
		if a := r.relays[i].link(); !a.IsUnspecified() {
			return a
		}
	}
	return netip.Addr{}
}

// Peers returns the addresses that the relay agents received the message from, that of the
// outermost agent first.
func (r *Request) Peers() []netip.Addr {
	all := make([]netip.Addr, r.hops)
	for i := range all {
		all[i] = r.relays[i].peer()
	}
	return all
}

// fromRelays returns the data of an option of the relay agent nearest to the client that
// sends it, or nil.
func (r *Request) fromRelays(code dhcpv6.OptionCode) []byte {
	for i := r.hops - 1; i >= 0; i-- {
		if data := r.relays[i].options.get(code); data != nil {
			return data
		}
	}
	return nil
}

// machine returns the MAC of the machine; zero if there is none.
func (r *Request) machine() pools.MAC {
	if !r.Relayed() {
		return r.From.MAC
	}
	if lla := r.fromRelays(dhcpv6.OptionClientLinkLayerAddr); len(lla) == 2+6 && binary.BigEndian.Uint16(lla) == ethernet {
		return pools.MAC(lla[2:])
	}
	if mac, ok := eui64(r.relays[r.hops-1].peer()); ok {
		return mac
	}
	return macOf(r.duid())
}

// ethernet is the hardware type of Ethernet.
const ethernet = 1

// eui64 returns the MAC in a link-local address of the form EUI-64 (RFC 4291, appendix A).
func eui64(a netip.Addr) (mac pools.MAC, ok bool) {
	if !a.Is6() || !a.IsLinkLocalUnicast() {
		return mac, false
	}
	b := a.As16()
	if !bytes.Equal(b[11:13], []byte{0xff, 0xfe}) {
		return mac, false
	}
	return pools.MAC{b[8] ^ 2, b[9], b[10], b[13], b[14], b[15]}, true
}

// macOf returns the MAC in a DUID. From a DUID without one it makes a MAC that no card
// has, by which the machine keeps its lease.
func macOf(duid []byte) (mac pools.MAC) {
	if len(duid) < minDUID {
		return mac
	}
	kind, hardware := binary.BigEndian.Uint16(duid), duid[2:]
	if len(hardware) >= 2 && binary.BigEndian.Uint16(hardware) == ethernet {
		switch {
		case kind == uint16(dhcpv6.DUID_LLT) && len(hardware) == 2+4+6:
			return pools.MAC(hardware[6:])
		case kind == uint16(dhcpv6.DUID_LL) && len(hardware) == 2+6:
			return pools.MAC(hardware[2:])
		}
	}
	sum := sha256.Sum256(duid)
	mac = pools.MAC(sum[:6])
	mac[0] = mac[0]&^0x0f | 0x0e // local, of a host, and not like those of virtual machines
	return mac
}

// Port returns the port that a packet came in at, as the relay agent nearest to the server
// that names one does (option 18), or nil. It is for limits: if the agent in front of a switch
// that relays names one, all clients of the switch share it.
func (r *Request) Port() []byte {
	for i := range r.relays[:r.hops] {
		if data := r.relays[i].options.get(dhcpv6.OptionInterfaceID); data != nil {
			return data
		}
	}
	return nil
}
