package tftp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"drover/e2e/fixture"
	"drover/tftp"
)

var (
	serverAt = netip.MustParseAddrPort("192.0.2.1:69")
	attacker = netip.MustParseAddrPort("192.0.2.66:1066")
	victim   = netip.MustParseAddrPort("192.0.2.9:2070")
	node     = netip.MustParseAddrPort("10.28.0.1:2070")
)

// forgery is a network without faults on which every address can be forged.
type forgery struct {
	t      *testing.T
	server *tftp.Server
	inject func(tftp.Packet)

	mu        sync.Mutex
	got       map[netip.Addr][]tftp.Packet // by receiver
	transfers []tftp.Transfer
}

// newForgery makes a server with the files "loader", of 1 MiB, and "small". Only 10.28/16
// is known, and
// of that 10.28.0/24 is booting. 198.51.100/24 is not served.
func newForgery(t *testing.T, set func(*tftp.Server)) *forgery {
	f := &forgery{t: t, got: map[netip.Addr][]tftp.Packet{}}
	f.server = &tftp.Server{
		Open: func(_ netip.Addr, name string) (tftp.File, error) {
			switch name {
			case "loader":
				return memory{bytes.NewReader(make([]byte, 1<<20))}, nil
			case "small":
				return memory{bytes.NewReader([]byte("small"))}, nil
			case "long":
				return nil, longError{}
			}
			return nil, fs.ErrNotExist
		},
		Serves:  func(a netip.Addr) bool { return !netip.MustParsePrefix("198.51.100.0/24").Contains(a) },
		Known:   func(a netip.Addr) bool { return netip.MustParsePrefix("10.28.0.0/16").Contains(a) },
		Booting: func(a netip.Addr) bool { return netip.MustParsePrefix("10.28.0.0/24").Contains(a) },
		OnTransfer: func(x tftp.Transfer) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.transfers = append(f.transfers, x)
		},
	}
	if set != nil {
		set(f.server)
	}
	f.inject = f.server.UseNetwork(1500, func(p tftp.Packet) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.got[p.To.Addr()] = append(f.got[p.To.Addr()], p)
	}, serverAt)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.server.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return f
}

// longError is an error with a long text for the client.
type longError struct{}

func (longError) Error() string      { return strings.Repeat("the text ", 30) }
func (longError) ClientText() string { return longError{}.Error() }
func (longError) Unwrap() error      { return fs.ErrPermission }

// send sends a packet in anyone's name and returns its size.
func (f *forgery) send(from, to netip.AddrPort, data string) int {
	f.inject(tftp.Packet{From: from, To: to, Data: []byte(data)})
	synctest.Wait()
	return len(data)
}

// packets returns the packets that an address has got.
func (f *forgery) packets(a netip.Addr) []tftp.Packet {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.got[a]
}

// last returns the newest packet to an address.
func (f *forgery) last(a netip.Addr) tftp.Packet {
	f.t.Helper()
	all := f.packets(a)
	if len(all) == 0 {
		f.t.Fatalf("%s got nothing", a)
	}
	return all[len(all)-1]
}

func readRequest(fields ...string) string { return "\x00\x01" + strings.Join(fields, "\x00") + "\x00" }

func ack(n int) string { return string(binary.BigEndian.AppendUint16([]byte{0, 4}, uint16(n))) }

// knownPorts has a real transfer of the attacker, and returns the ports that it shows.
func (f *forgery) knownPorts() []netip.AddrPort {
	ports := []netip.AddrPort{serverAt}
	for range 3 {
		if f.server.SinglePort {
			break
		}
		f.send(attacker, serverAt, readRequest("loader", "octet", "blksize", "1000"))
		learned := f.last(attacker.Addr()).From
		ports = append(ports, learned)
		f.send(attacker, learned, ack(0))
		f.send(attacker, learned, "\x00\x05\x00\x00bye\x00")
	}
	return ports
}

