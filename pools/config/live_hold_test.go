package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/include"
)

// braked is a farm whose nodes are in an included file.
type braked struct {
	t    *testing.T
	dir  string
	live *config.Live
}

const rackNodes = 40

func newBraked(t *testing.T, server string) *braked {
	b := &braked{t: t, dir: t.TempDir()}
	b.write("drover.yaml", fmt.Sprintf(`server: {interfaces: [eth1], address: 10.28.0.2%s}
include: conf.d/*.yaml
subnets: [{cidr: 10.28.0.0/16}]
pools: [{name: web, image: debian-12, nodes: [{name: m1, macs: ["52:54:00:00:00:01"], ip: 10.28.0.11}]}]
`, server))
	b.write("conf.d/tags.yaml", "tags: {t: {}}\n")
	b.rack(rackNodes)
	b.start()
	return b
}

func (b *braked) write(name, text string) {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		b.t.Fatal(err)
	}
}

// rack writes the file with a number of nodes; 0: it is gone.
func (b *braked) rack(nodes int) {
	b.t.Helper()
	if nodes == 0 {
		if err := os.Remove(filepath.Join(b.dir, "conf.d/rack.yaml")); err != nil {
			b.t.Fatal(err)
		}
		return
	}
	text := "pools:\n  - name: rack\n    image: debian-12\n    nodes:\n"
	for i := range nodes {
		text += fmt.Sprintf("      - {name: r%d, macs: [\"52:54:00:00:01:%02x\"], ip: 10.28.1.%d}\n", i, i, i+1)
	}
	b.write("conf.d/rack.yaml", text)
}

func (b *braked) source() config.Source {
	return config.Source{File: filepath.Join(b.dir, "drover.yaml"), Copy: filepath.Join(b.dir, "copy")}
}

func (b *braked) start() {
	b.t.Helper()
	var err error
	if b.live, err = config.NewLive(b.source(), &memory{}); err != nil {
		b.t.Fatal(err)
	}
}

// reload reads the file again, and checks how many nodes there are and why the file is held.
func (b *braked) reload(when, yes string, nodes int, why pools.HeldWhy) config.Reloaded {
	b.t.Helper()
	r, err := b.live.ReloadSized(yes)
	if err != nil {
		b.t.Fatalf("%s: %v", when, err)
	}
	b.want(when, nodes, why)
	if (r.Held == nil) != (why == "") || r.Text == nil || r.Text.Digest() != r.After {
		b.t.Errorf("%s: got %+v", when, r)
	}
	return r
}

func (b *braked) want(when string, nodes int, why pools.HeldWhy) {
	b.t.Helper()
	held, got := b.live.Status().Held, len(b.live.Farm().Nodes())
	if got != nodes || held == nil && why != "" || held != nil && held.Why != why {
		b.t.Errorf("%s: got %d nodes, held %+v, want %d, %q", when, got, held, nodes, why)
	}
}

// TestBrake: a file that is absent for a moment removes no node, and neither does a restart then.
func TestBrake(t *testing.T) {
	const all = rackNodes + 1
	b := newBraked(t, "")
	b.want("at the start", all, "")
	before := b.live.Farm()
	b.rack(0)
	held := b.reload("the file is gone", "", all, pools.HeldByBrake).Held
	if b.live.Farm() != before {
		t.Error("the farm is another one")
	}
	if s := held.Size; s.Removed.Count != rackNodes || s.Before != all || held.Limit != 5 || !strings.Contains(held.Text(), "40 removed") || strings.Contains(held.Text(), "r0") {
		t.Errorf("got %+v: %s", held, held.Text())
	}
	since := held.Since
	if again := b.reload("asked again", "", all, pools.HeldByBrake).Held; !again.Since.Equal(since) || again.SHA256 != held.SHA256 {
		t.Errorf("asked again: got %+v", again)
	}
	b.start()
	b.want("after a restart", all, pools.HeldByBrake)
	b.rack(rackNodes)
	b.reload("the file is back", "", all, "")

	b.rack(rackNodes - 5)
	b.reload("five nodes are gone", "", all-5, "")
	b.rack(0)
	b.reload("an answer to another change", strings.Repeat("0", 64), all-5, pools.HeldByBrake)
	b.reload("yes", b.live.Status().Held.SHA256, 1, "")
	b.start()
	b.want("after another restart", 1, "")
	b.rack(rackNodes)
	b.reload("only new nodes", "", all, "")
}

