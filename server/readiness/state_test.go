package readiness

import (
	"errors"
	"log/slog"
	"testing"

	"drover/e2e/fixture"
)

// sick is a state with a condition.
type sick struct {
	err     error
	damaged int
}

func (s sick) Health() error { return s.err }
func (s sick) Damage() int   { return s.damaged }

// M4: /readyz warns of damage.
func TestDamageProblems(t *testing.T) {
	if got := damage(sick{}); len(got) != 0 {
		t.Errorf("a healthy state: got %v", got)
	}
	got := damage(sick{damaged: 3})
	if len(got) != 1 || !got[0].Warning || got[0].Brief == "" {
		t.Fatalf("got %+v, want a warning", got)
	}
	fixture.WantText(t, "warning", got[0].Problem, "3 parts", "*.damaged")
}

// M3: the directory of the state fails if the state says that it is not stored.
func TestStateNotStored(t *testing.T) {
	for _, want := range []error{nil, errors.New("no space left on device")} {
		m := NewDisks(slog.New(slog.DiscardHandler), t.TempDir(), "", "", sick{err: want})
		if d := m.directories[0]; !errors.Is(d.check(d.path), want) {
			t.Errorf("got %v, want %v", d.check(d.path), want)
		}
	}
}
