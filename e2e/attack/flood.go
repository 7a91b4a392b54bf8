package attack

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/e2e/dhcptest"
	"drover/e2e/netns"
	"drover/pools"
)

// pace calls send at a rate for each second until ctx ends, and returns the number of
// calls. A sender that is late does not catch up more than 50 ms.
func pace(ctx context.Context, rate int, send func(i int) error) (sent int, err error) {
	return paceUntil(ctx.Done(), -1, rate, send)
}

// paceUntil is pace until done is closed, or until count calls were made; -1 means no limit.
func paceUntil(done <-chan struct{}, count, rate int, send func(i int) error) (sent int, err error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	due, last := 0.0, time.Now()
	for sent != count {
		select {
		case <-done:
			return sent, nil
		case now := <-tick.C:
			due += min(now.Sub(last).Seconds(), 0.05) * float64(rate)
			last = now
		}
		for ; due >= 1 && sent != count; due-- {
			if err := send(sent); err != nil {
				return sent, err
			}
			sent++
		}
	}
	return sent, nil
}

// randomMAC returns a made-up MAC.
func randomMAC() (m pools.MAC) {
	binary.BigEndian.PutUint32(m[2:], rand.Uint32())
	m[0], m[1] = 2, byte(rand.Uint32())
	return m
}

// broadcast returns a packet as a client without an address sends it.
func broadcast(payload []byte) Packet {
	return Packet{From: addrPort("0.0.0.0", 68), To: addrPort("255.255.255.255", 67), Payload: payload}
}

// Discovers floods the boot network with DISCOVERs of made-up machines, as their firmware
// would broadcast them.
func Discovers(ctx context.Context, n netns.Namespace, rate int) (int, error) {
	return discovers(ctx.Done(), n, -1, rate)
}

// SendDiscovers sends count DISCOVERs, as [Discovers] does.
func SendDiscovers(n netns.Namespace, count, rate int) (int, error) {
	return discovers(nil, n, count, rate)
}

func discovers(done <-chan struct{}, n netns.Namespace, count, rate int) (int, error) {
	w, err := NewWire(n)
	if err != nil {
		return 0, err
	}
	defer w.Close()
	message := dhcptest.Message(pools.MAC{2}, dhcpv4.MessageTypeDiscover, dhcptest.ROM).ToBytes()
	return paceUntil(done, count, rate, func(i int) error {
		m := randomMAC()
		binary.BigEndian.PutUint32(message[4:], uint32(i))
		copy(message[28:], m[:])
		copy(w.mac[:], m[:])
		return w.Send(pools.MAC{}, broadcast(message))
	})
}

// request is a TFTP read request with options, as name and value.
func request(name string, options ...string) []byte {
	return []byte("\x00\x01" + strings.Join(append([]string{name, "octet"}, options...), "\x00") + "\x00")
}

// Requests sends TFTP requests with long timeouts from the first 70 addresses of a network:
// 1024 at once, each from another address and port, then more at a rate. No host
// acknowledges what the server sends. Call [Silent] for the network before.
func Requests(ctx context.Context, n netns.Namespace, prefix netip.Prefix, rate int) (int, error) {
	r, err := NewRaw(n)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	payload := request("undionly.kpxe", "timeout", "30")
	send := func(i int) error {
		from := prefix.Addr().As4()
		from[3] += byte(1 + i%70)
		return r.Send(Packet{From: netip.AddrPortFrom(netip.AddrFrom4(from), uint16(2000+i/70%16)), To: addrPort(ServerAddr, 69), Payload: payload})
	}
	for i := range 1024 {
		if err := send(i); err != nil {
			return i, err
		}
	}
	sent, err := pace(ctx, rate, send)
	return 1024 + sent, err
}

// Silent gives a host all addresses of a network, and drops the host's ICMP errors, so that
// senders do not learn that its ports are closed.
func Silent(n netns.Namespace, prefix netip.Prefix) error {
	for _, args := range [][]string{
		{"ip", "route", "replace", "local", prefix.String(), "dev", "lo"},
		{"iptables", "-A", "OUTPUT", "-p", "icmp", "-j", "DROP"},
	} {
		if out, err := n.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

// SlowReaders opens many connections from each of the addresses, and reads a file over
// each at 90 kB a second. A connection that ends is opened again.
func SlowReaders(ctx context.Context, n netns.Namespace, path string, connections int, from ...string) (int, error) {
	return connect(ctx, n, connections, from, func(_ int, conn net.Conn) error {
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, ServerAddr); err != nil {
			return err
		}
		for {
			if _, err := io.CopyN(io.Discard, conn, 9<<10); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
}

// connect opens many connections to port 80 from each of the addresses, and calls use for
// each, with its number. A connection that ends is opened again.
func connect(ctx context.Context, n netns.Namespace, connections int, from []string, use func(i int, conn net.Conn) error) (int, error) {
	return crowd(ctx, connections*len(from), func(i int) error {
		conn, err := dialFrom(ctx, n, from[i%len(from)], ServerAddr+":80")
		if err != nil {
			return err
		}
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		defer conn.Close()
		return use(i, conn)
	})
}

// Idle opens connections to the API, asks for /healthz once on each, and then holds them.
// A connection that ends is opened again.
func Idle(ctx context.Context, n netns.Namespace, connections int) (int, error) {
	return crowd(ctx, connections, func(i int) error {
		conn, err := n.Dial(ctx, "tcp", "127.0.0.1:8443")
		if err != nil {
			return err
		}
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		defer conn.Close()
		switch i % 4 {
		case 0: // never a byte
		case 1: // never a whole header
			_, err = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: drover\r\nX-Slow: ")
		default:
			_, err = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: drover\r\n\r\n")
		}
		if err == nil {
			_, err = io.Copy(io.Discard, conn)
		}
		return err
	})
}

// crowd calls act n times at once, each again when it has ended, until ctx ends. It
// returns the number of calls.
func crowd(ctx context.Context, n int, act func(i int) error) (calls int, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for ctx.Err() == nil {
				_ = act(i) // the server may end it: then again
				mu.Lock()
				calls++
				mu.Unlock()
				select {
				case <-ctx.Done():
				case <-time.After(500 * time.Millisecond):
				}
			}
		})
	}
	all.Wait()
	return calls, nil
}

// dialFrom connects from an address of a namespace.
func dialFrom(ctx context.Context, n netns.Namespace, from, to string) (conn net.Conn, err error) {
	err = n.Do(func() error {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		d.Control = smallBuffer
		conn, err = d.DialContext(ctx, "tcp", to)
		return err
	})
	return conn, err
}

// listenFrom opens a UDP socket with an address of a namespace.
func listenFrom(n netns.Namespace, from string) (conn *net.UDPConn, err error) {
	err = n.Do(func() error {
		conn, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(from)})
		return err
	})
	return conn, err
}

// Health requests /healthz of the API until it is answered, for up to a minute.
func Health(ctx context.Context, n netns.Namespace) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return retry(ctx, func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:8443/healthz", http.NoBody)
		if err == nil {
			_, err = do(n, req)
		}
		return err
	})
}
