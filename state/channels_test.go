package state_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/state"
)

// generationOf returns the ID of a generation of the tests.
func generationOf(n int) string { return fmt.Sprintf("%064x", n) }

// promote makes a generation the current one of a channel.
func promote(c *state.Channels, image, channel, id string) error {
	return c.Change(image, func(now pools.ImageChannels) (pools.ImageChannels, error) {
		return now.With(channel, pools.Promotion{ID: id}), nil
	})
}

// loadChannel moves the channel of an image, until it is killed.
func loadChannel(s *state.Store, image string, say func(string, ...any)) {
	for {
		id := generationOf(1 + rand.IntN(1000))
		say("moving %s %s", image, id)
		if promote(s.Channels, image, pools.StableChannel, id) == nil {
			say("moved %s %s", image, id)
		}
		time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond)
	}
}

// channelAcks is what each channel may have after a kill, by image: the generation that was acknowledged
// last, empty for none, and the one that was asked for after that.
type channelAcks map[string][]string

// read handles a line of the load. It returns false if it is not about channels.
func (a channelAcks) read(line string) bool {
	var what, image, id string
	_, _ = fmt.Sscan(line, &what, &image, &id)
	switch what {
	case "moving":
		if a[image] == nil {
			a[image] = []string{""} // it has none yet
		}
		a[image] = append(a[image], id)
	case "moved":
		a[image] = []string{id}
	default:
		return false
	}
	return true
}

// check fails unless each channel has the generation that was acknowledged, or the one that was asked
// for, whole.
func (a channelAcks) check(t *testing.T, c *state.Channels) {
	t.Helper()
	for image, want := range a {
		got := c.Of(image).Current(pools.StableChannel)
		if !slices.Contains(want, got) {
			t.Errorf("the channel of %s has %q, want one of %.12q", image, got, want)
		}
		a[image] = []string{got} // what it is now, it stays
	}
}

// TestChannelsThatAreNotStored: a promotion that could not be stored is not there, now or after a restart.
func TestChannelsThatAreNotStored(t *testing.T) {
	dir := t.TempDir()
	open := func() *state.Store {
		s, err := state.Open(dir, state.Options{Patience: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	if err := promote(s.Channels, "a", "stable", generationOf(1)); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the state is open", func() bool { return s.Health() == nil })
	heal := breakDisk(s, false)
	for _, image := range []string{"a", "b"} {
		if err := promote(s.Channels, image, "stable", generationOf(2)); err == nil {
			t.Errorf("%s was promoted, and is not stored", image)
		}
	}
	want := func(s *state.Store) {
		t.Helper()
		if got := s.Channels.Of("a").Current("stable"); got != generationOf(1) {
			t.Errorf("a has %q", got)
		}
		if all := s.Channels.All(); len(all) != 1 {
			t.Errorf("got %v", all)
		}
	}
	want(s)
	heal()
	fixture.Eventually(t, "the disk has taken all", func() bool { return s.Health() == nil })
	shut(t, s)
	s = open()
	want(s)
	refused := errors.New("refused")
	err := s.Channels.Change("a", func(c pools.ImageChannels) (pools.ImageChannels, error) {
		return c.With("stable", pools.Promotion{ID: generationOf(3)}), refused
	})
	if !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	want(s)
	shut(t, s)
}

// TestFallBacksAreKept: what is known of a node outlives a restart, and a node without news costs no write.
func TestFallBacksAreKept(t *testing.T) {
	dir := t.TempDir()
	s, err := state.Open(dir, state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	trial := pools.ImageTrial{Image: "a", Good: generationOf(1), Failed: generationOf(2), Boots: []string{"x", "y"}, FellBack: epoch}
	s.FallBacks.Edit(func(string, pools.ImageTrial) pools.ImageTrial { return trial }, "m1", "m2", "m3")
	s.FallBacks.Edit(func(string, pools.ImageTrial) pools.ImageTrial { return pools.ImageTrial{} }, "m2", "m9")
	s.FallBacks.Edit(func(node string, t pools.ImageTrial) pools.ImageTrial { // all
		if node == "m3" {
			return t.Cleared()
		}
		return t
	})
	shut(t, s)
	if s, err = state.Open(dir, state.Options{}); err != nil {
		t.Fatal(err)
	}
	defer shut(t, s)
	if all := s.FallBacks.All(); len(all) != 2 || !all["m1"].Equal(trial) || !all["m3"].Equal(trial.Cleared()) {
		t.Errorf("got %v", all)
	}
}
