// Package e2e_test boots emulated machines with real firmware, on a network of their
// own, into clusters with real control planes.
//
// These tests need root, a Debian host, and minutes. With CI=true or DROVER_E2E=1 they
// always run: a missing program is then a failure, not a skip.
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

// enough is a sufficient time for a cold build and the boots.
const enough = 25 * time.Minute

// build builds drover and the other parts of a site. It skips the test, as [able] does,
// where that is impossible.
func build(t *testing.T) *site.Built {
	t.Helper()
	able(t)
	b, err := site.Build(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// able skips the test, with the reason, where a virtual rack is impossible. With CI=true
// or DROVER_E2E=1 it fails the test.
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

// story prints the console and the server's log of a failed test.
func story(t *testing.T, s *site.Site, g *lab.Guest) {
	t.Helper()
	if t.Failed() {
		t.Logf("console of %s:\n%s\n\ndrover:\n%s", g.Machine.Name, strings.Join(g.Tail(60), "\n"), s.Drover.Tail(60))
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
