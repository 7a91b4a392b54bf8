package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/sys/unix"

	"drover/pools"
)

// relay is the relay agent of a rack. It passes what machines broadcast to all servers, and
// answers to their machines.
type relay struct {
	addr    netip.Addr
	servers []netip.AddrPort
	conn    *net.UDPConn
	done    sync.WaitGroup

	mu       sync.Mutex
	machines map[pools.MAC]chan<- *dhcpv4.DHCPv4 // that wait for an answer
}

const (
	dhcpPort    = 67
	relayBuffer = 16 << 20 // bytes: the answers to a whole rack at once
)

func openRelay(addr netip.Addr, servers ...netip.Addr) (*relay, error) {
	r := &relay{addr: addr, machines: map[pools.MAC]chan<- *dhcpv4.DHCPv4{}}
	for _, s := range servers {
		r.servers = append(r.servers, netip.AddrPortFrom(s, dhcpPort))
	}
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, dhcpPort)))
	if err != nil {
		return nil, fmt.Errorf("relay agent: %w", err)
	}
	raw, err := conn.SyscallConn()
	if err == nil {
		var failed error
		err = raw.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, relayBuffer)
		})
		err = errors.Join(err, failed)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("relay agent: %w", err), conn.Close())
	}
	r.conn = conn
	r.done.Go(r.receive)
	return r, nil
}

// receive passes answers on until the socket is closed.
func (r *relay) receive() {
	var b [2048]byte
	for {
		n, _, err := r.conn.ReadFromUDPAddrPort(b[:])
		if errors.Is(err, net.ErrClosed) {
			return
		}
		answer, perr := dhcpv4.FromBytes(b[:n])
		if err != nil || perr != nil || answer.OpCode != dhcpv4.OpcodeBootReply || len(answer.ClientHWAddr) != 6 {
			continue
		}
		r.mu.Lock()
		to := r.machines[pools.MAC(answer.ClientHWAddr)]
		r.mu.Unlock()
		select {
		case to <- answer: // never of nil
		default: // it does not listen, or has more than it can read
		}
	}
}

// listen returns the answers to a machine, until forget.
func (r *relay) listen(m pools.MAC) <-chan *dhcpv4.DHCPv4 {
	answers := make(chan *dhcpv4.DHCPv4, 8)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.machines[m] = answers
	return answers
}

func (r *relay) forget(m pools.MAC) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.machines, m)
}

// send passes a machine's message on. A lost one is no error.
func (r *relay) send(message *dhcpv4.DHCPv4) {
	message.GatewayIPAddr, message.HopCount = r.addr.AsSlice(), 1
	b := message.ToBytes()
	for _, i := range rand.Perm(len(r.servers)) { // each server is the first one of some machines
		_, _ = r.conn.WriteToUDPAddrPort(b, r.servers[i])
	}
}

func (r *relay) close() {
	_ = r.conn.Close()
	r.done.Wait()
}
