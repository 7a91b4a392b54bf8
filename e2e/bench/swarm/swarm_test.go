package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/e2e/bench/kit"
	main "drover/e2e/bench/swarm"
	"drover/e2e/fixture"
	"drover/e2e/netns"
)

func TestFlags(t *testing.T) {
	tests := []struct {
		args []string
		want string // part of the error; empty: none
	}{
		{nil, ""},
		{[]string{"-n", "500", "-racks", "10", "-every", "1s", "-slow", "5", "-mad", "7", "-loss", "1.5", "-delay", "2ms"}, ""},
		{[]string{"-n", "0"}, "want 1 to 60000 machines"},
		{[]string{"-n", "60000", "-mad", "1"}, "want 1 to 60000 machines"},
		{[]string{"-n", "3", "-racks", "4"}, "no empty rack"},
		{[]string{"-n", "3", "-slow", "4"}, "there are 3 machines"},
		{[]string{"-n", "3", "-undeclared", "4"}, "there are 3 machines"},
		{[]string{"-servers", "2", "-kill", "all"}, ""},
		{[]string{"-servers", "2", "-kill", "script,config"}, ""},
		{[]string{"-servers", "3"}, "want 1 or 2 servers"},
		{[]string{"-servers", "2", "-undeclared", "1"}, "declared machines alone"},
		{[]string{"-kill", "all"}, "want 2 servers"},
		{[]string{"-servers", "2", "-kill", "lunch"}, "want 2 servers"},
		{[]string{"-loss", "60"}, "up to 50 percent"},
		{[]string{"-delay", "2s"}, "up to 1s"},
		{[]string{"-root", "0"}, "want 1 to 1024 MB"},
		{[]string{"now"}, `unknown argument "now"`},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			var stderr bytes.Buffer
			_, err := main.ParseOptions(tt.args, &stderr)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestQuantiles(t *testing.T) {
	var all []time.Duration
	for i := range 100 {
		all = append(all, time.Duration(i+1)*time.Second)
	}
	if got, want := main.NewStep("x", all), (main.Step{Name: "x", Count: 100, P50: 50, P99: 99, Max: 100}); got != want {
		t.Errorf("of 1 s to 100 s: got %+v, want %+v", got, want)
	}
	if got, want := main.NewStep("x", all[:1]), (main.Step{Name: "x", Count: 1, P50: 1, P99: 1, Max: 1}); got != want {
		t.Errorf("of 1 s: got %+v, want %+v", got, want)
	}
}

// One address for two machines is what must never happen.
func TestOneAddressTwice(t *testing.T) {
	holds := main.Owners()
	for range 2 {
		if err := holds(1, "10.29.1.2"); err != nil {
			t.Errorf("a machine that leases its address again: %v", err)
		}
	}
	if err := holds(2, "10.29.1.2"); err == nil || !strings.Contains(err.Error(), "is given to") {
		t.Errorf("two machines with one address: got %v, want an error", err)
	}
}

func TestFailure(t *testing.T) {
	if err := main.Failure(); err != nil {
		t.Errorf("without a failure: %v", err)
	}
	if err := main.Failure("a machine"); err == nil {
		t.Error("with a failure: no error")
	}
}

// programs builds the tool and the server, once for a test, and returns a function that runs them.
func programs(t *testing.T) (run func(t *testing.T, args ...string) (main.Report, error)) {
	t.Helper()
	netns.Need(t)
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		fixture.Missing(t, err)
	}
	dir := t.TempDir()
	tool, drover := filepath.Join(dir, "swarm"), filepath.Join(dir, "drover")
	for out, pkg := range map[string]string{tool: "drover/e2e/bench/swarm", drover: "drover/cmd/drover"} {
		if err := kit.Compile(t.Context(), out, pkg); err != nil {
			t.Fatal(err)
		}
	}
	return func(t *testing.T, args ...string) (r main.Report, err error) {
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
		defer cancel()
		result := filepath.Join(t.TempDir(), "report.json")
		cmd := exec.CommandContext(ctx, tool, append(args, "-name", "drover-swarm-test", "-drover", drover, "-json", result)...)
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		text, rerr := os.ReadFile(result)
		if rerr == nil {
			rerr = json.Unmarshal(text, &r)
		}
		if rerr != nil {
			t.Fatalf("no report: %v", rerr)
		}
		return r, err
	}
}

// TestTwoServers boots fifty declared machines again and again from two servers, one of which is
// killed when all machines are at one step of their boot, at each step in its turn. All machines
// come online, and no server is left with a boot that has no end.
func TestTwoServers(t *testing.T) {
	run := programs(t)
	const machines = 50
	r, err := run(t, "-n", "50", "-servers", "2", "-kill", "all")
	if err != nil || r.Rounds < 10 || r.Up != machines*r.Rounds || r.Failures > 0 {
		t.Errorf("got %v, %+v; want %d boots in each round", err, r, machines)
	}
}

// TestSwarm boots 500 machines at once; then some from a wire that loses packets, with slow,
// mad and undeclared ones among them; and sees a run fail whose machines have no time.
func TestSwarm(t *testing.T) {
	run := programs(t)
	t.Run("at once", func(t *testing.T) {
		r, err := run(t, "-n", "500", "-undeclared", "50")
		if err != nil || r.Up != 500 || r.ServerSeconds <= 0 || r.ServerPeak <= 0 || r.Bytes < 500*6<<20 {
			t.Errorf("got %v, %+v; want 500 machines that come up", err, r)
		}
		for _, s := range r.Steps {
			if s.Count < 500 || s.P50 > s.P99 || s.P99 > s.Max {
				t.Errorf("step %+v: want one of each machine", s)
			}
		}
	})
	t.Run("under stress", func(t *testing.T) {
		r, err := run(t, "-n", "40", "-racks", "4", "-every", "500ms", "-undeclared", "8", "-slow", "3", "-mad", "5", "-loss", "1", "-delay", "1ms")
		if err != nil || r.Up != 40 || r.Repeats["mad"] == 0 {
			t.Errorf("got %v, %+v; want 40 machines that come up, and mad ones", err, r)
		}
	})
	t.Run("no time", func(t *testing.T) {
		r, err := run(t, "-n", "2", "-patience", "1ms")
		if err == nil || r.Up != 0 || r.Failures != 2 {
			t.Errorf("got %v, %+v; want a failure of both machines", err, r)
		}
	})
}
