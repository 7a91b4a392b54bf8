package attack

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/e2e/dhcptest"
	"drover/e2e/netns"
	"drover/pools"
)

// Mixed floods the boot network with DHCP of many kinds, by broadcast and by unicast:
// REQUESTs and INFORMs of made-up machines, packets of made-up relay agents, and packets in
// the name of m2. All frames have the attacker's own MAC.
func Mixed(ctx context.Context, n netns.Namespace, rate int) (int, error) {
	w, err := NewWire(n)
	if err != nil {
		return 0, err
	}
	defer w.Close()
	server := dhcptest.ServerID(netip.MustParseAddr(ServerAddr))
	return pace(ctx, rate, func(i int) error {
		some := netip.AddrFrom4([4]byte{10, 77, 72, byte(rand.Uint32())})
		p := broadcast(nil)
		message := func(m pools.MAC, kind dhcpv4.MessageType, mods ...dhcpv4.Modifier) {
			d := dhcptest.Message(m, kind, mods...)
			binary.BigEndian.PutUint32(d.TransactionID[:], uint32(i))
			p.Payload = d.ToBytes()
		}
		to := pools.MAC{}
		switch i % 8 {
		case 0:
			message(randomMAC(), dhcpv4.MessageTypeRequest, dhcptest.Requested(some.String()))
		case 1:
			message(randomMAC(), dhcpv4.MessageTypeRequest, dhcptest.Requested(some.String()), server)
		case 2:
			message(MachineMAC, dhcpv4.MessageTypeRequest, dhcptest.Requested(some.String()))
		case 3:
			message(MachineMAC, dhcpv4.MessageTypeDecline, dhcptest.Requested(MachineIP), server)
		case 4: // a relay agent that nobody has
			message(randomMAC(), dhcpv4.MessageTypeDiscover, dhcptest.ROM, dhcptest.Giaddr(some.String()), func(d *dhcpv4.DHCPv4) { d.HopCount = 1 })
			p.From, p.To, to = netip.AddrPortFrom(some, 67), addrPort(ServerAddr, 67), ServerMAC
		case 5:
			message(randomMAC(), dhcpv4.MessageTypeRequest, dhcptest.Ciaddr(some.String()))
			p.From, p.To, to = netip.AddrPortFrom(some, 68), addrPort(ServerAddr, 67), ServerMAC
		case 6:
			message(randomMAC(), dhcpv4.MessageTypeInform, dhcptest.Ciaddr(some.String()))
			p.From = netip.AddrPortFrom(some, 68)
		default:
			message(MachineMAC, dhcpv4.MessageTypeRelease, dhcptest.Ciaddr(MachineIP), server)
			p.From, p.To, to = addrPort(MachineIP, 68), addrPort(ServerAddr, 67), ServerMAC
		}
		return w.Send(to, p)
	})
}

// Holders opens connections to port 80 from each of the addresses, and holds them. Every
// second one sends the begin of a request, the others nothing.
func Holders(ctx context.Context, n netns.Namespace, path string, connections int, from ...string) (int, error) {
	return connect(ctx, n, connections, from, func(i int, conn net.Conn) error {
		if i%2 == 0 {
			if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n", path); err != nil {
				return err
			}
		}
		_, err := io.Copy(io.Discard, conn)
		return err
	})
}

// SlowTFTP holds transfers from each of the addresses: it acknowledges one block of each,
// then one every two seconds.
func SlowTFTP(ctx context.Context, n netns.Namespace, transfers int, from ...string) (int, error) {
	return crowd(ctx, transfers*len(from), func(i int) error {
		conn, err := listenFrom(n, from[i%len(from)])
		if err != nil {
			return err
		}
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		defer conn.Close()
		if _, err := conn.WriteToUDPAddrPort(request("undionly.kpxe", "blksize", "512"), addrPort(ServerAddr, 69)); err != nil {
			return err
		}
		var b [600]byte
		for {
			if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
				return err
			}
			size, server, err := conn.ReadFromUDPAddrPort(b[:])
			if err != nil {
				return err
			}
			ack := []byte{0, 4, 0, 0}
			if size >= 4 && b[1] == 3 { // DATA
				copy(ack[2:], b[2:4])
				time.Sleep(2 * time.Second)
			}
			if _, err := conn.WriteToUDPAddrPort(ack, server); err != nil {
				return err
			}
		}
	})
}
