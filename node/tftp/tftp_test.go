package tftp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	pin "github.com/pin/tftp/v3"

	"drover/node/tftp"
)

// patience bounds the wait for what has to come.
const patience = 30 * time.Second

// server is a server of one file for one transfer at a time.
type server struct {
	content       []byte
	block, window int
	oack          string                                         // instead of its own; fields with NUL behind each
	mangle        func(n int, packet []byte) [][]byte            // packets to send for the n-th DATA packet; nil: itself
	foreign       func(conn *net.UDPConn, client netip.AddrPort) // called with a socket of another sender; may be nil

	requests chan string    // of each RRQ
	errors   chan string    // texts of ERROR packets
	conn     *net.UDPConn   // of the current transfer
	client   netip.AddrPort // likewise
	sent     int            // DATA packets
}

func listen(t testing.TB) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// serve runs the server, and returns its address.
func (s *server) serve(t testing.TB) string {
	t.Helper()
	s.requests, s.errors = make(chan string, 100), make(chan string, 100)
	l := listen(t)
	s.conn = listen(t)
	other := listen(t)
	go func() {
		b := make([]byte, 2000)
		for {
			n, client, err := l.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			s.requests <- string(b[:n])
			s.client = client
			if s.foreign != nil {
				s.foreign(other, client)
			}
			s.transfer()
		}
	}()
	return l.LocalAddr().String()
}

// transfer sends the file.
func (s *server) transfer() {
	oack := s.oack
	if oack == "" {
		oack = "tsize\x00" + strconv.Itoa(len(s.content)) + "\x00BLKSIZE\x00" + strconv.Itoa(s.block) + "\x00windowsize\x00" + strconv.Itoa(s.window) + "\x00"
	}
	last, acked := len(s.content)/s.block+1, -1
	b := make([]byte, 2000)
	for acked < last {
		if acked < 0 {
			s.send(append([]byte{0, 6}, oack...))
		}
		for n := acked + 1; n > 0 && n <= min(acked+s.window, last); n++ {
			packet := binary.BigEndian.AppendUint16([]byte{0, 3}, uint16(n))
			packet = append(packet, s.content[(n-1)*s.block:min(n*s.block, len(s.content))]...)
			s.sent++
			for _, p := range s.mangled(packet) {
				s.send(p)
			}
		}
		if err := s.conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
			return // the test has ended
		}
		n, _, err := s.conn.ReadFromUDPAddrPort(b)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // send again
		case n >= 4 && b[1] == 5:
			s.errors <- string(b[4:n])
			return
		case n == 4 && b[1] == 4:
			if at := acked + int(int16(binary.BigEndian.Uint16(b[2:])-uint16(acked))); at > acked {
				acked = at
			}
		}
	}
}

func (s *server) mangled(packet []byte) [][]byte {
	if s.mangle == nil {
		return [][]byte{packet}
	}
	return s.mangle(s.sent, packet)
}

func (s *server) send(b []byte) { _, _ = s.conn.WriteToUDPAddrPort(b, s.client) } // a lost packet is one more case

func content(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b) // never an error
	return b
}

// get reads a file.
func get(t testing.TB, addr string) ([]byte, error) {
	t.Helper()
	r, err := tftp.Open(t.Context(), addr, "images/x/root.squashfs", patience)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err == nil && r.Size != int64(len(b)) {
		t.Errorf("got size %d of %d bytes", r.Size, len(b))
	}
	return b, err
}

func TestRead(t *testing.T) {
	for _, tt := range []struct {
		name                string
		size, block, window int
	}{
		{"empty", 0, 1468, 32},
		{"one byte", 1, 1468, 32},
		{"less than a block", 1467, 1468, 32},
		{"a block", 1468, 1468, 32},
		{"a window", 32 * 1468, 1468, 32},
		{"more than a window", 32*1468 + 1, 1468, 32},
		{"without windows", 100_000, 1468, 1},
		{"small blocks", 100_000, 512, 7},
		{"numbers roll over", 150_000 * 8, 8, 32},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &server{content: content(tt.size), block: tt.block, window: tt.window}
			got, err := get(t, s.serve(t))
			if err != nil || !bytes.Equal(got, s.content) {
				t.Fatalf("got %d bytes, %v, want %d", len(got), err, tt.size)
			}
			if r := <-s.requests; r != "\x00\x01images/x/root.squashfs\x00octet\x00tsize\x000\x00blksize\x001468\x00windowsize\x0032\x00" {
				t.Errorf("got request %q", r)
			}
		})
	}
}

