package dhcpd

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/net/bpf"

	"drover/dhcp"
	"drover/dhcp/shed"
	"drover/pools"
)

// ClientBurst is how many packets a client may send at once.
const ClientBurst = clientBurst

// MaxCommits is how many answers wait for the disk at most.
const MaxCommits = maxCommits

// Packet is one that Line pushes.
type Packet struct {
	Type  dhcpv4.MessageType
	Known bool
}

// Line pushes packets, numbered from 1, into a queue and then
// takes all. It returns those dropped and those taken, and how many waited.
func Line(length int, packets ...Packet) (dropped, taken []int, waited int) {
	var q queue
	q.open(length)
	for i, p := range packets {
		if r, _ := q.push(&request{packet: make([]byte, i+1), known: p.Known, Request: dhcp.Request{Type: p.Type}}); r != nil {
			dropped = append(dropped, len(r.packet))
		}
	}
	waited = q.depth()
	q.close()
	for r := q.take(); r != nil; r = q.take() {
		taken = append(taken, len(r.packet))
	}
	if q.depth() != 0 {
		panic("something is left")
	}
	return dropped, taken, waited
}

// Limiter returns the function that reports whether a packet of a client may be
// answered. sender is the MAC of the frame.
func Limiter(now time.Time) func(packet *dhcpv4.DHCPv4, sender pools.MAC, at time.Time) bool {
	l := newLimits(now)
	return func(packet *dhcpv4.DHCPv4, sender pools.MAC, at time.Time) bool {
		r := &request{sender: dhcp.Sender{MAC: sender}}
		r.Parse(packet.ToBytes())
		return l.allow(r, at)
	}
}

// PortBurst is how many packets may come from a port of a relay agent at once.
const PortBurst = portBurst

// FrameFilter is the filter of the socket for frames.
func FrameFilter(relays []pools.MAC) []bpf.Instruction {
	return frameFilter(relays, serverPort, bootPort)
}

// SocketFilter is the filter of UDP sockets.
func SocketFilter(relays []pools.MAC) []bpf.Instruction { return socketFilter(relays, shed.All/64) }

// ParseFrame returns the message in a frame, and who sent it to whom.
func ParseFrame(f []byte) (message []byte, mac pools.MAC, src, dst netip.AddrPort, ok bool) {
	r, ok := parseFrame(f)
	return r.message, r.mac, r.src, r.dst, ok
}

// Frame wraps a message.
func Frame(srcMAC, dstMAC net.HardwareAddr, src, dst netip.AddrPort, message []byte) []byte {
	return frame(srcMAC, dstMAC, src, dst, message)
}

// Attach gives a UDP socket the filter that lets a share of the DISCOVERs pass.
func Attach(c syscall.RawConn, passed uint32) error {
	return (&socket{raw: c}).filter(socketFilter(nil, passed))
}

// ReadShedding reads a socket as a server does, until ctx ends. It sheds with the first full
// batch of messages.
func ReadShedding(ctx context.Context, conn *net.UDPConn, set func(share uint32) error) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	s := new(Server)
	s.conn = &socket{conn: conn, raw: raw}
	in := newIntake(s.service(), s.conn)
	in.shedder.Set = set
	in.shedder.Overflow()
	for range shed.Backlog - 1 {
		in.shedder.Read(true)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })()
	in.run(ctx)
	return nil
}

// BatchLength is the number of messages that are read at a time.
const BatchLength = batchLength

// ForHost reports whether a frame of this type (packet(7)) that came by one interface is for
// the server on another.
func ForHost(kind byte, by, server int) bool {
	b := new(batch)
	binary.NativeEndian.PutUint32(b.names[0].Addr[:], uint32(by))
	b.names[0].Zero[2] = kind
	return b.forHost(0, server)
}
