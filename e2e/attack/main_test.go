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

// built builds the program once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "drover-attack")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "drover")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file, "drover/cmd/drover")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return file, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return file, nil
})

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if *given == "" && builtAny {
		if file, _ := built(); file != "" {
			_ = os.RemoveAll(filepath.Dir(file)) // a temporary directory
		}
	}
	os.Exit(code)
}

// builtAny is set once a test has used built.
var builtAny bool

// newLab makes a lab for the program under attack.
func newLab(t *testing.T) *attack.Lab {
	t.Helper()
	netns.Need(t)
	if *given != "" {
		file, err := filepath.Abs(*given)
		if err != nil {
			t.Fatal(err)
		}
		return attack.NewLab(t, file)
	}
	builtAny = true
	file, err := built()
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