// TestNoAmplifier holds that a host gets at most three times the bytes that an attacker
// sends in its name, in whatever form: the attacker sees no answer, but knows the ports
// of its own transfers (finding H6).
func TestNoAmplifier(t *testing.T) {
	ackAll := func(f *forgery, step int) (sent int) {
		for n := 0; n <= 20*step; n += step {
			for _, port := range f.knownPorts() {
				sent += f.send(victim, port, ack(n))
			}
			time.Sleep(10 * time.Millisecond)
		}
		return sent
	}
	once := func(packet string, step int) func(*forgery) int {
		return func(f *forgery) int {
			sent := f.send(victim, serverAt, packet)
			if step > 0 {
				sent += ackAll(f, step)
			}
			return sent
		}
	}
	repeated := func(packet string, n int, every time.Duration) func(*forgery) int {
		return func(f *forgery) (sent int) {
			for range n {
				sent += f.send(victim, serverAt, packet)
				time.Sleep(every)
			}
			return sent
		}
	}
	manyPorts := func(names ...string) func(*forgery) int {
		return func(f *forgery) (sent int) {
			for i := range 200 {
				from := netip.AddrPortFrom(victim.Addr(), uint16(3000+i))
				sent += f.send(from, serverAt, readRequest(names[i%len(names)], "octet", "tsize", "0", "blksize", "1468", "windowsize", "64"))
			}
			return sent
		}
	}
	for name, form := range map[string]func(*forgery) int{
		"options, never acknowledged":   once(readRequest("loader", "octet", "tsize", "0", "blksize", "1468"), 0),
		"the longest timeout":           once(readRequest("loader", "octet", "timeout", "30", "blksize", "1468"), 0),
		"windows":                       once(readRequest("loader", "octet", "blksize", "1468", "windowsize", "64"), 64),
		"windows of small blocks":       once(readRequest("loader", "octet", "blksize", "8", "windowsize", "64"), 64),
		"blocks as large as there are":  once(readRequest("loader", "octet", "blksize", "65464"), 1),
		"block by block":                once(readRequest("loader", "octet", "blksize", "1468"), 1),
		"options, each block of many":   once(readRequest("loader", "octet", "blksize", "512"), 1),
		"no options":                    once(readRequest("loader", "octet"), 1),
		"no option that is known":       once(readRequest("loader", "octet", "multicast", ""), 1),
		"a file that fits the credit":   once(readRequest("small", "octet"), 1),
		"no options, again and again":   repeated(readRequest("loader", "octet"), 100, 100*time.Millisecond),
		"no options, every two seconds": repeated(readRequest("loader", "octet"), 100, 2*time.Second),
		"options, again and again":      repeated(readRequest("loader", "octet", "blksize", "1468", "windowsize", "64"), 100, 100*time.Millisecond),
		"a missing file":                repeated(readRequest("x", "octet"), 10, time.Second),
		"a long error":                  repeated(readRequest("long", "octet"), 10, time.Second),
		"a long error, with options":    repeated(readRequest("long", "octet", "blksize", "1468"), 10, time.Second),
		"to write":                      repeated("\x00\x02x\x00octet\x00", 10, time.Second),
		"another mode":                  repeated(readRequest("x", "m"), 10, time.Second),
		"a bad option":                  repeated(readRequest("loader", "octet", "blksize", "x"), 10, time.Second),
		"a bad name":                    repeated(readRequest("../x", "octet"), 10, time.Second),
		"no request":                    repeated("\x00\x03\x00\x01", 10, time.Second),
		"many transfers":                manyPorts("loader"),
		"many files":                    manyPorts("loader", "small", "missing", "long"),
	} {
		t.Run(name, func(t *testing.T) {
			for _, single := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					f := newForgery(t, func(s *tftp.Server) { s.SinglePort = single })
					sent := form(f)
					time.Sleep(10 * time.Minute)
					got, packets := 0, f.packets(victim.Addr())
					for _, p := range packets {
						got += len(p.Data)
					}
					if got > 3*sent {
						t.Errorf("single port %t: %d bytes in the name of a host became %d bytes in %d packets to it", single, sent, got, len(packets))
					}
				})
			}
		})
	}
}

