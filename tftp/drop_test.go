package tftp_test

import (
	"bytes"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"drover/e2e/fixture"
	"drover/tftp"
)

// drops counts what a server drops, and has its log.
type drops struct {
	mu  sync.Mutex
	by  map[tftp.Drop]int
	log fixture.Log
}

func (d *drops) watch(s *tftp.Server) {
	d.by = map[tftp.Drop]int{}
	s.Log = slog.New(slog.NewTextHandler(&d.log, nil))
	s.OnDrop = func(why tftp.Drop, packets int) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.by[why] += packets
	}
}

func (d *drops) count(why tftp.Drop) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.by[why]
}

// lines returns how many lines of the log have a text.
func (d *drops) lines(text string) int { return strings.Count(d.log.String(), text) }

// TestDropsAreSeen: each request without an answer is counted by its reason, and the log has
// a limited number of lines of those that an operator can do something about.
func TestDropsAreSeen(t *testing.T) {
	foreign := netip.MustParseAddrPort("198.51.100.7:2070")
	for _, tt := range []struct {
		why  tftp.Drop
		set  func(*tftp.Server)
		from netip.AddrPort
		data string
		line string // "": none at level info
	}{
		{tftp.NotHere, func(s *tftp.Server) { s.AnswersAt = func(netip.Addr) bool { return false } }, node, readRequest("loader", "octet"), "no boot address: see subnets[].address"},
		{tftp.NotServed, nil, foreign, readRequest("loader", "octet"), "not served: see server.clients"},
		{tftp.Malformed, nil, node, "\x00\x01rubbish", ""},
		{tftp.Unproved, nil, victim, readRequest("loader", "octet"), ""},
	} {
		t.Run(string(tt.why), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var d drops
				f := newForgery(t, func(s *tftp.Server) {
					d.watch(s)
					if tt.set != nil {
						tt.set(s)
					}
				})
				const times = 60
				for i := range times {
					f.send(netip.AddrPortFrom(tt.from.Addr(), tt.from.Port()+uint16(i%10)), serverAt, tt.data)
				}
				if n := d.count(tt.why); n == 0 || n > times || tt.why != tftp.Unproved && n != times {
					t.Errorf("counted %d of %d", n, times)
				}
				if tt.line == "" {
					return
				}
				if n := d.lines(tt.line); n == 0 || n > 20 {
					t.Errorf("got %d lines %q", n, tt.line)
				}
			})
		})
	}
}

// TestUnsent: a packet that the kernel does not take (a full neighbor table) is counted,
// told once for a transfer, and sent again, so that the client gets its file.
func TestUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d drops
		f := newForgery(t, d.watch)
		f.server.RefuseSends(2, unix.ENOBUFS)
		f.send(node, serverAt, readRequest("small", "octet", "blksize", "1000"))
		if got := f.packets(node.Addr()); len(got) != 0 {
			t.Fatalf("got %q at once", got)
		}
		time.Sleep(5 * time.Second)
		f.send(node, f.last(node.Addr()).From, ack(0))
		f.send(node, f.last(node.Addr()).From, ack(1))
		time.Sleep(time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.transfers) != 1 || f.transfers[0].Err != nil || f.transfers[0].Unsent != 2 || f.transfers[0].Bytes != 5 {
			t.Errorf("got transfers %+v", f.transfers)
		}
		if n := d.count(tftp.Unsent); n != 2 {
			t.Errorf("counted %d", n)
		}
		if n := d.lines("does not send a packet"); n != 1 || d.lines("gc_thresh3") != 1 || d.lines("unsent=2") != 1 {
			t.Errorf("got log\n%s", d.log.String())
		}
	})
}

// TestReceiveFails: an error of the listener ends nothing, takes no processor, and is in the log
// with few lines.
func TestReceiveFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const times = 600 // a minute
		var d drops
		f := newForgery(t, d.watch)
		f.server.FailReads(times, unix.ENOBUFS)
		f.send(node, serverAt, readRequest("small", "octet"))
		if got := f.packets(node.Addr()); len(got) != 0 {
			t.Fatalf("got %q at once", got)
		}
		time.Sleep(2 * time.Minute)
		if got := f.packets(node.Addr()); len(got) == 0 {
			t.Error("got nothing after the errors")
		}
		if n := d.lines("socket read failed"); n < 20 || n > 5*60+20 {
			t.Errorf("%d lines of %d errors", n, times)
		}
	})
}

// TestFileIsSlow: the log says that a client waits, while its file cannot be opened or read.
func TestFileIsSlow(t *testing.T) {
	for _, name := range []string{"opens late", "reads late"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var d drops
				f := newForgery(t, func(s *tftp.Server) {
					d.watch(s)
					s.Open = func(_ netip.Addr, asked string) (tftp.File, error) {
						switch asked {
						case "opens late":
							time.Sleep(35 * time.Second)
							return memory{bytes.NewReader([]byte("small"))}, nil
						case "reads late":
							return lateFile{memory{bytes.NewReader([]byte("small"))}}, nil
						}
						return nil, fs.ErrNotExist
					}
				})
				for range 34 { // firmware asks again
					f.send(node, serverAt, readRequest(name, "octet"))
					time.Sleep(time.Second)
				}
				if got := f.packets(node.Addr()); len(got) != 0 {
					t.Fatalf("got %q", got)
				}
				if d.count(tftp.FileIsSlow) != 1 || d.lines("a client waits for a file") != 1 {
					t.Errorf("counted %d; the log:\n%s", d.count(tftp.FileIsSlow), d.log.String())
				}
				time.Sleep(2 * time.Second)
				f.send(node, f.last(node.Addr()).From, ack(1))
			})
		})
	}
}

// lateFile is on a disk that answers after 35 s.
type lateFile struct{ memory }

func (f lateFile) ReadAt(b []byte, off int64) (int, error) {
	time.Sleep(35 * time.Second)
	return f.memory.ReadAt(b, off)
}

// TestOverflow: requests that the kernel drops, because the server does not read them in
// time, are counted and told.
func TestOverflow(t *testing.T) {
	var d drops
	s := startSite(t, func(s *tftp.Server) error {
		if err := s.Listen(); err != nil {
			return err
		}
		flood, err := net.Dial("udp4", s.LocalAddr().String())
		if err != nil {
			return err
		}
		defer flood.Close()
		for range 30000 { // nobody reads yet: more than fit into 8 MiB
			if _, err := flood.Write(make([]byte, 300)); err != nil {
				return err
			}
		}
		return nil
	}, d.watch)
	fixture.Eventually(t, "the drop is counted", func() bool {
		// The kernel counts beside the packets that it takes later.
		if _, _, err := s.get("small", 0); err != nil {
			t.Fatal(err)
		}
		return d.count(tftp.Overflow) > 0
	})
	if n := d.count(tftp.Overflow); n >= 30000 || n+d.count(tftp.Malformed) < 30000 {
		t.Errorf("counted %d dropped and %d read of 30000", n, d.count(tftp.Malformed))
	}
	if d.lines("the kernel dropped some") == 0 {
		t.Errorf("the log:\n%s", d.log.String())
	}
}
