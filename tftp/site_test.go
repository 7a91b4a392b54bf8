package tftp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	pin "github.com/pin/tftp/v3"

	"drover/tftp"
)

// site is a served directory, with the reported transfers.
type site struct {
	*tftp.Server
	t         *testing.T
	dir       string
	addr      string
	transfers chan tftp.Transfer
	logged    chan string // each line of the log
	stop      func() error
}

// content is the file "loader": more than a million bytes, not a whole number
// of blocks.
func content() []byte {
	b := make([]byte, 1<<20+100)
	src := rand.NewChaCha8([32]byte{1})
	src.Read(b)
	return b
}

func newSite(t *testing.T, set func(*tftp.Server)) *site {
	t.Helper()
	return startSite(t, (*tftp.Server).Listen, set)
}

// startSite makes a site whose sockets listen opens.
func startSite(t *testing.T, listen func(*tftp.Server) error, set func(*tftp.Server)) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), transfers: make(chan tftp.Transfer, 100), logged: make(chan string, 100)}
	s.write("loader", content())
	s.write("small", []byte("small"))
	s.write("empty", nil)
	s.write("sub/whole", bytes.Repeat([]byte("x"), 512)) // ends with an empty block
	s.Server = &tftp.Server{
		Dir: s.dir, Addr: "127.0.0.1:0", OnTransfer: func(x tftp.Transfer) { s.transfers <- x },
		Log: slog.New(slog.NewTextHandler(lines(s.logged), &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if set != nil {
		set(s.Server)
	}
	if err := listen(s.Server); err != nil {
		t.Fatal(err)
	}
	s.addr = s.LocalAddr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	s.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return s
}

type lines chan string

func (l lines) Write(b []byte) (int, error) { l <- string(b); return len(b), nil }

func (s *site) write(name string, b []byte) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// next returns the next transfer that ended.
func (s *site) next() tftp.Transfer {
	s.t.Helper()
	return take(s.t, s.transfers)
}

func take[T any](t *testing.T, c chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(2 * time.Minute):
		t.Fatal("nothing happened for two minutes")
		panic("unreachable")
	}
}

// get fetches a file with the library's client.
func (s *site) get(name string, blockSize int) ([]byte, int64, error) {
	s.t.Helper()
	c, err := pin.NewClient(s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	c.RequestTSize(true)
	if blockSize > 0 {
		c.SetBlockSize(blockSize)
	}
	from, err := c.Receive(name, "octet")
	if err != nil {
		return nil, 0, err
	}
	size, _ := from.(pin.IncomingTransfer).Size()
	var b bytes.Buffer
	_, err = from.WriteTo(&b)
	return b.Bytes(), size, err
}

// rom speaks TFTP packet by packet.
type rom struct {
	t    *testing.T
	conn *net.UDPConn
	from net.Addr // where the server's last packet came from
}

// newROM makes a client with an address of its own, 127.0.0.n.
func newROM(t *testing.T, n int) *rom {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, byte(n))})
	if err != nil {
		t.Fatal(err)
	}
	return newROMOn(t, conn)
}

func newROMOn(t *testing.T, conn *net.UDPConn) *rom {
	t.Helper()
	r := &rom{t: t, conn: conn}
	t.Cleanup(func() {
		if r.from != nil { // or the server would go on sending for 6 seconds
			r.send(5, "\x00\x00bye\x00")
		}
		conn.Close()
	})
	return r
}

// ask asks to read.
func (r *rom) ask(addr string, fields ...string) {
	r.t.Helper()
	r.request(addr, 1, fields...)
}

func (r *rom) request(addr string, op uint16, fields ...string) {
	r.t.Helper()
	to, err := net.ResolveUDPAddr("udp4", addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.from = to
	r.send(op, strings.Join(fields, "\x00")+"\x00")
}

func (r *rom) send(op uint16, rest string) {
	r.t.Helper()
	if _, err := r.conn.WriteTo(append(binary.BigEndian.AppendUint16(nil, op), rest...), r.from); err != nil {
		r.t.Fatal(err)
	}
}

// read returns the kind and the rest of the next packet.
func (r *rom) read() (uint16, string) {
	r.t.Helper()
	r.conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	b := make([]byte, 70000)
	n, from, err := r.conn.ReadFrom(b)
	if err != nil {
		r.t.Fatal(err)
	}
	r.from = from
	return binary.BigEndian.Uint16(b), string(b[2:n])
}

// silent fails the test if there is a packet. What has ended cannot send any more.
func (r *rom) silent() {
	r.t.Helper()
	r.conn.SetReadDeadline(time.Now())
	b := make([]byte, 70000)
	if n, _, err := r.conn.ReadFrom(b); !errors.Is(err, os.ErrDeadlineExceeded) {
		r.t.Errorf("got packet %q, %v, want none", b[:n], err)
	}
}

// finish acknowledges blocks until the last, which is shorter than size. A
// block that comes again is acknowledged again.
func (r *rom) finish(size int) {
	r.t.Helper()
	for {
		op, rest := r.read()
		if op != 3 {
			r.t.Fatalf("got packet %d %q, want data", op, rest)
		}
		r.send(4, rest[:2])
		if len(rest) < 2+size {
			return
		}
	}
}

// fetched acknowledges the options and all blocks, and returns the file. It is false if a packet
// does not come within ten seconds, and fails the test after an error of the server.
func (r *rom) fetched(size int) (file string, ok bool) {
	var got strings.Builder
	b := make([]byte, 4+size)
	for next := uint16(1); ; {
		r.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, from, err := r.conn.ReadFrom(b)
		if err != nil {
			return "", false
		}
		switch r.from = from; binary.BigEndian.Uint16(b) {
		case 6:
			r.send(4, "\x00\x00")
		case 3:
			r.send(4, string(b[2:4]))
			if binary.BigEndian.Uint16(b[2:]) != next { // it came again
				continue
			}
			next++
			if got.Write(b[4:n]); n < len(b) {
				return got.String(), true
			}
		default:
			r.t.Errorf("got packet %q", b[:n])
			return "", false
		}
	}
}
