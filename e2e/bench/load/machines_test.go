package load_test

import (
	"slices"
	"testing"
	"time"

	"drover/e2e/bench/load"
)

const (
	offer = 2
	ack   = 5
	nak   = 6
)

func TestEachMachineAsksOnce(t *testing.T) {
	room := load.NewRoom(2, 0)
	if a, b := room.Next(0), room.Next(0); a != 1<<16 || b != 1<<16|1 {
		t.Fatalf("got transactions %#x and %#x, want 0x10000 and 0x10001", a, b)
	}
	if got := room.Next(10 * time.Second); got != -1 || room.Left() != 0 {
		t.Errorf("a machine asked twice: %#x, %d left", got, room.Left())
	}
}

func TestMachinesBootAgain(t *testing.T) {
	room := load.NewRoom(1, 0)
	room.Again()
	first := room.Next(0)
	room.Hear(uint32(first), offer, time.Millisecond)
	room.Hear(uint32(first), ack, 2*time.Millisecond)
	if got := room.Next(3 * time.Millisecond); got != 2<<16 || room.Left() != 1 {
		t.Errorf("after it was served: got %#x with %d left, want 0x20000 and 1", got, room.Left())
	}
	if got := room.Next(time.Second); got != -1 {
		t.Errorf("while it waits for an answer: %#x", got)
	}
	if got := room.Next(1003 * time.Millisecond); got != 3<<16 {
		t.Errorf("a second later: got %#x, want 0x30000", got)
	}
}

func TestAskAgainInAnOverload(t *testing.T) {
	room := load.NewRoom(2, 100*time.Millisecond)
	room.Again()
	first, second := room.Next(0), room.Next(0)
	left := room.Left()
	room.Hear(uint32(first), offer, time.Millisecond)
	room.Hear(uint32(first), ack, 2*time.Millisecond)
	if got := room.Next(3 * time.Millisecond); got != 2<<16 || room.Left() != left {
		t.Errorf("after it was served: got %#x with %d left, want 0x20000 and %d", got, room.Left(), left)
	}
	if got := room.Next(101 * time.Millisecond); got != second+1<<16 {
		t.Errorf("the machine without an answer: got %#x, want %#x", got, second+1<<16)
	}
}

func TestAnExchange(t *testing.T) {
	const ms = time.Millisecond
	room := load.NewRoom(4, 0)
	for range 4 {
		room.Next(0)
	}
	steps := []struct {
		name    string
		machine uint32
		kind    byte
		at      time.Duration
		follow  bool
	}{
		{"an ACK that nobody asked for", 0, ack, 1 * ms, false},
		{"an OFFER", 0, offer, 2 * ms, true},
		{"it comes twice", 0, offer, 3 * ms, false},
		{"an ACK", 0, ack, 5 * ms, false},
		{"the ACK comes twice", 0, ack, 6 * ms, false},
		{"an OFFER that is too late", 1, offer, 1000 * ms, false},
		{"an OFFER just in time", 2, offer, 999 * ms, true},
		{"an ACK that is too late", 2, ack, 1999 * ms, false},
		{"a NAK", 3, nak, 1 * ms, false},
		{"a machine that there is not", 4, offer, 1 * ms, false},
	}
	for _, s := range steps {
		if got := room.Hear(1<<16|s.machine, s.kind, s.at); got != s.follow {
			t.Errorf("%s: a REQUEST follows: got %t, want %t", s.name, got, s.follow)
		}
	}
	want := load.Counts{Discovers: 4, Offers: 2, Acks: 1, Naks: 1, Useless: 6}
	if got := room.Count(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := room.Latency(); !slices.Equal(got, []time.Duration{5 * ms}) {
		t.Errorf("got latencies %v, want 5 ms", got)
	}
}

// Machines that are not served ask again; a served one does not.
func TestMachinesAskUntilTheyAreServed(t *testing.T) {
	const ms = time.Millisecond
	room := load.NewRoom(2, 250*ms)
	room.Next(0)
	room.Next(0)
	if got := room.Next(249 * ms); got != -1 {
		t.Fatalf("at 249 ms %#x asked again", got)
	}
	if a, b := room.Next(250*ms), room.Next(250*ms); a != 2<<16 || b != 2<<16|1 {
		t.Fatalf("at 250 ms got %#x and %#x, want 0x20000 and 0x20001", a, b)
	}
	// The OFFER to an earlier DISCOVER counts as well.
	if !room.Hear(1<<16, offer, 300*ms) || room.Hear(1<<16, ack, 310*ms) {
		t.Fatal("the first machine is not served")
	}
	if !room.Hear(2<<16|1, offer, 400*ms) {
		t.Fatal("the second machine has no OFFER")
	}
	if got := room.Next(1399 * ms); got != -1 {
		t.Errorf("a machine that waits for its ACK sent a DISCOVER after 999 ms: %#x", got)
	}
	if got := room.Next(1400 * ms); got != 3<<16|1 {
		t.Errorf("after a second without an ACK got %#x, want 0x30001", got)
	}
	if got := room.Left(); got != 0 {
		t.Errorf("%d machines are left until half are served, want 0", got)
	}
	if got := room.Latency(); !slices.Equal(got, []time.Duration{310 * ms}) {
		t.Errorf("got latencies %v, want 310 ms: from the first DISCOVER", got)
	}
}

func TestQuantiles(t *testing.T) {
	var latency []time.Duration
	for i := range 100 {
		latency = append(latency, time.Duration(100-i))
	}
	got := load.Quantiles(latency, 0.5, 0.99, 1)
	if want := []time.Duration{51, 100, 100}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := load.Quantiles(nil, 0.5); got[0] != 0 {
		t.Errorf("of nothing got %v, want 0", got)
	}
}
