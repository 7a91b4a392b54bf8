package tftp_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	pin "github.com/pin/tftp/v3"

	"drover/e2e/fixture"
	"drover/tftp"
)

func TestGet(t *testing.T) {
	s := newSite(t, nil)
	for _, tt := range []struct {
		name, file, as string
		block          int
		want           []byte
	}{
		{"a loader", "loader", "loader", 1468, content()},
		{"in small blocks", "loader", "loader", 0, content()},
		{"in blocks as large as there are", "loader", "loader", 65464, content()},
		{"one that fits a block", "small", "small", 1468, []byte("small")},
		{"one that fills its blocks", "/sub/whole", "sub/whole", 0, bytes.Repeat([]byte("x"), 512)},
		{"an empty one", "empty", "empty", 1468, nil},
		{"the way Windows writes it", `\sub\whole`, "sub/whole", 0, bytes.Repeat([]byte("x"), 512)},
		{"the way shim writes it", "//small", "small", 512, []byte("small")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, size, err := s.get(tt.file, tt.block)
			if err != nil || !bytes.Equal(got, tt.want) {
				t.Fatalf("got %d bytes, %v, want %d", len(got), err, len(tt.want))
			}
			if size != int64(len(tt.want)) {
				t.Errorf("got size %d, want %d", size, len(tt.want))
			}
			x := s.next()
			if x.File != tt.as || x.Bytes != size || x.Err != nil || x.Took <= 0 || x.Client.String() != "127.0.0.1" {
				t.Errorf("got transfer %+v", x)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	s := newSite(t, nil)
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, link := range [][2]string{{outside, "out"}, {filepath.Dir(outside), "outdir"}, {"../../etc/passwd", "up"}} {
		if err := os.Symlink(link[0], filepath.Join(s.dir, link[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(s.dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, file string
		log        string // in the line that the operator sees
		missing    bool
	}{
		{"one that is not there", "snponly.efi", "no such loader: see drover loaders", true},
		{"a directory", "sub", "no such loader: see drover loaders", true},
		{"a pipe", "pipe", "no such loader: see drover loaders", true},
		{"the parent", "../" + filepath.Base(outside), "climbs out", false},
		{"an absolute path", outside, "no such loader: see drover loaders", true},
		{"a link out", "out", "escapes", false},
		{"a link to a directory out", "outdir/secret", "escapes", false},
		{"a link up", "up", "escapes", false},
		{"no name", "/", "no file name", false},
		{"a long name", strings.Repeat("x", 300), "300 bytes", false},
		{"a line of our log", "x\nlevel=ERROR", "not text", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, _, err := s.get(tt.file, 1468)
			if err == nil {
				t.Fatalf("got %q", b)
			}
			if strings.Contains(err.Error(), s.dir) || strings.Contains(err.Error(), "escapes") {
				t.Errorf("the client is told too much: %v", err)
			}
			line := take(t, s.logged)
			if !strings.Contains(line, tt.log) || !strings.Contains(line, "level=WARN") || strings.Count(line, "\n") != 1 {
				t.Errorf("got log %s, want one line with %q", line, tt.log)
			}
			if x := s.next(); x.Err == nil || errors.Is(x.Err, fs.ErrNotExist) != tt.missing || x.Bytes != 0 {
				t.Errorf("got transfer %+v", x)
			}
		})
	}
}

func TestReadOnly(t *testing.T) {
	s := newSite(t, nil)
	c, err := pin.NewClient(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	to, err := c.Send("new", "octet")
	if err == nil {
		_, err = to.ReadFrom(strings.NewReader("content"))
	}
	if err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("got error %v, want one that says read-only", err)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file was written: %v", err)
	}
	if x := s.next(); x.File != "new" || x.Err == nil {
		t.Errorf("got transfer %+v", x)
	}
}

func TestMissingDirectory(t *testing.T) {
	s := newSite(t, func(s *tftp.Server) { s.Dir = filepath.Join(s.Dir, "later") })
	if _, _, err := s.get("loader", 0); err == nil {
		t.Fatal("got a file out of nowhere")
	}
	if x := s.next(); !errors.Is(x.Err, fs.ErrNotExist) {
		t.Errorf("got transfer %+v", x)
	}
	s.write("later/loader", []byte("here"))
	if b, _, err := s.get("loader", 0); err != nil || string(b) != "here" {
		t.Errorf("got %q, %v, want the file that came later", b, err)
	}
}

func TestSizeProbe(t *testing.T) {
	s := newSite(t, nil)
	for _, code := range []string{"\x00\x08", "\x00\x00"} {
		r := newROM(t, 1)
		r.ask(s.addr, "loader", "octet", "tsize", "0", "blksize", "1468", "windowsize", "4")
		op, options := r.read()
		if op != 6 || !strings.Contains(options, fmt.Sprintf("tsize\x00%d\x00", len(content()))) ||
			!strings.Contains(options, "blksize\x001468\x00windowsize\x004\x00") {
			t.Fatalf("got packet %d %q, want the options", op, options)
		}
		r.send(5, code+"User aborted the transfer\x00")
		if line := take(t, s.logged); !strings.Contains(line, "level=DEBUG") || !strings.Contains(line, "size asked") {
			t.Errorf("got log %s", line)
		}
	}
	if _, _, err := s.get("small", 0); err != nil {
		t.Fatal(err)
	}
	if x := s.next(); x.File != "small" {
		t.Errorf("a probe was told of: %+v", x)
	}
}

// TestOptionsRefusedByClient: a client that ends the transfer because of the
// options, and did not ask for the size, has failed.
func TestOptionsRefusedByClient(t *testing.T) {
	s := newSite(t, nil)
	r := newROM(t, 1)
	r.ask(s.addr, "loader", "octet", "blksize", "1468")
	if op, _ := r.read(); op != 6 {
		t.Fatalf("got packet %d, want the options", op)
	}
	r.send(5, "\x00\x08no\x00")
	if x := s.next(); x.Err == nil || x.Err.Error() != `client stopped with error 8 "no"` {
		t.Errorf("got transfer %+v, want it to fail", x)
	}
}

func TestClientGoesAway(t *testing.T) {
	s := newSite(t, nil)
	r := newROM(t, 1)
	r.ask(s.addr, "loader", "octet")
	if op, _ := r.read(); op != 3 {
		t.Fatalf("got packet %d, want data", op)
	}
	r.send(5, "\x00\x00gone\x00")
	if x := s.next(); x.Err == nil || !strings.Contains(x.Err.Error(), "gone") {
		t.Errorf("got transfer %+v, want it to fail", x)
	}
}

func TestRubbish(t *testing.T) {
	s := newSite(t, nil)
	r := newROM(t, 1)
	to, err := net.ResolveUDPAddr("udp4", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []string{"", "\x00", "\x00\x01", "\x00\x01loader", "\x00\x04\x00\x01", "\x00\x09xxxx", strings.Repeat("\xff", 2000)} {
		if _, err := r.conn.WriteTo([]byte(b), to); err != nil {
			t.Fatal(err)
		}
		if line := take(t, s.logged); !strings.Contains(line, "level=DEBUG") || !strings.Contains(line, "dropped") {
			t.Errorf("%q: got log %s", b, line)
		}
	}
	if _, _, err := s.get("small", 0); err != nil {
		t.Errorf("the server did not survive: %v", err)
	}
}

func TestLimits(t *testing.T) {
	s := newSite(t, func(s *tftp.Server) { s.MaxTransfers, s.MaxPerClient = 3, 2 })
	begin := func(client int) *rom {
		r := newROM(t, client)
		r.ask(s.addr, "loader", "octet", "blksize", "1000")
		return r
	}
	served := func(r *rom) {
		t.Helper()
		if op, rest := r.read(); op != 6 {
			t.Fatalf("got packet %d %q, want the options", op, rest)
		}
		r.send(4, "\x00\x00")
		if op, rest := r.read(); op != 3 {
			t.Fatalf("got packet %d %q, want data", op, rest)
		}
	}
	first := begin(1)
	served(first)
	served(begin(1))
	// Firmware asks again when it gets no answer, but gives up after an error.
	third := begin(1)
	if x := s.next(); x.Err == nil || !strings.Contains(x.Err.Error(), "too many transfers: 2 of this client") {
		t.Errorf("got transfer %+v", x)
	}
	third.silent()
	served(begin(2))
	last := begin(3)
	if x := s.next(); x.Err == nil || !strings.Contains(x.Err.Error(), "too many transfers: 3") {
		t.Errorf("got transfer %+v", x)
	}
	last.silent()
	first.send(5, "\x00\x00gone\x00")
	s.next()
	fixture.Eventually(t, "the place that came free", func() bool { return s.Running() == 2 })
	last.ask(s.addr, "loader", "octet", "blksize", "1000")
	served(last)
}

func TestStopLetsTransfersFinish(t *testing.T) {
	s := newSite(t, func(s *tftp.Server) { s.StopTimeout = time.Minute })
	r := newROM(t, 1)
	r.ask(s.addr, "loader", "octet")
	_, block := r.read()
	ended := make(chan error)
	go func() { ended <- s.stop() }()
	r.send(4, block[:2])
	r.finish(512)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if x := s.next(); x.Err != nil || x.Bytes != int64(len(content())) {
		t.Errorf("got transfer %+v, want it whole", x)
	}
}

func TestStopDoesNotWaitForEver(t *testing.T) {
	s := newSite(t, func(s *tftp.Server) { s.StopTimeout = time.Nanosecond })
	s.write("huge", nil)
	if err := os.Truncate(filepath.Join(s.dir, "huge"), 1<<30); err != nil {
		t.Fatal(err)
	}
	r := newROM(t, 1)
	r.ask(s.addr, "huge", "octet")
	ended := make(chan error, 1)
	// The client goes on asking, for as long as it gets blocks.
	for blocks := 1; ; blocks++ {
		op, rest := r.read()
		if op == 5 {
			if !strings.Contains(rest, "server stops") {
				t.Errorf("got error %q", rest)
			}
			break
		}
		if blocks == 2 { // a client that has not answered gets no error
			go func() { ended <- s.stop() }()
		}
		r.send(4, rest[:2])
	}
	if err := take(t, ended); err != nil {
		t.Error(err)
	}
}

func TestSlowClient(t *testing.T) {
	s := newSite(t, func(s *tftp.Server) { s.MaxTime = 2 * time.Second })
	r := newROM(t, 1)
	r.ask(s.addr, "loader", "octet", "blksize", "1000")
	op, rest := r.read()
	r.send(4, "\x00\x00")
	for op != 5 { // the block is sent again, and never acknowledged
		op, rest = r.read()
	}
	if op != 5 || !strings.Contains(rest, "too long") {
		t.Errorf("got packet %d %q, want that it takes too long", op, rest)
	}
}

func TestListen(t *testing.T) {
	s := newSite(t, nil)
	six := &tftp.Server{Addr: "[::1]:0"}
	if err := six.Listen(); err != nil {
		t.Errorf("IPv6: %v", err)
	}
	six.Close()
	if err := (&tftp.Server{Addr: s.addr}).Listen(); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got error %v, want EADDRINUSE", err)
	}
	if err := new(tftp.Server).Serve(t.Context()); err == nil {
		t.Error("Serve without Listen: got no error")
	}
}

func TestManyClients(t *testing.T) {
	s := newSite(t, func(s *tftp.Server) { s.MaxPerClient = 50 })
	want := content()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if b, _, err := s.get("loader", 8192); err != nil || !bytes.Equal(b, want) {
				t.Errorf("got %d bytes, %v", len(b), err)
			}
		})
	}
	all.Wait()
}

// TestErrorCodes: RFC 1350's appendix and RFC 2347 say what each number means.
func TestErrorCodes(t *testing.T) {
	s := newSite(t, nil)
	if err := os.Symlink("/etc/passwd", filepath.Join(s.dir, "out")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		op     uint16
		fields []string
		want   string
	}{
		{"not there", 1, []string{"nope", "octet"}, "\x00\x01file not found\x00"},
		{"below a file", 1, []string{"small/nope", "octet"}, "\x00\x01file not found\x00"},
		{"a directory", 1, []string{"sub", "octet"}, "\x00\x01file not found\x00"},
		{"out of the directory", 1, []string{"../small", "octet"}, "\x00\x02bad file name\x00"},
		{"a link out", 1, []string{"out", "octet"}, "\x00\x02access denied\x00"},
		{"to write", 2, []string{"small", "octet"}, "\x00\x02server is read-only\x00"},
		{"as text", 1, []string{"loader", "netascii"}, "\x00\x04too large for mode netascii: use octet (binary)\x00"},
		{"by mail", 1, []string{"small", "mail"}, "\x00\x04want mode octet or netascii\x00"},
		{"an option", 1, []string{"small", "octet", "blksize", "no"}, "\x00\x08option blksize: value \"no\" is no number from 8\x00"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newROM(t, 1)
			r.request(s.addr, tt.op, tt.fields...)
			if op, got := r.read(); op != 5 || got != tt.want {
				t.Errorf("got packet %d %q, want error %q", op, got, tt.want)
			}
			if x := s.next(); x.Err == nil || x.Bytes != 0 {
				t.Errorf("got transfer %+v", x)
			}
		})
	}
}

// TestRequestTwice: a client that got no answer asks again. That is one
// transfer still.
func TestRequestTwice(t *testing.T) {
	s := newSite(t, nil)
	r := newROM(t, 1)
	for range 3 {
		r.ask(s.addr, "loader", "octet", "blksize", "1000")
		if op, options := r.read(); op != 6 || options != "blksize\x001000\x00" {
			t.Fatalf("got packet %d %q, want the options", op, options)
		}
	}
	r.send(4, "\x00\x00")
	r.finish(1000)
	if x := s.next(); x.Err != nil || x.Bytes != int64(len(content())) {
		t.Errorf("got transfer %+v", x)
	}
	if len(s.transfers) > 0 {
		t.Errorf("got another transfer %+v", s.next())
	}
}

// TestBeginsAnew: a machine that was reset asks from the same port again.
func TestBeginsAnew(t *testing.T) {
	s := newSite(t, nil)
	r := newROM(t, 1)
	for range 2 {
		r.ask(s.addr, "loader", "octet")
		if op, block := r.read(); op != 3 || block[:2] != "\x00\x01" {
			t.Fatalf("got packet %d %q, want the first block", op, block[:2])
		}
		r.send(4, "\x00\x01")
		if op, block := r.read(); op != 3 || block[:2] != "\x00\x02" {
			t.Fatalf("got packet %d %q, want the second block", op, block[:2])
		}
	}
	if x := s.next(); x.Err == nil || !strings.Contains(x.Err.Error(), "began anew") || x.Bytes != 512 {
		t.Errorf("got transfer %+v, want the one that was left", x)
	}
	r.send(4, "\x00\x02")
	r.finish(512)
	if x := s.next(); x.Err != nil {
		t.Errorf("got transfer %+v", x)
	}
}

// TestOtherClients: packets of no transfer, and of other ports, are ignored.
func TestOtherClients(t *testing.T) {
	s := newSite(t, nil)
	r, other := newROM(t, 1), newROM(t, 2)
	r.ask(s.addr, "loader", "octet")
	_, block := r.read()
	other.from = r.from
	for _, p := range []string{"\x00\x01", "\x00\x02", ""} {
		other.send(4, p)
		other.send(5, p)
	}
	r.send(4, block[:2])
	r.finish(512)
	if x := s.next(); x.Err != nil {
		t.Errorf("got transfer %+v", x)
	}
}

// TestSinglePort: all comes from the port that was asked.
func TestSinglePort(t *testing.T) {
	s := newSite(t, func(s *tftp.Server) { s.SinglePort, s.MaxPerClient = true, 50 })
	want := content()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if b, _, err := s.get("loader", 1468); err != nil || !bytes.Equal(b, want) {
				t.Errorf("got %d bytes, %v", len(b), err)
			}
		})
	}
	all.Wait()
	r := newROM(t, 1)
	r.ask(s.addr, "loader", "octet")
	if r.read(); r.from.String() != s.addr {
		t.Errorf("got an answer from %s, want %s", r.from, s.addr)
	}
}