// A machine that has several addresses reads from one that the caller chooses.
func TestOpenFrom(t *testing.T) {
	from := make(chan netip.Addr, 10)
	s := &server{content: content(5000), block: 1468, window: 32}
	s.foreign = func(_ *net.UDPConn, client netip.AddrPort) { from <- client.Addr().Unmap() }
	local := netip.MustParseAddr("127.0.0.77")
	r, err := tftp.OpenFrom(t.Context(), &net.UDPAddr{IP: local.AsSlice()}, s.serve(t), "x", patience)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if b, err := io.ReadAll(r); err != nil || !bytes.Equal(b, s.content) {
		t.Errorf("got %d bytes, %v, want %d", len(b), err, len(s.content))
	}
	if got := <-from; got != local {
		t.Errorf("the request came from %s, want %s", got, local)
	}
}

// TestBadNetwork loses, repeats and reorders packets.
func TestBadNetwork(t *testing.T) {
	var held []byte
	for name, mangle := range map[string]func(n int, p []byte) [][]byte{
		"lost": func(n int, p []byte) [][]byte {
			if n%17 == 3 {
				return nil
			}
			return [][]byte{p}
		},
		"twice": func(_ int, p []byte) [][]byte { return [][]byte{p, p} },
		"swapped": func(n int, p []byte) [][]byte {
			if n%5 == 1 {
				held = p
				return nil
			}
			out := [][]byte{p}
			if held != nil {
				out, held = append(out, held), nil
			}
			return out
		},
		"late": func(n int, p []byte) [][]byte {
			out := [][]byte{p}
			switch n % 9 {
			case 1:
				held = p
			case 7:
				out = append(out, held)
			}
			return out
		},
		"cut and strange": func(n int, p []byte) [][]byte {
			return [][]byte{{}, {0}, {0, 3}, {0, 3, 1}, {0, 9, 0, 0}, {0, 6, 0, 0}, p}
		},
	} {
		t.Run(name, func(t *testing.T) {
			held = nil
			s := &server{content: content(200_000), block: 1468, window: 8, mangle: mangle}
			if got, err := get(t, s.serve(t)); err != nil || !bytes.Equal(got, s.content) {
				t.Fatalf("got %d bytes, %v, want %d", len(got), err, len(s.content))
			}
		})
	}
}

// Packets of others do not disturb a transfer.
func TestForeignPackets(t *testing.T) {
	s := &server{content: content(50_000), block: 1468, window: 8}
	var forger *net.UDPConn
	s.foreign = func(c *net.UDPConn, _ netip.AddrPort) { forger = c }
	s.mangle = func(n int, p []byte) [][]byte { // the client knows the server's port by now
		for _, b := range [][]byte{append([]byte{0, 3, 0, byte(n)}, "forged"...), {0, 5, 0, 1, 'x', 0}} {
			if _, err := forger.WriteToUDPAddrPort(b, s.client); err != nil {
				t.Error(err)
			}
		}
		return [][]byte{p}
	}
	if got, err := get(t, s.serve(t)); err != nil || !bytes.Equal(got, s.content) {
		t.Fatalf("got %d bytes, %v, want %d others", len(got), err, len(s.content))
	}
}

