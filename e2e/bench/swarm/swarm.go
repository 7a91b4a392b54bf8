package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"drover/e2e/bench/stats"
	"drover/e2e/lab"
	"drover/internal/wait"
	"drover/pools"
	"drover/pools/boots"
)

// swarm is all machines of a run.
type swarm struct {
	*stage
	clients dhcpClients
	relays  []*relay
	gate    *gate // nil: no server is killed
	owners  owners
	bytes   atomic.Int64 // received by TFTP and HTTP
	queued  atomic.Int64 // positions in the queue for images that the server sent

	mu       sync.Mutex
	samples  map[string][]time.Duration
	repeats  map[string]int
	failed   []string
	problems []string // the first errors that a repetition healed
}

// Bounds of the report.
const (
	maxProblems = 20
	maxFailed   = 20
)

func (s *swarm) took(step string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples[step] = append(s.samples[step], d)
}

func (s *swarm) repeated(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repeats[what]++
}

// note keeps an error for the report.
func (s *swarm) note(m *machine, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.problems) < maxProblems {
		s.problems = append(s.problems, fmt.Sprintf("%s: %v", m.mac, err))
	}
}

// fail records what makes the run fail.
func (s *swarm) fail(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = append(s.failed, fmt.Sprintf(format, args...))
}

// random returns a number in [0,1).
func (s *swarm) random() float64 { return rand.Float64() }

// storm boots all machines, and waits until each is up in the eyes of the server.
func (s *stage) storm(ctx context.Context) (report *Report, err error) {
	w := &swarm{stage: s, samples: map[string][]time.Duration{}, repeats: map[string]int{}, owners: owners{of: map[netip.Addr]pools.MAC{}}}
	if w.clients, err = readClients(s.source); err != nil {
		return nil, err
	}
	defer func() {
		for _, r := range w.relays {
			r.close()
		}
	}()
	for i := range s.racks {
		var all []netip.Addr
		for i := range s.servers {
			all = append(all, serverAddr(i))
		}
		r, err := openRelay(relayAddr(i), all...)
		if err != nil {
			return nil, err
		}
		w.relays = append(w.relays, r)
	}
	load := stats.LoadAverage()
	say(s.log, "%d machines in %d racks, load average of the host %s", s.machines, s.racks, load)
	if s.kill != "" {
		return w.rounds(ctx, load)
	}
	before, err := stats.CPUTime(s.drovers[0].Pid())
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	limited, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	w.boot(limited)
	up := time.Since(begin)
	if len(w.failed) == 0 {
		w.confirm(limited, false, s.drovers...)
	}
	after, err := stats.CPUTime(s.drovers[0].Pid())
	peak, perr := stats.PeakRSS(s.drovers[0].Pid())
	if err = errors.Join(err, perr, ctx.Err(), w.readLog()); err != nil {
		return nil, err
	}
	r := w.report()
	r.Load, r.Seconds, r.ServerSeconds, r.ServerPeak = load, up.Seconds(), (after - before).Seconds(), peak
	return r, nil
}

// boot boots all machines, rack by rack, while the mad ones do what they do.
func (s *swarm) boot(ctx context.Context) {
	var all, mad sync.WaitGroup
	end, stop := context.WithCancel(ctx)
	for i := range s.mad {
		m := s.machine(s.machines + i)
		m.mad = true
		mad.Go(func() { m.rave(end, i) })
	}
	for i := range s.machines {
		m := s.machine(i)
		m.slow = i < s.slow
		all.Go(func() {
			if wait.Sleep(ctx, time.Duration(i*s.racks/s.machines)*s.every) != nil {
				return
			}
			begin := time.Now()
			if err := m.run(ctx); err != nil {
				s.fail("%s: %v", m.mac, err)
				return
			}
			s.took("boot", time.Since(begin))
		})
	}
	all.Wait()
	stop()
	mad.Wait()
}

// machine returns the machine of an index, in its rack.
func (s *swarm) machine(i int) *machine {
	return &machine{swarm: s, index: i, mac: machineMAC(i), relay: s.relays[min(i, s.machines-1)*s.racks/s.machines]}
}

// confirmLimit is the time for the server to see what its cluster has seen.
const confirmLimit = 2 * time.Minute

// confirm compares what servers show of the boots: the newest of each machine has reached its end,
// or goes on elsewhere if that is allowed: at a server that is away.
func (s *swarm) confirm(ctx context.Context, elsewhere bool, servers ...*lab.Drover) {
	ctx, cancel := context.WithTimeout(ctx, confirmLimit)
	defer cancel()
	for _, d := range servers {
		var wrong []string
		for {
			now, err := s.unfinished(ctx, d, elsewhere)
			if err == nil && len(now) == 0 {
				break
			}
			if err == nil {
				wrong = now
			}
			if wait.Sleep(ctx, 200*time.Millisecond) != nil {
				if err != nil {
					s.fail("boots of the server: %v", err)
				}
				for _, text := range wrong {
					s.fail("%s", text)
				}
				return
			}
		}
	}
}

// unfinished returns the machines whose newest boot a server does not show as ended.
func (s *swarm) unfinished(ctx context.Context, d *lab.Drover, elsewhere bool) (wrong []string, err error) {
	newest := map[pools.MAC]boots.Record{}
	for before := ""; ; {
		var page []boots.Record
		if err := d.Call(ctx, http.MethodGet, "/api/v1/boots?before="+before, nil, &page); err != nil {
			return nil, err
		}
		for _, b := range page {
			if _, known := newest[b.MAC]; !known || len(s.drovers) == 1 && b.Ended() {
				newest[b.MAC] = b
			}
		}
		if len(page) == 0 || before == page[len(page)-1].ID {
			break
		}
		before = page[len(page)-1].ID
	}
	for i := range s.machines {
		b, known := newest[machineMAC(i)]
		if !known || !b.Ended() && (!elsewhere || !b.Elsewhere) {
			wrong = append(wrong, fmt.Sprintf("%s: server %s does not show its boot as ended: %+v", machineMAC(i), d.State, b))
		}
	}
	return wrong, nil
}

// readLog lets the run fail for each error in the log of a server.
func (s *swarm) readLog() error {
	for _, d := range s.drovers {
		text, err := os.ReadFile(d.Log())
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "level=ERROR") {
				s.fail("server: %s", strings.TrimSpace(line))
			}
		}
	}
	return nil
}

// report returns the figures of the machines.
func (s *swarm) report() *Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &Report{
		Drover: s.from, Machines: s.machines, Racks: s.racks, Slow: s.slow, Mad: s.mad, Undeclared: s.undeclared,
		Loss: s.loss, Delay: s.delay.Seconds(), Root: s.root, Bytes: s.bytes.Load(), Queued: s.queued.Load(),
		Up: len(s.samples["boot"]), Repeats: s.repeats, Problems: s.problems, Failures: len(s.failed), Failed: s.failed[:min(len(s.failed), maxFailed)],
	}
	for _, step := range append(steps(), step{name: "boot"}) {
		if all := s.samples[step.name]; len(all) > 0 {
			slices.Sort(all)
			r.Steps = append(r.Steps, newStep(step.name, all))
		}
	}
	return r
}
