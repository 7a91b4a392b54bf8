package config_test

import (
	"fmt"
	"os"
	"testing"

	"drover/e2e/fixture"
	"drover/e2e/netns"
	"drover/pools/config"
)

// TestLocals6: addresses as router advertisements make them, with an end, do not move the one that
// is configured.
func TestLocals6(t *testing.T) {
	netns.Need(t)
	id := fmt.Sprintf("drvlocals%d", os.Getpid())
	n, other := netns.NewNamespace(t, id+"a"), netns.NewNamespace(t, id+"b")
	n.Link(t, "srv", other, "cli")
	n.IP(t, "link", "set", "srv", "up")
	other.IP(t, "link", "set", "cli", "up")
	want := func(what, want string) {
		t.Helper()
		fixture.Retry(t, what, func() error {
			return n.Do(func() error {
				var got []string
				for _, l := range config.Locals6([]string{"srv"}) {
					got = append(got, l.Prefix.String())
				}
				if fmt.Sprint(got) != want {
					return fmt.Errorf("got %s, want %s", got, want)
				}
				return nil
			})
		})
	}
	want("nothing but link-local addresses", "[]")
	n.IP(t, "addr", "add", "fd00:77::aa/64", "dev", "srv", "nodad", "valid_lft", "3000", "preferred_lft", "2000")
	want("an address with an end alone", "[fd00:77::aa/64]")
	n.IP(t, "addr", "add", "fd00:77::ee/64", "dev", "srv", "nodad", "valid_lft", "3000", "preferred_lft", "0")
	want("a deprecated one", "[fd00:77::aa/64]")
	n.IP(t, "addr", "add", "fd00:77::1/64", "dev", "srv", "nodad")
	want("a permanent one", "[fd00:77::1/64]")
	n.IP(t, "addr", "add", "fd00:77::bb/64", "dev", "srv", "nodad", "valid_lft", "3000", "preferred_lft", "2000")
	n.IP(t, "addr", "add", "fd00:78::2/64", "dev", "srv", "nodad")
	want("two permanent ones", "[fd00:78::2/64 fd00:77::1/64]")
	n.IP(t, "addr", "del", "fd00:78::2/64", "dev", "srv")
	want("the first again", "[fd00:77::1/64]")
}