// TestSinglePortAtOnce: each of many requests that come at once gets its answer at the first
// try. Between the bind and the connect of a transfer's socket the kernel gives that socket
// the requests of other clients.
func TestSinglePortAtOnce(t *testing.T) {
	s := newSite(t, func(s *tftp.Server) { s.SinglePort, s.Log = true, nil })
	roms := make([]*rom, 50)
	for i := range roms {
		roms[i] = newROM(t, 1+i)
	}
	for range 20 {
		for _, r := range roms {
			r.ask(s.addr, "small", "octet")
		}
		for _, r := range roms {
			if op, rest := r.read(); op != 3 || rest != "\x00\x01small" {
				t.Fatalf("got packet %d %q, want the file", op, rest)
			}
			r.send(4, "\x00\x01")
		}
		for range roms {
			if x := s.next(); x.Err != nil || x.Resent > 0 {
				t.Fatalf("got transfer %+v", x)
			}
		}
	}
}

// TestSinglePortNextRequest: the next request of a ROM with one port may be there before
// its last ACK was read.
func TestSinglePortNextRequest(t *testing.T) {
	s := newSite(t, func(s *tftp.Server) { s.SinglePort = true })
	r := newROM(t, 1)
	r.ask(s.addr, "small", "octet")
	for range 20 {
		if op, rest := r.read(); op != 3 || rest != "\x00\x01small" {
			t.Fatalf("got packet %d %q, want the file", op, rest)
		}
		r.send(4, "\x00\x01")
		r.ask(s.addr, "small", "octet")
		if x := s.next(); x.Err != nil {
			t.Fatalf("got transfer %+v", x)
		}
	}
}

