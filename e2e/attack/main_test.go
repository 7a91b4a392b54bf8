package attack_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"drover/e2e/attack"
	"drover/e2e/netns"
)

var (
	given = flag.String("drover", os.Getenv("DROVER_PROGRAM"), "the program to attack; default: built from this source")
	long  = flag.Bool("long", false, "attack for minutes, as make attack does")
)

// builtIn is the directory with the program that program has built; empty: none yet.
var builtIn string

// program returns the program to attack, which it builds once unless one is given.
var program = sync.OnceValues(func() (file string, err error) {
	if *given != "" {
		return filepath.Abs(*given)
	}
	if builtIn, err = os.MkdirTemp("", "drover-attack"); err != nil {
		return "", err
	}
	file = filepath.Join(builtIn, "drover")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file, "drover/cmd/drover")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return file, nil
})

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if builtIn != "" {
		_ = os.RemoveAll(builtIn) // a temporary directory
	}
	os.Exit(code)
}

// newLab makes a lab for the program under attack.
func newLab(t *testing.T) *attack.Lab {
	t.Helper()
	netns.Need(t)
	file, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return attack.NewLab(t, file)
}

// length returns how long an attack goes on: bounded in CI, or long.
func length(short, longer time.Duration) time.Duration {
	if *long {
		return longer
	}
	return short
}

// m2 is the declared machine that has to boot during the attacks.
func m2(l *attack.Lab) *attack.Machine {
	return &attack.Machine{Net: l.Machine, MAC: attack.MachineMAC}
}

// boots boots a machine, and fails the test if it does not.
func boots(t *testing.T, m *attack.Machine) time.Duration {
	t.Helper()
	took, err := m.Boot(t)
	if err != nil {
		t.Fatalf("%s does not boot: %v", m.MAC, err)
	}
	return took
}