// TestPlainRequestOfBootingMachine holds that a booting machine without options gets its
// first block at once, but one in a second at most, whoever asks.
func TestPlainRequestOfBootingMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForgery(t, nil)
		f.send(node, serverAt, readRequest("loader", "octet"))
		if p := f.last(node.Addr()); p.Data[1] != 3 || len(p.Data) != 516 {
			t.Fatalf("got %q, want a block", p.Data)
		}
		for i := range 1000 {
			f.send(netip.AddrPortFrom(node.Addr(), uint16(3000+i%50)), serverAt, readRequest("loader", "octet"))
			time.Sleep(10 * time.Millisecond)
		}
		got := 0
		for _, p := range f.packets(node.Addr()) {
			got += len(p.Data)
		}
		if got > 3*1001*len(readRequest("loader", "octet"))+30*516 {
			t.Errorf("got %d bytes in ten seconds", got)
		}
	})
}

// TestPlainRequestOfUnknownMachine holds that a client without options is served, once it
// has repeated its request.
func TestPlainRequestOfUnknownMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForgery(t, nil)
		for n := 1; len(f.packets(victim.Addr())) == 0; n++ {
			if n > 14 {
				t.Fatal("no answer to 14 requests")
			}
			f.send(victim, serverAt, readRequest("loader", "octet"))
			time.Sleep(time.Second)
		}
		p := f.last(victim.Addr())
		f.send(victim, p.From, ack(1))
		if p := f.last(victim.Addr()); p.Data[3] != 2 {
			t.Errorf("got %q, want the second block", p.Data[:4])
		}
	})
}

// TestNetworkThatIsNotServed holds that a client outside the served networks gets
// nothing, not even an error (finding H6, and "TFTP answers all networks").
func TestNetworkThatIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForgery(t, nil)
		foreign := netip.MustParseAddrPort("198.51.100.7:2070")
		for _, packet := range []string{
			readRequest("loader", "octet"), readRequest("loader", "octet", "blksize", "1468"), readRequest("missing", "octet"), readRequest("long", "octet"),
			"\x00\x02x\x00octet\x00", readRequest("loader", "mail"), ack(0), "\x00\x05\x00\x00x\x00", "", "\x00\x01",
		} {
			f.send(foreign, serverAt, packet)
		}
		time.Sleep(10 * time.Minute)
		if got := f.packets(foreign.Addr()); len(got) > 0 {
			t.Errorf("got %d packets, the first is %q", len(got), got[0].Data)
		}
		if len(f.transfers) > 0 {
			t.Errorf("got transfers %+v", f.transfers)
		}
	})
}

// TestSinglePortHasNoWindows holds that a server with one port, whose ACKs prove nothing,
// serves booting machines only, a block for each ACK (finding H6).
func TestSinglePortHasNoWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForgery(t, func(s *tftp.Server) { s.SinglePort = true })
		running := netip.MustParseAddrPort("10.28.1.1:2070") // known, but not booting
		for client, want := range map[netip.AddrPort]string{
			victim: "\x00\x02not booting\x00", running: "\x00\x02not booting\x00", node: "blksize\x001468\x00windowsize\x001\x00",
		} {
			f.send(client, serverAt, readRequest("loader", "octet", "blksize", "1468", "windowsize", "64"))
			if p := f.last(client.Addr()); string(p.Data[2:]) != want || p.From != serverAt {
				t.Errorf("%s: got %q from %s, want %q", client, p.Data, p.From, want)
			}
		}
	})
}

// TestForgedRestart holds that a request in the name of a client, from the very port of
// its transfer, does not end the transfer.
func TestForgedRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForgery(t, nil)
		f.fetches(node, "loader")
		port := f.last(node.Addr()).From
		for i := range 10 {
			f.send(node, serverAt, readRequest("small", "octet", "tsize", fmt.Sprint(i)))
		}
		time.Sleep(100 * time.Millisecond)
		f.send(node, port, ack(1))
		if p := f.last(node.Addr()); p.From != port || p.Data[1] != 3 || p.Data[3] != 2 {
			t.Errorf("got %q from %s, want the second block from %s", p.Data[:4], p.From, port)
		}
	})
}

