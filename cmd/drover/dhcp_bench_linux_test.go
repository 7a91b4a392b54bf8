package main

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"drover/pools"
)

// BenchmarkServeDHCP measures exchanges of four messages between `drover serve`, with
// its leases on disk, and clients behind a relay agent. A rate is the number of
// exchanges that begin in a second; without one, 64 are in progress at a time. The
// processor time is the server's, user and system.
func BenchmarkServeDHCP(b *testing.B) {
	for _, rate := range []int{0, 500, 2000, 8000} {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) {
			c := newCrowd(b, "10.28.1.0-10.28.250.255")
			c.start()
			defer c.kill()
			q := &queuers{crowd: c, begun: make([]time.Time, b.N), refill: rate == 0}
			before := cpuTime(b, c.server.Process.Pid)
			b.ResetTimer()
			q.run(rate, 64)
			b.StopTimer()
			used := cpuTime(b, c.server.Process.Pid) - before
			n := len(q.took)
			if n == 0 {
				b.Fatal("nobody got an address")
			}
			slices.Sort(q.took)
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "exchanges/s")
			b.ReportMetric(float64(used.Microseconds())/float64(n), "server-µs/op")
			b.ReportMetric(float64(b.N-n), "lost")
			b.ReportMetric(float64(q.took[n/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(q.took[n*99/100].Microseconds()), "p99-µs")
		})
	}
}

// queuers are clients that lease one address each.
type queuers struct {
	*crowd
	refill bool // the end of an exchange begins the next
	took   []time.Duration

	mu    sync.Mutex
	begun []time.Time // the time of each DISCOVER
	next  int
}

// run begins exchanges at a rate per second, or, with rate 0, keeps window of them in
// progress. It returns when all have ended, or after two seconds without an answer.
func (q *queuers) run(rate, window int) {
	ended := make(chan struct{})
	go func() { defer close(ended); q.serve() }()
	start := time.Now()
	for i := range q.begun {
		if rate == 0 && i == window {
			break
		}
		if rate > 0 {
			time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		}
		q.begin()
	}
	<-ended
}

// begin sends the DISCOVER of the next client.
func (q *queuers) begin() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next == len(q.begun) {
		return
	}
	m := pools.MAC{2}
	binary.BigEndian.PutUint32(m[2:], uint32(q.next%60_000))
	q.begun[q.next] = time.Now()
	q.send(dhcpMessage(m, uint32(q.next), dhcpDiscover))
	q.next++
}

// serve requests the offered addresses, and records the time of each ACK.
func (q *queuers) serve() {
	for len(q.took) < len(q.begun) {
		a, ok := q.receive(2 * time.Second)
		switch {
		case !ok:
			return
		case a.kind == dhcpOffer:
			q.send(dhcpMessage(a.mac, a.xid, dhcpRequest, dhcpField{54, crowdServer.Addr()}, dhcpField{50, a.addr}))
		case a.kind == dhcpACK && a.mac[1] == 0:
			q.mu.Lock()
			q.took = append(q.took, time.Since(q.begun[a.xid]))
			q.mu.Unlock()
			if q.refill {
				q.begin()
			}
		}
	}
}