// TestBrakeMoves: nodes that move to another cluster or get another address count, too.
func TestBrakeMoves(t *testing.T) {
	b := newBraked(t, ", brake: {nodes: 3, share: 50%}") // of 41: 20
	text := func(old, new string, n int) {
		t.Helper()
		path := filepath.Join(b.dir, "conf.d/rack.yaml")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b.write("conf.d/rack.yaml", strings.Replace(string(data), old, new, n))
	}
	text("ip: 10.28.1.", "ip: 10.28.2.", 20)
	b.reload("20 other addresses", "", rackNodes+1, "")
	b.rack(rackNodes)
	b.reload("their addresses of before", "", rackNodes+1, "")
	text("ip: 10.28.1.", "ip: 10.28.2.", -1)
	b.reload("21 other addresses", "", rackNodes+1, pools.HeldByBrake)
	b.rack(rackNodes)
	b.write("conf.d/tags.yaml", "clusters: [{name: a, kubeconfig: a.kubeconfig}]\n")
	text("image: debian-12", "image: debian-12\n    cluster: a", 1)
	if held := b.reload("another cluster", "", rackNodes+1, pools.HeldByBrake).Held; held.Size.Moved.Count != rackNodes {
		t.Errorf("got %+v", held)
	}
}

// TestBrakeOff: the brake of the active config counts, not that of the change.
func TestBrakeOff(t *testing.T) {
	b := newBraked(t, "")
	main := b.source().File
	data, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	off := strings.Replace(string(data), "10.28.0.2", "10.28.0.2, brake: {nodes: 0}", 1)
	b.write("drover.yaml", off)
	b.rack(0)
	b.reload("off with the change", "", rackNodes+1, pools.HeldByBrake)
	b.rack(rackNodes)
	b.reload("off", "", rackNodes+1, "")
	b.rack(0)
	b.reload("off before the change", "", 1, "")
}

// TestDrop: a change that was dropped stays so until the file changes.
func TestDrop(t *testing.T) {
	const all = rackNodes + 1
	b := newBraked(t, "")
	if _, err := b.live.Drop(b.live.Status().Digest); !errors.Is(err, pools.ErrNotHeld) {
		t.Errorf("nothing waits: got %v", err)
	}
	b.rack(0)
	held := b.reload("gone", "", all, pools.HeldByBrake).Held
	if _, err := b.live.Drop(b.live.Status().Digest); !errors.Is(err, pools.ErrNotHeld) {
		t.Errorf("another change waits: got %v", err)
	}
	if _, err := b.live.Drop(held.SHA256); err != nil {
		t.Fatal(err)
	}
	b.want("dropped", all, pools.HeldDropped)
	b.reload("dropped, and asked", "", all, pools.HeldDropped)
	if _, err := b.live.Drop(held.SHA256); !errors.Is(err, pools.ErrNotHeld) {
		t.Errorf("dropped twice: got %v", err)
	}
	b.rack(1)
	b.reload("changed again", "", all, pools.HeldByBrake)
	b.rack(0)
	b.reload("as it was dropped", "", all, pools.HeldByBrake)
	b.reload("yes", held.SHA256, 1, "")
}

// TestRollback: it stays until the file agrees, across a restart, and is checked as a file is.
func TestRollback(t *testing.T) {
	b := newBraked(t, "")
	old := b.live.Status().Text
	copyOf := func(t *include.Text) *include.Text {
		return &include.Text{File: t.File, Main: t.Main, Included: t.Included, From: include.Given}
	}
	b.rack(rackNodes - 3)
	const less, all = rackNodes - 2, rackNodes + 1
	b.reload("fewer nodes", "", less, "")
	if r, err := b.live.Rollback(copyOf(old), 7, true); err != nil || r.Size.Added.Count != 3 {
		t.Errorf("a try: got %+v, %v", r, err)
	}
	b.want("after a try", less, "")
	bad := copyOf(old)
	bad.Main = append([]byte("unknown: 1\n"), bad.Main...)
	if _, err := b.live.Rollback(bad, 6, false); err == nil {
		t.Error("a text with a mistake is active")
	}
	b.want("after a bad text", less, "")
	r, err := b.live.Rollback(copyOf(old), 7, false)
	if err != nil || r.Size.Added.Count != 3 || r.Before == r.After || r.After != old.Digest() || r.Held == nil || r.Held.Rollback != 7 {
		t.Fatalf("got %+v, %v", r, err)
	}
	b.want("rolled back", all, pools.HeldByRollback)
	if text := b.live.Status().Held.Text(); !strings.Contains(text, "rollback to 7") || !strings.Contains(text, "3 removed") {
		t.Errorf("got %q", text)
	}
	b.start()
	b.want("after a restart", all, pools.HeldByRollback)
	b.write("conf.d/rack.yaml", "nonsense: 1\n")
	if err := b.live.Reload(); err == nil || len(b.live.Farm().Nodes()) != all {
		t.Errorf("a file with a mistake: got %v", err)
	}
	b.start()
	b.want("a restart with a mistake in the file", all, "")
	if b.live.Status().Refused == nil {
		t.Error("the file is not refused")
	}
	b.rack(rackNodes - 2)
	b.reload("another change of the file", "", all, pools.HeldByRollback)
	b.rack(rackNodes)
	b.write("conf.d/tags.yaml", "tags: {t: {}} # as before\n")
	b.reload("the file agrees but for a comment", "", all, "")
	b.rack(rackNodes - 2)
	b.reload("the file counts again", "", all-2, "")
	b.start()
	b.want("and after a restart", all-2, "")
}
