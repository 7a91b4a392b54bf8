package state_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
	"drover/state"
)

// The environment variables of the child process of TestKill: the directory of
// the state, and the time at which the clock of the test began.
const (
	crashDir   = "DROVER_TEST_CRASH_DIR"
	crashBegan = "DROVER_TEST_CRASH_BEGAN"
)

// crashLog is the maximum size of a log in bytes. It is so small that kills
// also hit snapshots and the change to the next log.
const crashLog = 16 << 10

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		began, err := time.Parse(time.RFC3339Nano, os.Getenv(crashBegan))
		if err == nil {
			err = load(dir, began, os.Stdout)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// crashOptions are the options of all stores of a test. Their clock, which is for boots,
// runs as usual, a year after that of the leases, so that no lease is cut at a start.
func crashOptions(began time.Time) state.Options {
	return testOptions(state.Options{LogSize: crashLog, Now: func() time.Time { return epoch.AddDate(1, 0, 0).Add(time.Since(began)) }})
}

// load changes the state at dir as fast as it can, until the test kills it. It
// prints a line for each change after the store acknowledged it.
func load(dir string, began time.Time, w io.Writer) error {
	s, err := state.Open(dir, crashOptions(began))
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
	for n := range crashLoaders {
		wg.Go(func() { loadLeases(s, n, began, say) })
	}
	for n := range 16 {
		wg.Go(func() { loadBoots(s, crashPlan(1000+n), say) })
	}
	for n := range 4 {
		wg.Go(func() { loadNodes(s, n, say) })
		wg.Go(func() { loadChannel(s, fmt.Sprint("image-", n), say) })
	}
	wg.Go(func() { loadConfigs(s) })
	wg.Wait()
	return nil
}

func loadBoots(s *state.Store, p *resolve.Plan, say func(string, ...any)) {
	for {
		say("script %s -", p.MAC)
		nonce, err := s.Boots.Issue(p)
		if err != nil {
			continue
		}
		say("nonce %s %s", p.MAC, nonce)
		if err := s.Boots.Claim(p.MAC, nonce, []byte(nonce)); err == nil {
			say("claim %s %s", p.MAC, nonce)
		}
		_ = s.Boots.Step(p.MAC, nonce, boots.Event{Step: boots.StepInit})
		// The claim stays for a moment, so that some kills hit it.
		time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond)
	}
}

// loadNodes adds, changes and removes a node of the API.
func loadNodes(s *state.Store, share int, say func(string, ...any)) {
	for {
		n := node(fmt.Sprintf("node-%d-%d", share, rand.IntN(5)), fmt.Sprintf("10.9.0.%d", 1+rand.IntN(250)))
		say("change %s", n.Name)
		if rand.IntN(4) == 0 {
			if s.Nodes.ChangeNodes(nil, []string{n.Name}) == nil {
				say("removed %s", n.Name)
			}
		} else if s.Nodes.ChangeNodes([]pools.PoolNode{n}, nil) == nil {
			say("node %s %s", n.Name, n.IP)
		}
		time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond)
	}
}

// TestKill kills a process that changes the state, at random instants, and
// checks that the state has every acknowledged change.
func TestKill(t *testing.T) {
	rounds := fixture.Attack(200, 1000)
	if testing.Short() {
		rounds = 20
	}
	dir, began := t.TempDir(), time.Now()
	leases, boots, nodes, channels := newLeaseAcks(), bootAcks{}, nodeAcks{}, channelAcks{}
	seen := 0
	for round := range rounds {
		lines := killAfter(t, dir, began, rand.IntN(400))
		for _, line := range lines {
			if !nodes.read(t, line) && !channels.read(line) && !leases.read(t, line) {
				boots.read(t, line)
			}
		}
		seen += len(lines)
		s, err := state.Open(dir, crashOptions(began))
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		leases.check(t, s.Leases, crashClock(began))
		boots.check(t, s.Boots)
		nodes.check(t, s.Nodes)
		checkConfigs(t, s.Configs)
		channels.check(t, s.Channels)
		if got := s.Damage(); got > 0 {
			t.Errorf("%d parts of the state are damaged by a kill", got)
		}
		shut(t, s)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	t.Logf("%d lines; %d leases and quarantines were in force after a kill", seen, leases.held)
	if leases.held < rounds {
		t.Errorf("only %d leases and quarantines were in force after a kill: the test shows nothing", leases.held)
	}
}

// killAfter starts the load and kills it after n lines. It returns all complete
// lines that the load had printed.
func killAfter(t *testing.T, dir string, began time.Time, n int) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashBegan+"="+began.Format(time.RFC3339Nano))
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
			if n%2 == 0 { // otherwise the kill follows the line at once
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

// bootAck is an acknowledged nonce, and whether its claim was acknowledged too.
// The nonce of a machine is unknown while the next one is requested and not yet
// acknowledged.
type bootAck struct {
	nonce   string
	claimed bool
}

// bootAcks is the boot of each machine that was acknowledged last, by MAC.
type bootAcks map[pools.MAC]bootAck

func (a bootAcks) read(t *testing.T, line string) {
	t.Helper()
	var what, m, nonce string
	if _, err := fmt.Sscan(line, &what, &m, &nonce); err != nil {
		t.Fatalf("line %q: %v", line, err)
	}
	mac, err := pools.ParseMAC(m)
	if err != nil {
		t.Fatal(err)
	}
	switch what {
	case "script":
		delete(a, mac) // from here on the earlier nonce may be invalid
	case "nonce", "claim":
		a[mac] = bootAck{nonce: nonce, claimed: what == "claim"}
	default:
		t.Fatalf("line %q: what is that", line)
	}
}

// check fails unless the table has all acknowledged nonces and claims. Requests
// without an acknowledgement may be there or not.
func (a bootAcks) check(t *testing.T, b *boots.Table) {
	t.Helper()
	for mac, boot := range a {
		if err := b.Claim(mac, boot.nonce, []byte("thief")); boot.claimed && !errors.Is(err, boots.ErrClaimed) {
			t.Errorf("the claim of %s is lost: another key got %v", mac, err)
		} else if errors.Is(err, boots.ErrNonce) {
			t.Errorf("the nonce of %s is lost", mac)
		}
	}
}

// nodeAcks is the address of each node as it was acknowledged last, by name; "" for one
// that was removed. A node with a change that was not acknowledged is not in it.
type nodeAcks map[string]string

// read handles a line of the load. It returns false if it is not about nodes.
func (a nodeAcks) read(t *testing.T, line string) bool {
	t.Helper()
	var what, name, ip string
	switch n, _ := fmt.Sscan(line, &what, &name, &ip); {
	case what == "change" && n == 2:
		delete(a, name)
	case what == "removed" && n == 2, what == "node" && n == 3:
		a[name] = ip
	default:
		return false
	}
	return true
}

func (a nodeAcks) check(t *testing.T, n *state.Nodes) {
	t.Helper()
	all, err := n.Nodes()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, node := range all {
		got[node.Name] = node.IP.String()
	}
	for name, want := range a {
		if got[name] != want {
			t.Errorf("node %s has the address %q, want %q", name, got[name], want)
		}
	}
}