// TestWindows fetches more blocks than there are numbers, a window at a time.
// The kernel cuts each window into packets, or, where it does not, the server.
func TestWindows(t *testing.T) {
	t.Run("cut by the kernel", func(t *testing.T) { fetchWindows(t, newSite(t, nil)) })
	t.Run("cut by the server", func(t *testing.T) {
		fetchWindows(t, startSite(t, func(s *tftp.Server) error {
			err := s.Listen()
			s.Uncut()
			return err
		}, nil))
	})
}

func fetchWindows(t *testing.T, s *site) {
	t.Helper()
	want := bytes.Repeat(content(), 2)
	s.write("large", want)
	r := newROM(t, 1)
	r.ask(s.addr, "large", "octet", "blksize", "16", "windowsize", "32")
	if op, options := r.read(); op != 6 || options != "blksize\x0016\x00windowsize\x0032\x00" {
		t.Fatalf("got packet %d %q, want the options", op, options)
	}
	r.send(4, "\x00\x00")
	got := make([]byte, 0, len(want))
	for n := uint16(1); ; {
		op, rest := r.read()
		at := binary.BigEndian.Uint16([]byte(rest))
		if op == 3 && at != n && n-at <= 32 {
			continue // it took long, so the window was sent again
		}
		if op != 3 || at != n {
			t.Fatalf("got packet %d, block %d, want block %d", op, at, n)
		}
		got = append(got, rest[2:]...)
		if n%32 == 0 || len(rest) < 2+16 {
			r.send(4, rest[:2])
		}
		if len(rest) < 2+16 {
			break
		}
		n++
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got %d other bytes, want %d", len(got), len(want))
	}
	if x := s.next(); x.Err != nil || x.Window != 32 || x.BlockSize != 16 || x.Bytes != int64(len(want)) {
		t.Errorf("got transfer %+v", x)
	}
}

