package tftp_test

import (
	"bytes"
	"io/fs"
	"net/netip"
	"strings"
	"testing"
	"time"

	"drover/tftp"
)

// slowFile is on a disk that hangs until it is mended.
type slowFile struct {
	memory
	reading chan struct{} // gets a value for each read that begins
	mended  chan struct{}
}

func (f slowFile) ReadAt(b []byte, off int64) (int, error) {
	f.reading <- struct{}{}
	<-f.mended
	return f.memory.ReadAt(b, off)
}

// newSlowSite serves "slow" from a disk that hangs, "waits", whose Open hangs
// until the same time, and "fast". All transfers share one port.
func newSlowSite(t *testing.T, set func(*tftp.Server)) (*site, slowFile) {
	t.Helper()
	slow := slowFile{memory{bytes.NewReader(content())}, make(chan struct{}, 100), make(chan struct{})}
	return newSite(t, func(s *tftp.Server) {
		s.SinglePort = true
		s.Open = func(_ netip.Addr, name string) (tftp.File, error) {
			switch name {
			case "slow":
				return slow, nil
			case "fast":
				return memory{bytes.NewReader(content())}, nil
			case "waits":
				slow.reading <- struct{}{}
				<-slow.mended
				return memory{bytes.NewReader(content())}, nil
			}
			return nil, fs.ErrNotExist
		}
		if set != nil {
			set(s)
		}
	}), slow
}

// TestSlowFile: a file that cannot be read for a while delays its own transfer,
// and no other of the same port.
func TestSlowFile(t *testing.T) {
	for _, name := range []string{"slow", "waits"} {
		t.Run(name, func(t *testing.T) {
			s, slow := newSlowSite(t, nil)
			r := newROM(t, 1)
			r.ask(s.addr, name, "octet")
			take(t, slow.reading)
			if b, _, err := s.get("fast", 1468); err != nil || !bytes.Equal(b, content()) {
				t.Fatalf("beside the slow file: got %d bytes, %v", len(b), err)
			}
			if x := s.next(); x.File != "fast" || x.Err != nil {
				t.Errorf("got transfer %+v", x)
			}
			close(slow.mended)
			r.finish(512)
			if x := s.next(); x.File != name || x.Err != nil || x.Bytes != int64(len(content())) {
				t.Errorf("got transfer %+v, want it whole", x)
			}
		})
	}
}

// TestSlowFileEnds: neither the time limit of a transfer nor the end of Serve
// waits for a file that cannot be read.
func TestSlowFileEnds(t *testing.T) {
	s, slow := newSlowSite(t, func(s *tftp.Server) { s.MaxTime, s.StopTimeout = time.Millisecond, time.Millisecond })
	defer close(slow.mended)
	for i, name := range []string{"slow", "waits"} {
		r := newROM(t, i+1)
		r.ask(s.addr, name, "octet")
		if op, text := r.read(); op != 5 || text != "\x00\x00server cannot read the file\x00" {
			t.Errorf("%s: got packet %d %q", name, op, text)
		}
		if x := s.next(); x.Err == nil || !strings.Contains(x.Err.Error(), "takes too long") {
			t.Errorf("got transfer %+v", x)
		}
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}
