package dhcpd_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/e2e/fixture"
	"drover/pools"
)

// madeUp returns the MACs of unknown hardware.
func madeUp(n int) pools.MAC { return pools.MAC{0x52, 0x54, 0, 0x77, byte(n >> 8), byte(n)} }

// TestFloodOfStrangers fills the queue with machines that nobody knows. A declared one,
// and one that holds a lease, are answered all the same, and before the strangers
// (finding H3).
func TestFloodOfStrangers(t *testing.T) {
	r := newRack(t)
	s, l := newServer()
	stuck := stuckFarm{asked: make(chan struct{}, 10_000), free: make(chan struct{})}
	s.Farm, s.Workers, s.Queue, s.MaxWait = stuck, 1, 64, time.Hour
	s.Machines = machines{}
	leased := madeUp(60_000)
	l.Hold(leased, "10.28.99.9")
	r.exchanges = make(chan dhcp.Exchange, 10_000)
	r.serve(s)
	r.plug(foreign)
	r.ip("-n", r.cli, "addr", "add", "10.28.0.253/16", "dev", "cli")
	relay := r.udp("10.28.0.253:67") // TestSpoofedOverTheWire has the other address
	packet := func(n uint32, m pools.MAC) []byte {
		return message(m, discover, giaddr("10.28.0.253"), func(d *dhcpv4.DHCPv4) {
			d.TransactionID[2], d.TransactionID[3] = byte(n>>8), byte(n)
		}).ToBytes()
	}
	write(t, relay, packet(1, foreign))
	<-stuck.asked // the only worker is busy
	for n := range 100 {
		write(t, relay, packet(1000, madeUp(n)))
	}
	for dropped := 0; dropped < 36; { // the queue is full
		if r.next().Decision == dhcp.QueueFull {
			dropped++
		}
	}
	write(t, relay, packet(2, web1))
	write(t, relay, packet(3, leased))
	for n := range 100 {
		write(t, relay, packet(1000, madeUp(1000+n)))
	}
	for dropped := 0; dropped < 100; {
		if r.next().Decision == dhcp.QueueFull {
			dropped++
		}
	}
	close(stuck.free)
	for _, want := range []uint32{2, 3} {
		if got := number(read(t, relay)) & 0xffff; got != want {
			t.Errorf("got the answer to %d, want that to %d first", got, want)
		}
	}
}

// TestFloodIsNotLogged: unknown hardware fills no disk with log lines, and has no share in
// the lines of declared machines (finding M2).
func TestFloodIsNotLogged(t *testing.T) {
	var logged fixture.Log
	r := newRack(t)
	s, _ := newServer()
	s.Log = slog.New(slog.NewTextHandler(&logged, nil))
	r.exchanges = make(chan dhcp.Exchange, 10_000)
	r.serve(s)
	relay := r.relay()
	r.confirm(relay)
	const flood = 600
	for n := range flood {
		write(t, relay, message(madeUp(n), discover, giaddr("10.28.0.254")).ToBytes())
		r.next()
	}
	for range 15 {
		write(t, relay, message(web1, discover, giaddr("10.28.0.254")).ToBytes())
		r.next()
	}
	var lines map[bool]int
	fixture.Eventually(t, "the last line, which comes after its exchange,", func() bool {
		lines = map[bool]int{}
		for line := range strings.Lines(logged.String()) {
			if strings.Contains(line, "decision=offered") {
				lines[strings.Contains(line, "node=web1")]++
			}
		}
		return lines[true] >= 15
	})
	if lines[true] != 15 || lines[false] < 20 || lines[false] > flood/2 {
		t.Errorf("got %d lines of the declared machine and %d of the flood, want 15 and at least 20, at most %d", lines[true], lines[false], flood/2)
	}
}
