package lldp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"drover/pools"
)

const (
	etherType = 0x88cc
	maxFrame  = 1500
)

// Listener hears the announcements of switches, from [Listen] to Close. It keeps the last
// one of each network card. It is safe for concurrent use.
type Listener struct {
	names  map[int]string // of the network cards, by index
	socket *os.File
	ended  chan struct{}

	mu    sync.Mutex
	heard map[string]pools.Neighbour // by name of the network card
}

// Listen listens on the Ethernet cards that there are. Those that are down hear nothing until
// they are up.
func Listen() (*Listener, error) {
	cards, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list network cards: %w", err)
	}
	// SOCK_DGRAM: without the Ethernet header.
	protocol := binary.NativeEndian.Uint16([]byte{etherType >> 8, etherType & 0xff})
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(protocol))
	if err != nil {
		return nil, fmt.Errorf("packet socket: %w", err)
	}
	l := &Listener{names: map[int]string{}, socket: os.NewFile(uintptr(fd), "lldp"), ended: make(chan struct{}), heard: map[string]pools.Neighbour{}}
	for _, c := range cards {
		if c.Flags&net.FlagLoopback == 0 && len(c.HardwareAddr) == 6 && join(fd, c.Index) == nil {
			l.names[c.Index] = c.Name
		}
	}
	raw, err := l.socket.SyscallConn()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("packet socket: %w", err), l.socket.Close())
	}
	go l.run(raw)
	return l, nil
}

// join makes a network card receive the frames to the three groups of LLDP (table 7-1), which
// bridges do not forward.
func join(fd, index int) error {
	for _, last := range []byte{0x0e, 0x03, 0x00} {
		group := unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_MULTICAST, Alen: 6, Address: [8]byte{0x01, 0x80, 0xc2, 0, 0, last}}
		if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &group); err != nil {
			return err
		}
	}
	return nil
}

// run reads frames until the socket is closed.
func (l *Listener) run(raw syscall.RawConn) {
	defer close(l.ended)
	frame := make([]byte, maxFrame)
	for {
		var n int
		var from unix.Sockaddr
		var failed error
		err := raw.Read(func(fd uintptr) bool {
			n, from, failed = unix.Recvfrom(int(fd), frame, 0)
			return !errors.Is(failed, unix.EAGAIN)
		})
		if err == nil && !errors.Is(failed, unix.EINTR) && !errors.Is(failed, unix.ENETDOWN) {
			err = failed
		}
		if err != nil {
			return
		}
		if link, ok := from.(*unix.SockaddrLinklayer); ok && link.Pkttype != unix.PACKET_OUTGOING {
			l.keep(link.Ifindex, frame[:n])
		}
	}
}

// keep notes the announcement that a network card received.
func (l *Listener) keep(index int, pdu []byte) {
	name, known := l.names[index]
	n, ok := Parse(pdu)
	if !known || !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard[name] = n
}

// Heard returns the last announcement that each network card received, by its name.
func (l *Listener) Heard() map[string]pools.Neighbour {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.heard)
}

// Close ends the listening.
func (l *Listener) Close() error {
	err := l.socket.Close()
	<-l.ended
	return err
}