func TestBadServer(t *testing.T) {
	for _, tt := range []struct{ name, oack, want string }{
		{"no size", "blksize\x001468\x00", "does not say how long the file is"},
		{"a size below zero", "tsize\x00-1\x00", `tsize="-1"`},
		{"a size that is no number", "tsize\x00a\x1bb\x00", `tsize=`},
		{"a huge size", "tsize\x0099999999999999\x00", "want a number up to"},
		{"larger blocks", "tsize\x001\x00blksize\x0065464\x00", "want a number up to 1468"},
		{"blocks of nothing", "tsize\x001\x00blksize\x000\x00", "a block of 0 bytes"},
		{"a larger window", "tsize\x001\x00windowsize\x0064\x00", "want a number up to 32"},
		{"no window", "tsize\x001\x00windowsize\x000\x00", "a window of 0"},
		{"another option", "tsize\x001\x00multicast\x00x\x00", `not asked for: "multicast"`},
		{"a longer file", "tsize\x009\x00blksize\x001468\x00", "ended after 100 bytes, its size was to be 9"},
		{"a shorter file", "tsize\x00900\x00blksize\x001468\x00", "ended after 100 bytes, its size was to be 900"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &server{content: content(100), block: 1468, window: 1, oack: tt.oack}
			if _, err := get(t, s.serve(t)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
}

// The library that drover does not use for its server is the other side here.
func TestAgainstPin(t *testing.T) {
	want := content(300_000)
	s := pin.NewServer(func(name string, rf io.ReaderFrom) error {
		if name != "images/x/root.squashfs" {
			return errors.New("not here \x1b[31m")
		}
		rf.(pin.OutgoingTransfer).SetSize(int64(len(want)))
		_, err := rf.ReadFrom(bytes.NewReader(want))
		return err
	}, nil)
	l := listen(t)
	go func() { _ = s.Serve(l) }() // ends with the socket
	t.Cleanup(s.Shutdown)
	addr := l.LocalAddr().String()
	if got, err := get(t, addr); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("got %d bytes, %v", len(got), err)
	}
	_, err := tftp.Open(t.Context(), addr, "other", patience)
	if err == nil || err.Error() != "server answers error 1: not here ?[31m" {
		t.Errorf("got error %v, want that of the server", err)
	}
}

func TestSilence(t *testing.T) {
	l := listen(t)
	_, err := tftp.Open(t.Context(), l.LocalAddr().String(), "x", 10*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "nothing came for 10ms") {
		t.Errorf("got error %v, want that nothing came", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(errors.New("the boot ends")) })
	if _, err = tftp.Open(ctx, l.LocalAddr().String(), "x", patience); err == nil || err.Error() != "the boot ends" {
		t.Errorf("got error %v, want the cause of the end", err)
	}
}

// A request whose answer is lost is sent again.
func TestRequestAgain(t *testing.T) {
	l := listen(t)
	seen := make(chan []byte, 2)
	go func() {
		for range 2 {
			b := make([]byte, 2000)
			n, _, err := l.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			seen <- b[:n]
		}
		l.Close()
	}()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := tftp.Open(ctx, l.LocalAddr().String(), "x", patience)
		done <- err
	}()
	if first, second := <-seen, <-seen; !bytes.Equal(first, second) {
		t.Errorf("got %q, then %q, want the same request", first, second)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want that of the context", err)
	}
}

// A client that stops tells the server.
func TestClose(t *testing.T) {
	s := &server{content: content(500_000), block: 1468, window: 8}
	r, err := tftp.Open(t.Context(), s.serve(t), "x", patience)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 10_000)); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case text := <-s.errors:
		if text != "stopped\x00" {
			t.Errorf("got error %q", text)
		}
	case <-time.After(patience):
		t.Error("the server did not get an ERROR")
	}
}

func FuzzOptions(f *testing.F) {
	f.Add([]byte("tsize\x00100\x00blksize\x001468\x00windowsize\x0032\x00"))
	f.Add([]byte("TSIZE\x00-1\x00"))
	f.Add([]byte("tsize\x00tsize\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		size, block, window, err := tftp.ReadOptions(body)
		if err == nil && (size < 0 || block < 8 || block > 1468 || window < 1 || window > 32) {
			t.Errorf("%q: got size %d, block %d, window %d", body, size, block, window)
		}
	})
}
