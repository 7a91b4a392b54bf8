package tftp

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newQuiet opens a socket to which nothing is sent.
func newQuiet(t *testing.T) *udpSocket {
	t.Helper()
	s, err := listenUDP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// beside runs f on the only processor again and again, whenever it is yielded.
func beside(t *testing.T, f func()) {
	t.Helper()
	before := runtime.GOMAXPROCS(1)
	var stop atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ; !stop.Load(); runtime.Gosched() {
			f()
		}
	}()
	t.Cleanup(func() {
		stop.Store(true)
		<-ended
		runtime.GOMAXPROCS(before)
	})
}

// A port that looks for packets lets others run meanwhile.
func TestLookYields(t *testing.T) {
	s := newQuiet(t)
	var turns atomic.Int64
	beside(t, func() { turns.Add(1) })
	before := turns.Load()
	for range 2 { // of two turns in a row Go's scheduler gives one back, now and then
		if _, errno := s.look(make([]message, 1), time.Now()); errno != unix.EAGAIN {
			t.Fatal(errno)
		}
	}
	if turns.Load() == before {
		t.Error("nobody else had a turn")
	}
}

// It looks no more for a while when others take long, and when no packet came
// soon.
func TestLookStops(t *testing.T) {
	s := newQuiet(t)
	s.linger.able, s.linger.quick = true, true
	if !s.linger.worth(time.Now()) {
		t.Fatal("it never looks")
	}
	beside(t, func() {
		for began := time.Now(); time.Since(began) <= lingerShare; {
		}
	})
	began := time.Now()
	if _, errno := s.look(make([]message, 1), began); errno != unix.EAGAIN {
		t.Fatal(errno)
	}
	if s.linger.worth(began.Add(lingerPause)) {
		t.Error("it looks although somebody wants the processor")
	}
	if !s.linger.worth(time.Now().Add(time.Hour)) {
		t.Error("it looks never again")
	}

	if n, err := s.receive(make([]message, 1), 2*lingerTime, true); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if s.linger.quick {
		t.Error("no packet came: it looks for the next")
	}
}
