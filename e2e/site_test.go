// Package e2e_test boots emulated machines with real firmware, on a network of their
// own, into clusters with real control planes.
//
// These tests need root, a Debian host, and minutes. With CI=true or DROVER_E2E=1 they
// always run: a missing program is then a failure, not a skip.
package e2e_test

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/pcap"
	"drover/e2e/lab/site"
	"drover/e2e/netns"
	"drover/pools/boots"
)

// enough is a sufficient time for a cold build and the boots.
const enough = 40 * time.Minute

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

// buildTiny is [build] with the tiny images alone. It puts the loaders into a directory that
// the caller may add to.
func buildTiny(t *testing.T, loaders string) *site.Built {
	t.Helper()
	able(t)
	b, err := site.BuildTiny(t.Context(), t.Output(), loaders)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// began has the names of the tests that run beside others.
var began sync.Map

// whole reports whether each test takes its time: CI has an hour, and [soak] the rest.
func whole() bool { return os.Getenv("DROVER_E2E_ALL") == "1" }

// soak leaves a test to "make soak". What it tests alone is the way to a Ready node, which others
// have in CI; the rest is in tests of packages.
func soak(t *testing.T) {
	t.Helper()
	if !whole() {
		t.Skip("it boots a whole system for minutes: make soak runs it, with DROVER_E2E_ALL=1")
	}
}

// able skips the test, with the reason, where a virtual rack is impossible. With CI=true
// or DROVER_E2E=1 it fails the test. From here on the test runs beside others, as many as the
// flag -parallel says: each has network namespaces and a folder of its own, and mostly waits.
func able(t *testing.T) {
	t.Helper()
	if _, again := began.LoadOrStore(t.Name(), true); !again && !strings.Contains(t.Name(), "/") {
		t.Parallel()
	}
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

// card returns the only network card of a machine.
func card(mac string) []lab.NIC { return []lab.NIC{{MAC: mac, Boot: true}} }

// powerOn powers a machine on until the end of the test, which tells its [story].
func powerOn(t *testing.T, s *site.Site, m lab.Machine) *lab.Guest {
	t.Helper()
	g, err := s.PowerOn(m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		story(t, s, g)
		if err := g.PowerOff(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// says waits for a line on the console.
func says(ctx context.Context, t *testing.T, g *lab.Guest, want string) {
	t.Helper()
	re := regexp.MustCompile(want)
	line, err := g.WaitConsole(ctx, re)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%6.1f s: %s", time.Since(g.Started).Seconds(), re.FindString(line)) // some lines are boxes
}

// neighbor makes another host on the wire of a rack, with interface eth0. The rack's end of
// its cable has the host's name.
func neighbor(t *testing.T, rack netns.Namespace, name string) netns.Namespace {
	t.Helper()
	host := netns.NewNamespace(t, string(rack)+"-"+name)
	rack.Link(t, name, host, "eth0")
	rack.IP(t, "link", "set", name, "master", lab.Bridge, "up")
	host.IP(t, "link", "set", "eth0", "up")
	rack.AwaitPort(t, name)
	return host
}

// story prints the console and the server's log of a failed test.
func story(t *testing.T, s *site.Site, g *lab.Guest) {
	t.Helper()
	if t.Failed() {
		t.Logf("console of %s:\n%s\n\ndrover:\n%s", g.Machine.Name, strings.Join(g.Tail(60), "\n"), s.Drover.Tail(60))
	}
}

// logBoot logs the steps of the last boot of a machine, and returns it.
func logBoot(ctx context.Context, t *testing.T, s *site.Site, mac string) boots.Record {
	t.Helper()
	b := bootOf(ctx, t, s, mac)
	for _, step := range b.Steps {
		t.Logf("%s %-12s %s %s", step.Time.Format("15:04:05.000"), step.Step, step.Detail, step.Error)
	}
	return b
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

// record captures the frames of a rack. The function that it returns ends the capture, and
// returns its file.
func record(ctx context.Context, t *testing.T, s *site.Site, name string) (stop func() string) {
	t.Helper()
	c, err := s.Capture(ctx, filepath.Join(s.Dir, name+".pcap"))
	if err != nil {
		t.Fatal(err)
	}
	return func() string {
		t.Helper()
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
		return c.File
	}
}

// frames returns the frames of a capture, each valid until the next one.
func frames(t *testing.T, file string) iter.Seq[[]byte] {
	t.Helper()
	return func(yield func([]byte) bool) {
		for frame, err := range pcap.Frames(file) {
			if err != nil {
				t.Fatal(err)
			}
			if !yield(frame) {
				return
			}
		}
	}
}

// reached reports whether a boot came to a step without an error.
func reached(b boots.Record, step boots.Step) bool {
	_, ok := b.Reached(step)
	return ok
}
