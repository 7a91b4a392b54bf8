// Package e2e_test boots real machines: emulated ones, with real firmware, on a
// wire of their own, against real control planes.
//
// These tests need root and a Debian host, and minutes. With CI=true or
// DROVER_E2E=1 they always run: what is missing is then a failure, not a skip.
package e2e_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/pools/boots"
)

// enough is the time that a cold build and the boots may take.
const enough = 25 * time.Minute

// build makes drover and what it takes to run it, or skips the test, loudly,
// where that cannot be.
func build(t *testing.T) *site.Built {
	t.Helper()
	able(t)
	b, err := site.Build(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// able skips the test, loudly, where there can be no virtual rack. With CI=true
// or DROVER_E2E=1 that is a failure.
func able(t *testing.T) {
	t.Helper()
	must := fixture.Must()
	if testing.Short() && !must {
		fixture.Missing(t, "-short")
	}
	if deadline, ok := t.Deadline(); ok && time.Until(deadline) < enough && !must {
		fixture.Missing(t, "needs -timeout 60m (make e2e runs this test)")
	}
	if err := site.Check(t.Context()); err != nil {
		fixture.Missing(t, err)
	}
}

// open opens a site and closes it at the end of the test.
func open(t *testing.T, b *site.Built, c site.Config) *site.Site {
	t.Helper()
	c.Dir = t.TempDir() + "/site"
	s, err := b.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// story prints, for a test that failed, what the machine and the server said.
func story(t *testing.T, s *site.Site, g *lab.Guest) {
	t.Helper()
	if t.Failed() {
		t.Logf("console of %s:\n%s\n\ndrover:\n%s", g.Machine.Name, strings.Join(g.Tail(60), "\n"), s.Drover.Tail(60))
	}
}

// until polls ask until it returns true.
func until(ctx context.Context, t *testing.T, what string, ask func() (bool, error)) {
	t.Helper()
	for {
		ok, err := ask()
		if ok {
			t.Logf("%s", what)
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v; last: %v", what, context.Cause(ctx), err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// bootOf returns the last boot of a machine.
func bootOf(ctx context.Context, t *testing.T, s *site.Site, mac string) (last boots.Record) {
	t.Helper()
	boots, err := s.Drover.Boots(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range boots {
		if b.MAC.String() == mac && b.ID > last.ID {
			last = b
		}
	}
	return last
}

// reached reports whether a boot came to a step without an error.
func reached(b boots.Record, step boots.Step) bool {
	_, ok := b.Reached(step)
	return ok
}
