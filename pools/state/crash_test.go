package state_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/state"
)

// crashDir tells the test binary that it is the child of TestKill, and where
// the state is.
const crashDir = "DROVER_TEST_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		if err := load(dir, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// crashPlan is a plan with few addresses for many machines and leases that
// are over at once, so that addresses change hands all the time.
func crashPlan(n int) *pools.Plan {
	p := plan(n)
	p.Range.Last = addr(100)
	p.Lease = pools.Duration(20 * time.Millisecond)
	return p
}

// load changes the state at dir as fast as it can, until it is killed, and
// prints a line for each change after it was acknowledged.
func load(dir string, w io.Writer) error {
	s, err := state.Open(dir, state.Options{})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(w, format+"\n", args...)
	}
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			for {
				p := crashPlan(n*16 + rand.IntN(16))
				now := time.Now()
				a, err := s.Leases.Offer(p, netip.Addr{}, now)
				if err != nil {
					continue
				}
				if err := s.Leases.Commit(p, a, now); err == nil {
					say("lease %s %s %d", p.MAC, a, now.UnixNano())
				}
			}
		})
	}
	for n := range 32 {
		wg.Go(func() {
			for {
				p := crashPlan(1000 + n)
				say("ask %s -", p.MAC)
				nonce, err := s.Boots.Issue(p)
				if err != nil {
					continue
				}
				say("nonce %s %s", p.MAC, nonce)
				if err := s.Boots.Claim(p.MAC, nonce, []byte(nonce)); err == nil {
					say("claim %s %s", p.MAC, nonce)
				}
				_ = s.Boots.Step(p.MAC, nonce, pools.Event{Step: pools.StepInit})
				// The claim stands for a moment, so that kills fall on it.
				time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond)
			}
		})
	}
	wg.Wait()
	return nil
}

// TestKill kills a process that changes the state, at random instants, and
// looks whether all that it had acknowledged is there.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	acked := acks{leases: map[pools.MAC]ack{}, boots: map[pools.MAC]bootAck{}}
	for round := range 20 {
		lines := killAfter(t, dir, rand.IntN(400))
		for _, line := range lines {
			acked.read(t, line)
		}
		acked.check(t, dir, round)
		if t.Failed() {
			return
		}
	}
	if len(acked.leases) < 50 {
		t.Errorf("only %d leases were seen: the test shows nothing", len(acked.leases))
	}
}

// killAfter starts the load, kills it after n lines, and returns all complete
// lines that it had printed.
func killAfter(t *testing.T, dir string, n int) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			break // a last line without its end was never acknowledged in full
		}
		lines = append(lines, strings.TrimSpace(line))
		if len(lines) == n+1 {
			if n%2 == 0 { // else at once: the line is as fresh as can be
				time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // killed
	if len(lines) <= n {
		t.Fatalf("the load ended by itself after %d lines", len(lines))
	}
	return lines
}

// ack is a lease that was acknowledged.
type ack struct {
	addr netip.Addr
	at   int64
}

// acks is what was acknowledged, the latest of each machine.
type acks struct {
	leases map[pools.MAC]ack
	boots  map[pools.MAC]bootAck
}

// bootAck is a nonce, and whether its claim was acknowledged too. It is not
// known from when the next nonce was asked for until that was acknowledged.
type bootAck struct {
	nonce   string
	claimed bool
}

func (a *acks) read(t *testing.T, line string) {
	t.Helper()
	var what, m, value string
	var at int64
	if _, err := fmt.Sscan(line, &what, &m, &value); err != nil {
		t.Fatalf("line %q: %v", line, err)
	}
	mac, err := pools.ParseMAC(m)
	if err != nil {
		t.Fatal(err)
	}
	switch what {
	case "lease":
		if _, err := fmt.Sscan(line, &what, &m, &value, &at); err != nil {
			t.Fatal(err)
		}
		// One goroutine leases for a machine: the order of its lines is the
		// order of its commits.
		a.leases[mac] = ack{netip.MustParseAddr(value), at}
	case "ask":
		delete(a.boots, mac) // the nonce before may be void from here on
	case "nonce", "claim":
		a.boots[mac] = bootAck{nonce: value, claimed: what == "claim"}
	}
}

// check opens the state and looks for what was acknowledged. What was asked
// for and not acknowledged may be there or not.
func (a *acks) check(t *testing.T, dir string, round int) {
	t.Helper()
	s, err := state.Open(dir, state.Options{})
	if err != nil {
		t.Fatalf("round %d: %v", round, err)
	}
	defer shut(t, s)
	unique(t, s.Leases)
	byAddr, byMAC := map[netip.Addr]state.Lease{}, map[pools.MAC]state.Lease{}
	for _, l := range s.Leases.List() {
		byAddr[l.Address], byMAC[l.MAC] = l, l
	}
	for mac, want := range a.leases {
		expires := time.Unix(0, want.at).Add(crashPlan(0).Lease.D())
		if l, ok := byMAC[mac]; ok && !l.Expires.Before(expires) {
			continue // this lease, or a later one of the machine
		}
		if l, ok := byAddr[want.addr]; ok && l.MAC != mac && l.Expires.After(expires) {
			continue // it had expired and another machine got it
		}
		t.Errorf("round %d: lease %s of %s until %s is lost; there is %+v and %+v",
			round, want.addr, mac, expires, byMAC[mac], byAddr[want.addr])
	}
	for mac, boot := range a.boots {
		if err := s.Boots.Claim(mac, boot.nonce, []byte("thief")); boot.claimed && !errors.Is(err, pools.ErrClaimed) {
			t.Errorf("round %d: the claim of %s is lost: another key got %v", round, mac, err)
		} else if errors.Is(err, pools.ErrNonce) {
			t.Errorf("round %d: the nonce of %s is lost", round, mac)
		}
	}
}