func TestFileBecomesShorter(t *testing.T) {
	s := newSite(t, nil)
	r := newROM(t, 1)
	r.ask(s.addr, "loader", "octet")
	op, block := r.read()
	if err := os.Truncate(filepath.Join(s.dir, "loader"), 100_000); err != nil {
		t.Fatal(err)
	}
	for op == 3 {
		r.send(4, block[:2])
		op, block = r.read()
	}
	if op != 5 || block != "\x00\x00server cannot read the file\x00" {
		t.Errorf("got packet %d %q", op, block)
	}
	if x := s.next(); x.Err == nil || !strings.Contains(x.Err.Error(), "byte 100000: file became shorter") {
		t.Errorf("got transfer %+v", x)
	}
}

// TestOpen: the files that a client may read can depend on the client.
func TestOpen(t *testing.T) {
	s := newSite(t, func(s *tftp.Server) {
		s.Open = func(client netip.Addr, name string) (tftp.File, error) {
			switch name {
			case "mine":
				return memory{bytes.NewReader([]byte(client.String()))}, nil
			case "theirs":
				return nil, fs.ErrPermission
			case "panic":
				panic("at the disk")
			}
			return nil, fs.ErrNotExist
		}
	})
	if b, _, err := s.get("/mine", 0); string(b) != "127.0.0.1" || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
	for _, tt := range [][2]string{{"theirs", "access denied"}, {"loader", "file not found"}, {"panic", "server failed"}} {
		if b, _, err := s.get(tt[0], 0); err == nil || !strings.Contains(err.Error(), tt[1]) {
			t.Errorf("%s: got %q, %v, want an error with %q", tt[0], b, err, tt[1])
		}
	}
}
