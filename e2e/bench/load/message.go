package load

import (
	"encoding/binary"
	"errors"
	"net/netip"
)

// Message types of option 53 (RFC 2132, section 9.6).
const (
	discover = 1
	offer    = 2
	request  = 3
	ack      = 5
	nak      = 6
)

// Offsets in a message (RFC 2131, section 2), and of the options that differ between the
// messages of this package.
const (
	atXID     = 4
	atYiaddr  = 16
	atGiaddr  = 24
	atChaddr  = 28
	atOptions = 240 // behind the magic cookie
)

// template is a message of the first machine, from which those of all others are made.
type template struct {
	bytes                      []byte
	clientID, wanted, serverID int // offsets of the values of options 61, 50 and 54; 0: absent
}

// firstMAC is the first MAC of perfdhcp.
const firstMAC = 0x000c01020304

// newTemplate makes a message as perfdhcp sends it: options 53, 50 and 54 in a
// REQUEST, 55 and 61. With ipxe it also has what iPXE tells of itself: 60, 93 and 77.
func newTemplate(kind byte, giaddr netip.Addr, ipxe bool) template {
	b := make([]byte, atOptions, 400)
	b[0], b[1], b[2], b[3] = 1, 1, 6, 1 // BOOTREQUEST, Ethernet, 6 bytes of address, 1 hop
	copy(b[atGiaddr:], giaddr.AsSlice())
	copy(b[236:], []byte{0x63, 0x82, 0x53, 0x63})
	var t template
	add := func(code byte, value ...byte) int {
		b = append(append(b, code, byte(len(value))), value...)
		return len(b) - len(value)
	}
	add(53, kind)
	if kind == request {
		t.wanted = add(50, 0, 0, 0, 0)
		t.serverID = add(54, 0, 0, 0, 0)
	}
	// Mask, broadcast address, time offset, router, domain, DNS, host name.
	add(55, 1, 28, 2, 3, 15, 6, 12)
	t.clientID = add(61, 1, 0, 0, 0, 0, 0, 0)
	if ipxe {
		add(60, []byte("PXEClient:Arch:00000:UNDI:002001")...)
		add(93, 0, 0)
		add(77, []byte("iPXE")...)
	}
	t.bytes = append(b, 255)
	return t
}

// put writes the message of a machine into b and returns its length.
func (t *template) put(b []byte, machine, xid uint32) int {
	n := copy(b, t.bytes)
	binary.BigEndian.PutUint32(b[atXID:], xid)
	var mac [8]byte
	binary.BigEndian.PutUint64(mac[:], firstMAC+uint64(machine))
	copy(b[atChaddr:], mac[2:])
	copy(b[t.clientID+1:], mac[2:])
	return n
}

// choose sets the fields of a REQUEST that come from an OFFER.
func (t *template) choose(b []byte, o reply) {
	copy(b[t.wanted:], o.address[:])
	copy(b[t.serverID:], o.server[:])
}

// reply has the needed fields of a server's message.
type reply struct {
	xid     uint32
	kind    byte
	address [4]byte // yiaddr
	server  [4]byte // option 54
}

var errNoReply = errors.New("not a DHCP reply")

// parse reads a server's message.
func parse(b []byte) (r reply, err error) {
	if len(b) < atOptions || b[0] != 2 {
		return r, errNoReply
	}
	r.xid = binary.BigEndian.Uint32(b[atXID:])
	copy(r.address[:], b[atYiaddr:])
	for o := b[atOptions:]; len(o) > 0 && o[0] != 255; {
		if o[0] == 0 { // pad
			o = o[1:]
			continue
		}
		if len(o) < 2 || len(o) < 2+int(o[1]) {
			return r, errNoReply
		}
		value := o[2 : 2+int(o[1])]
		switch {
		case o[0] == 53 && len(value) == 1:
			r.kind = value[0]
		case o[0] == 54 && len(value) == 4:
			copy(r.server[:], value)
		}
		o = o[2+len(value):]
	}
	if r.kind == 0 {
		return r, errNoReply
	}
	return r, nil
}
