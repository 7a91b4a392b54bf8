package state_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/resolve"
	"drover/state"
)

// benchMachines is the number of machines that have leases in a benchmark.
const benchMachines = 50_000

// later is the time at which benchmarks renew. It is after all commits of fill.
var later = epoch.AddDate(1, 0, 0)

// BenchmarkCommit measures a durable lease on the disk of TMPDIR. All machines
// have a lease, and random machines renew.
func BenchmarkCommit(b *testing.B) {
	for _, committers := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("committers=%d", committers), func(b *testing.B) {
			s, err := state.Open(b.TempDir(), testOptions(state.Options{}))
			if err != nil {
				b.Fatal(err)
			}
			defer shut(b, s)
			fill(b, s)
			before := cpu()
			b.ResetTimer()
			together(b, s, committers, b.N, later, func() int { return rand.IntN(benchMachines) })
			b.ReportMetric(float64((cpu()-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
		})
	}
}

// BenchmarkCommitRate measures a lease at a rate of requests per second, at
// even intervals.
func BenchmarkCommitRate(b *testing.B) {
	for _, rate := range []int{500, 2000, 8000} {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) {
			s, err := state.Open(b.TempDir(), testOptions(state.Options{}))
			if err != nil {
				b.Fatal(err)
			}
			defer shut(b, s)
			fill(b, s)
			before, start := cpu(), time.Now()
			b.ResetTimer()
			took := make([]time.Duration, b.N)
			var wg sync.WaitGroup
			for i := range b.N {
				time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(rate))))
				wg.Go(func() {
					m, began := rand.IntN(benchMachines), time.Now()
					defer func() { took[i] = time.Since(began) }()
					if err := commit(s.Leases, benchPlan(m), benchAddr(m), later.Add(time.Duration(i)*2*time.Minute)); err != nil {
						b.Error(err)
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64((cpu()-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
			slices.Sort(took)
			b.ReportMetric(float64(took[b.N/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[b.N*99/100].Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkMemory measures the heap bytes of a lease with its share of the
// indexes: after its commit, and after a load from disk.
func BenchmarkMemory(b *testing.B) {
	dir := b.TempDir()
	before := heap()
	s, err := state.Open(dir, testOptions(state.Options{}))
	if err != nil {
		b.Fatal(err)
	}
	fill(b, s)
	b.ReportMetric(float64(heap()-before)/benchMachines, "B/lease")
	shut(b, s)
	before = heap()
	if s, err = state.Open(dir, testOptions(state.Options{})); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(heap()-before)/benchMachines, "B/loaded-lease")
	shut(b, s)
}

// heap returns the bytes of the heap that are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// fill commits a lease for every machine.
func fill(b *testing.B, s *state.Store) {
	var n atomic.Int64
	together(b, s, 1000, benchMachines, epoch, func() int { return int(n.Add(1) - 1) })
}

// together makes n commits, with so many committers at a time. For the store the
// commits are two minutes apart, so that it writes each of them.
func together(b *testing.B, s *state.Store, committers, n int, from time.Time, machine func() int) {
	var done atomic.Int64
	var wg sync.WaitGroup
	for range committers {
		wg.Go(func() {
			for {
				i := done.Add(1)
				if i > int64(n) {
					return
				}
				m := machine()
				if err := commit(s.Leases, benchPlan(m), benchAddr(m), from.Add(time.Duration(i)*2*time.Minute)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func benchAddr(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)}) }

func benchPlan(n int) *resolve.Plan {
	p := plan(n)
	p.Range = pools.Range{First: benchAddr(0), Last: benchAddr(1<<16 - 1)}
	p.Lease = pools.Duration(12 * time.Hour)
	return p
}

// cpu returns the processor time that the process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkOfferFlood measures a DISCOVER with an invented MAC when every
// address of a large range has expired and most are on offer.
func BenchmarkOfferFlood(b *testing.B) {
	s, err := state.Open(b.TempDir(), testOptions(state.Options{}))
	if err != nil {
		b.Fatal(err)
	}
	defer shut(b, s)
	fill(b, s)
	p := benchPlan(0)
	p.Range.Last = benchAddr(benchMachines - 1)
	b.ResetTimer()
	for n := range b.N {
		p.MAC = mac(1<<20 + n)
		now := later.Add(time.Duration(n) * 2 * time.Millisecond)
		if _, _, err := s.Leases.Offer(p, netip.Addr{}, now); err != nil {
			b.Fatal(err)
		}
	}
}
