package attack

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"drover/e2e/netns"
	"drover/pools"
)

// Packet is a UDP packet, whose source may be forged.
type Packet struct {
	From, To netip.AddrPort
	TTL      byte // 0: 64
	Payload  []byte
}

// bytes returns the IPv4 packet.
func (p Packet) bytes() []byte {
	return netns.Datagram(p.From, p.To, cmp.Or(p.TTL, 64), p.Payload)
}

// Raw sends packets with any source address by way of the host's routes, as a pod with
// CAP_NET_RAW can.
type Raw struct{ fd int }

// NewRaw opens a raw socket in a namespace.
func NewRaw(n netns.Namespace) (r Raw, err error) {
	err = n.Do(func() error {
		r.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW) // it implies IP_HDRINCL
		return err
	})
	return r, err
}

// Send sends a packet.
func (r Raw) Send(p Packet) error {
	return unix.Sendto(r.fd, p.bytes(), 0, &unix.SockaddrInet4{Addr: p.To.Addr().As4()})
}

// Close closes the socket.
func (r Raw) Close() error { return unix.Close(r.fd) }

// Wire sends and receives Ethernet frames on the interface eth0 of a host.
type Wire struct {
	fd    int
	index int
	mac   pools.MAC
}

// NewWire opens a packet socket on eth0 of a namespace.
func NewWire(n netns.Namespace) (w *Wire, err error) {
	w = new(Wire)
	err = n.Do(func() error {
		i, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		w.index = i.Index
		copy(w.mac[:], i.HardwareAddr)
		proto := binary.NativeEndian.Uint16([]byte{unix.ETH_P_IP >> 8, unix.ETH_P_IP & 0xff})
		if w.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(proto)); err != nil {
			return err
		}
		return unix.Bind(w.fd, &unix.SockaddrLinklayer{Protocol: proto, Ifindex: i.Index})
	})
	return w, err
}

// Send sends a packet in a frame to a MAC; the zero MAC is the broadcast address.
func (w *Wire) Send(to pools.MAC, p Packet) error {
	if to.IsZero() {
		to = pools.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	}
	frame := append(append(to[:], w.mac[:]...), unix.ETH_P_IP>>8, unix.ETH_P_IP&0xff)
	return w.sendFrame(append(frame, p.bytes()...))
}

// sendFrame sends a whole frame.
func (w *Wire) sendFrame(frame []byte) error {
	err := unix.Sendto(w.fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: w.index, Halen: 6})
	if errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.EAGAIN) {
		return nil // lost, as on any network
	}
	return err
}

// Received returns the UDP packets that have arrived since the last call.
func (w *Wire) Received() (packets []Packet) {
	var b [2048]byte
	for {
		n, _, err := unix.Recvfrom(w.fd, b[:], unix.MSG_DONTWAIT)
		if err != nil {
			return packets
		}
		if p, ok := parse(b[14:n]); ok {
			packets = append(packets, p)
		}
	}
}

// parse reads an IPv4 packet.
func parse(b []byte) (p Packet, ok bool) {
	if len(b) < 28 || b[9] != unix.IPPROTO_UDP {
		return p, false
	}
	head := int(b[0]&15) * 4
	if head < 20 || len(b) < head+8 {
		return p, false
	}
	udp := b[head:]
	from, to := netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:]))
	p.From = netip.AddrPortFrom(from, binary.BigEndian.Uint16(udp))
	p.To = netip.AddrPortFrom(to, binary.BigEndian.Uint16(udp[2:]))
	size := min(max(int(binary.BigEndian.Uint16(udp[4:])), 8), len(udp))
	p.Payload = append([]byte(nil), udp[8:size]...)
	return p, true
}

// Close closes the socket.
func (w *Wire) Close() error { return unix.Close(w.fd) }

// Size is the length of a packet with its IP and UDP headers, in bytes.
func (p Packet) Size() int { return 28 + len(p.Payload) }

// addrPort parses ADDRESS and adds a port.
func addrPort(address string, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(address), port)
}

// Plain sends UDP to a port of the server, from a socket that any program can open. With
// from = 0 the kernel chooses the source port.
func Plain(n netns.Namespace, from, to uint16, payload []byte) error {
	return n.Do(func() error {
		conn, err := net.DialUDP("udp4", &net.UDPAddr{Port: int(from)}, net.UDPAddrFromAddrPort(addrPort(ServerAddr, to)))
		if err != nil {
			return fmt.Errorf("from port %d: %w", from, err)
		}
		defer conn.Close()
		_, err = conn.Write(payload)
		return err
	})
}
