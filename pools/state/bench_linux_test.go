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
	"drover/pools/state"
)

// benchMachines is how many machines a benchmark has leases for.
const benchMachines = 50_000

// later is when benchmarks renew, after all that fill did.
var later = epoch.AddDate(1, 0, 0)

// BenchmarkCommit is what a lease costs, durable, on the disk that TMPDIR is
// on: all machines have one, and random ones renew.
func BenchmarkCommit(b *testing.B) {
	for _, committers := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("committers=%d", committers), func(b *testing.B) {
			s, err := state.Open(b.TempDir(), state.Options{})
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

// BenchmarkCommitRate is what a lease costs when so many are asked for in a
// second, at even distances.
func BenchmarkCommitRate(b *testing.B) {
	for _, rate := range []int{500, 2000, 8000} {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) {
			s, err := state.Open(b.TempDir(), state.Options{})
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

// BenchmarkMemory is how many bytes of the heap a lease takes, with its share of the
// indexes: as it was committed, and as it was loaded.
func BenchmarkMemory(b *testing.B) {
	dir := b.TempDir()
	before := heap()
	s, err := state.Open(dir, state.Options{})
	if err != nil {
		b.Fatal(err)
	}
	fill(b, s)
	b.ReportMetric(float64(heap()-before)/benchMachines, "B/lease")
	shut(b, s)
	before = heap()
	if s, err = state.Open(dir, state.Options{}); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(heap()-before)/benchMachines, "B/loaded-lease")
	shut(b, s)
}

// heap is how many bytes of it are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// fill gives every machine a lease.
func fill(b *testing.B, s *state.Store) {
	var n atomic.Int64
	together(b, s, 1000, benchMachines, epoch, func() int { return int(n.Add(1) - 1) })
}

// together has n commits made by so many at a time, two minutes apart for the
// store, so that each is written.
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

func benchPlan(n int) *pools.Plan {
	p := plan(n)
	p.Range = pools.Range{First: benchAddr(0), Last: benchAddr(1<<16 - 1)}
	p.Lease = pools.Duration(12 * time.Hour)
	return p
}

// cpu is the time that the process spent on processors.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkOfferFlood is what a DISCOVER with a made up MAC costs when every
// address of a large range has expired and most are on offer.
func BenchmarkOfferFlood(b *testing.B) {
	s, err := state.Open(b.TempDir(), state.Options{})
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