// TestClosedPort holds that a transfer ends when the client's host answers that the port
// is closed (finding H6).
func TestClosedPort(t *testing.T) {
	for _, single := range []bool{false, true} {
		s := newSite(t, func(s *tftp.Server) { s.SinglePort = single })
		r := newROM(t, 7)
		r.ask(s.addr, "loader", "octet", "blksize", "1000")
		if op, _ := r.read(); op != 6 {
			t.Fatalf("got packet %d, want the options", op)
		}
		r.conn.Close()
		r.from = nil
		if x := s.next(); x.Err == nil || !strings.Contains(x.Err.Error(), "closed its port") {
			t.Errorf("got transfer %+v", x)
		}
	}
}

// TestWrongPort: a packet from another port than the client's does not disturb a transfer.
// The kernel, which knows the client of each port, answers that the port is closed. Case
// W10.
func TestWrongPort(t *testing.T) {
	s := newSite(t, nil)
	r := newROM(t, 1)
	r.ask(s.addr, "small", "octet", "blksize", "1000")
	r.read()
	for _, packet := range []string{ack(0), ack(1), "\x00\x05\x00\x00bye\x00", "\x00\x03\x00\x01data"} {
		conn, err := net.DialUDP("udp4", nil, r.from.(*net.UDPAddr))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte(packet)); err != nil {
			t.Fatal(err)
		}
		conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
		if n, err := conn.Read(make([]byte, 100)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%q: got %d bytes, %v, want that the port is closed", packet, n, err)
		}
	}
	r.send(4, "\x00\x00")
	r.finish(1000)
	if x := s.next(); x.Err != nil || x.Resent > 0 {
		t.Errorf("got transfer %+v", x)
	}
}

// TestThousandClients: a thousand machines that are switched on at once all get their
// files.
func TestThousandClients(t *testing.T) {
	s := newSite(t, func(s *tftp.Server) { s.Log = nil })
	want := content()[:50_000]
	s.write("rom", want)
	var all sync.WaitGroup
	for i := range 1000 {
		conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 1, byte(i>>8), byte(i))})
		if err != nil {
			t.Fatal(err)
		}
		r := newROMOn(t, conn)
		all.Go(func() {
			for range 10 { // on a busy host packets are lost, and a client is late; a ROM asks again
				r.ask(s.addr, "rom", "octet", "blksize", "1468")
				if got, ok := r.fetched(1468); ok {
					if got != string(want) {
						t.Errorf("machine %d got %d bytes that are not the file's", i, len(got))
					}
					return
				}
			}
			t.Errorf("machine %d got no file", i)
		})
	}
	done := make(chan bool)
	go func() { all.Wait(); close(done) }()
	for {
		select {
		case x := <-s.transfers:
			if x.Err != nil && !strings.Contains(x.Err.Error(), "client does not answer") && !strings.Contains(x.Err.Error(), "client began anew") {
				t.Errorf("got transfer %+v", x)
			}
		case <-done:
			return
		}
	}
}

// TestPortsOfTransfers holds that nobody can guess the port of a transfer from those of
// others: each has one of its own (finding H6).
func TestPortsOfTransfers(t *testing.T) {
	s := newSite(t, func(s *tftp.Server) { s.MaxPerClient = 100 })
	seen := map[string]bool{}
	for range 50 {
		r := newROM(t, 1)
		r.ask(s.addr, "loader", "octet", "blksize", "1000")
		r.read()
		seen[r.from.String()] = true
	}
	if len(seen) < 40 {
		t.Errorf("50 transfers had %d ports", len(seen))
	}
}

// TestLogOfFlood holds that forged requests do not fill the disk with log lines (finding
// M2).
func TestLogOfFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log fixture.Log
		f := newForgery(t, func(s *tftp.Server) { s.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		for i := range 5000 {
			f.send(netip.AddrPortFrom(netip.AddrFrom4([4]byte{172, 16, byte(i >> 8), byte(i)}), 2070), serverAt, readRequest("missing", "octet"))
			f.send(netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}), 2070), serverAt, readRequest("loader", "octet"))
			f.send(victim, serverAt, "rubbish")
		}
		time.Sleep(time.Minute)
		text := log.String()
		if n := strings.Count(text, "\n"); n > 100 {
			t.Errorf("got %d lines", n)
		}
		for _, want := range []string{"no answer to a network that is not served", "lines of one kind were left out"} {
			if !strings.Contains(text, want) {
				t.Errorf("got no line with %q in\n%s", want, text)
			}
		}
	})
}
