package script

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"drover/e2e/fixture"
	"drover/pools"
)

var testMAC = pools.MAC{0x52, 0x54, 0, 0x77, 0, 1}

// record returns a function that records what a script prints.
func record(said *fixture.Log) func(topic, format string, args ...any) {
	return func(topic, format string, args ...any) { said.Printf(topic+": "+format, args...) }
}

func TestScript(t *testing.T) {
	for _, tt := range []struct {
		name, run, said, err string
	}{
		{"its surroundings", "#!/bin/sh\necho $DROVER_NODE $DROVER_STAGE; pwd; echo $HOME $SECRET",
			"script: net: cart01 pre-init\nscript: net: /\nscript: net: /root\nscript: net: done", ""},
		{"of the shell, without saying so", "echo $0 | sed 's,.*/,,'; echo oops >&2", "script: net: pre-init-net\nscript: net: oops\n", ""},
		{"with input", "cat; echo end", "script: net: end", ""},
		{"failing", "echo first; echo it is broken; exit 3", "script: net: first", `script "net": exit status 3, after it printed: it is broken`},
		{"failing in silence", "exit 4", "", `script "net": exit status 4`},
		{"without its interpreter", "#!/no/such/shell\n", "", `script "net": fork/exec`},
		{"that prints a token", "echo abcdef.0123456789abcdef; exit 1", "script: net: [token]", "after it printed: [token]"},
		{"that reads LTSP's variables", "#!/bin/sh\necho $DEVICE $IPCONFIG_IPV4NETMASK $RACK", "script: net: eno1 255.255.255.0 r1\n", ""},
		{"that leaves a daemon behind", "sleep 20 & echo $!; exit 0", "script: net: done", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("SECRET", "not for scripts")
			var said fixture.Log
			env := []string{"DEVICE=eno1", "IPCONFIG_IPV4NETMASK=255.255.255.0", "RACK=r1", "DROVER_NODE=cart01", "DROVER_STAGE=pre-init"}
			s := &Runner{Dir: filepath.Join(t.TempDir(), "x"), Env: env, Limit: time.Minute, Say: record(&said)}
			err := s.Run(t.Context(), pools.NamedScript{Name: "net", Stage: pools.PreInit, Run: tt.run})
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("got error %v, want %q", err, tt.err)
			}
			fixture.WantText(t, "output", said.String(), tt.said)
			fixture.WantNoText(t, "output", said.String(), "not for scripts", "abcdef.")
			if left, err := os.ReadDir(s.Dir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v (%v)", left, err)
			}
			killDaemon(said.String())
		})
	}
}

// TestSourcedScript: a file without an interpreter of its own that is read with ".", as LTSP
// reads it: its "exit" ends it, and functions and "set -e" work.
func TestSourcedScript(t *testing.T) {
	for _, tt := range []struct{ name, run, said, err string }{
		{"functions", "bits() { IFS=.; for n in $1; do echo $n; done; }\nset -e\nX=$(bits $IPCONFIG_IPV4ADDR)\necho $X ${MAC_ADDRESS}\n", "script: net: 10 77 0 11 52:54:00:77:00:01\n", ""},
		{"a here-document", "cat <<EOT\naddresses: [${IPCONFIG_IPV4ADDR}/24]\nEOT\n", "script: net: addresses: [10.77.0.11/24]\n", ""},
		{"failing", "set -e\necho first\nfalse\necho second\n", "script: net: first", `script "net": exit status 1`},
		{"exit", "exit 0\nfalse\n", "script: net: done", ""},
		{"a line that is no comment here", "#!/no/such/shell\necho fine\n", "script: net: fine\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var said fixture.Log
			s := &Runner{Dir: t.TempDir(), Env: []string{"IPCONFIG_IPV4ADDR=10.77.0.11", "MAC_ADDRESS=52:54:00:77:00:01"}, Limit: time.Minute, Say: record(&said)}
			err := s.Run(t.Context(), pools.NamedScript{Name: "net", Stage: pools.PostInit, Run: tt.run, Source: true})
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("got error %v, want %q", err, tt.err)
			}
			fixture.WantText(t, "output", said.String(), tt.said)
			fixture.WantNoText(t, "output", said.String(), "second")
		})
	}
}

// killDaemon ends the process whose id a script printed.
func killDaemon(said string) {
	var pid int
	if _, err := fmt.Sscanf(said, "script: net: %d\n", &pid); err == nil && pid > 1 {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

func TestScriptTakesTooLong(t *testing.T) {
	var said fixture.Log
	s := &Runner{Dir: t.TempDir(), Limit: 200 * time.Millisecond, Say: record(&said)}
	err := s.Run(t.Context(), pools.NamedScript{Name: "slow", Run: "sleep 36000 & echo waiting; wait"})
	if want := `script "slow": not done after 200ms`; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got error %v, want %q", err, want)
	}
	// The sleep holds the output open: if it were not killed too, the test would take hours.
}

func TestScriptNames(t *testing.T) {
	for _, name := range []string{"", "../x", "a/b", ".x", "a\x00"} {
		s := &Runner{Dir: t.TempDir(), Limit: time.Minute, Say: func(string, string, ...any) {}}
		if err := s.Run(t.Context(), pools.NamedScript{Name: name, Run: "exit 0"}); err == nil {
			t.Errorf("name %q: got no error", name)
		}
	}
}

func TestOfStage(t *testing.T) {
	all := []pools.NamedScript{
		{Name: "b", Stage: pools.Online}, {Name: "z", Stage: pools.PreInit}, {Name: "a", Stage: pools.Online}, {Name: "y", Stage: pools.PreInit},
	}
	var got []string
	for _, s := range append(OfStage(all, pools.PreInit), OfStage(all, pools.Online)...) {
		got = append(got, s.Name)
	}
	if want := []string{"y", "z", "a", "b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
