package catalog_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/imagebuild"
	"drover/imagebuild/manifest"
	"drover/pools"
	"drover/server/catalog"
)

// memory is channels in RAM. They are not stored if full is set.
type memory struct {
	mu   sync.Mutex
	all  map[string]pools.ImageChannels
	full error
}

func (m *memory) Of(image string) pools.ImageChannels { return m.All()[image] }

func (m *memory) All() map[string]pools.ImageChannels {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all
}

func (m *memory) Change(image string, edit func(pools.ImageChannels) (pools.ImageChannels, error)) error {
	after, err := edit(m.Of(image))
	if err = errors.Join(err, m.full); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	fresh := map[string]pools.ImageChannels{}
	maps.Copy(fresh, m.all)
	fresh[image] = after
	m.all = fresh
	return nil
}

// whole makes a generation whose files have the digests of its manifest, and returns its ID.
func whole(t *testing.T, images, content string) string {
	t.Helper()
	m := manifest.Manifest{Name: "debian-12", Created: time.Unix(1000, 0), Platform: "linux/amd64", Files: map[string]manifest.File{}}
	for _, f := range manifest.Files() {
		m.Files[f] = manifest.File{Size: int64(len(content)), SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(content)))}
	}
	dir := filepath.Join(images, "debian-12", m.ID())
	text, err := json.Marshal(&m)
	err = errors.Join(err, os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, manifest.Name), text, 0o644))
	for _, f := range manifest.Files() {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, f), []byte(content), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	return m.ID()
}

// three returns a catalog with the generations a, b and c of an image, of which a is the last build.
func three(t *testing.T) (c *catalog.Catalog, m *memory, a, b, d string) {
	images := t.TempDir()
	a, b, d = whole(t, images, "a"), whole(t, images, "b"), whole(t, images, "c")
	setCurrent(t, images, "debian-12", a)
	m = &memory{}
	return &catalog.Catalog{Dir: imagebuild.Open(images), Channels: m, Farm: farm{}}, m, a, b, d
}

func want(t *testing.T, c *catalog.Catalog, ref, id string) {
	t.Helper()
	if got, err := c.Lookup(ref); err != nil || got.ID != id {
		t.Errorf("%s: got %.12s, %v, want %.12s", ref, got.ID, err, id)
	}
}

// TestPromote: until the first promotion a name means the last build. Then it means its channel, and a
// build changes nothing. The way back leads to what each promotion has replaced, and never forward.
func TestPromote(t *testing.T) {
	c, _, a, b, d := three(t)
	promoted := 0
	c.OnPromote = func(string) { promoted++ }
	move := func(change catalog.Change, err error) catalog.Change {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return change
	}
	promote := func(ref, to string) catalog.Change {
		t.Helper()
		return move(c.Promote(pools.PromoteRequest{Image: ref, To: to, Why: "a reason"}, "the test", false))
	}
	back := func() catalog.Change {
		t.Helper()
		return move(c.Rollback(pools.RollbackRequest{Image: "debian-12"}, "the test", false))
	}
	want(t, c, "debian-12", a)
	want(t, c, "debian-12:stable", a)
	move(c.Promote(pools.PromoteRequest{Image: "debian-12@" + b}, "the test", true))
	want(t, c, "debian-12", a) // that was a try
	promote("debian-12@"+d[:12], "canary")
	want(t, c, "debian-12:canary", d)
	want(t, c, "debian-12", a)
	if got := promote("debian-12@sha256:"+b, ""); got.Before != a || got.Previous != a || len(got.History) != 2 {
		t.Errorf("got %+v", got)
	}
	setCurrent(t, filepathOf(t, c), "debian-12", d)
	want(t, c, "debian-12", b)
	promote("debian-12:canary", "stable")
	want(t, c, "debian-12", d)
	promote("debian-12:canary", "stable") // again: nothing new
	if got := back(); got.Current != b || got.Previous != a || !got.History[0].Back || len(got.History) != 4 {
		t.Errorf("got %+v", got)
	}
	if got := back(); got.Current != a || got.Previous != "" {
		t.Errorf("got %+v", got)
	}
	if _, err := c.Rollback(pools.RollbackRequest{Image: "debian-12"}, "", false); !errors.Is(err, pools.ErrNoImage) || !strings.Contains(err.Error(), "drover image promote debian-12@ID") {
		t.Errorf("got %v", err)
	}
	want(t, c, "debian-12", a)
	want(t, c, "debian-12:canary", d)
	if promoted != 6 {
		t.Errorf("%d moves were told, want 6", promoted)
	}
	for range 30 {
		promote("debian-12@"+b, "")
		promote("debian-12@"+d, "")
	}
	if n := len(c.ChannelList()[1].History); n != pools.MaxHistory {
		t.Errorf("the history has %d", n)
	}
	if list := c.List(); len(list) != 3 || fmt.Sprint(list[0].Channels) != "[canary stable]" || !list[0].Current {
		t.Errorf("got %+v", list)
	}
}

func filepathOf(t *testing.T, c *catalog.Catalog) string {
	t.Helper()
	i, err := c.Dir.Lookup("debian-12")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(filepath.Dir(i.Path))
}

// TestPromoteRefused: what is not there, not whole, marked bad or not stored is not promoted, and the
// channel stays as it is.
func TestPromoteRefused(t *testing.T) {
	c, m, a, b, d := three(t)
	if err := c.Mark(pools.MarkRequest{Image: "debian-12@" + d[:12], Why: "panics"}, "the test", false); err != nil {
		t.Fatal(err)
	}
	broken, err := c.Dir.Lookup("debian-12@" + b)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken.Path, "initrd"), []byte("X"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		r    pools.PromoteRequest
		is   error
		want string
	}{
		{pools.PromoteRequest{Image: "debian-12@" + d}, pools.ErrBadImage, `marked bad by the test: "panics"; --force`},
		{pools.PromoteRequest{Image: "debian-12@" + b}, pools.ErrBadImage, "build it again"},
		{pools.PromoteRequest{Image: "debian-12@000000000000"}, pools.ErrNoImage, "has no generation"},
		{pools.PromoteRequest{Image: "debian-12:canary"}, pools.ErrNoImage, `has no channel "canary"`},
		{pools.PromoteRequest{Image: "fedora"}, pools.ErrNoImage, "fedora"},
		{pools.PromoteRequest{Image: "debian-12@1"}, nil, "want NAME@ID"},
		{pools.PromoteRequest{Image: "../etc"}, nil, "is not an image"},
		{pools.PromoteRequest{Image: ""}, nil, "is not an image"},
		{pools.PromoteRequest{Image: "debian-12:../x"}, nil, "is not an image"},
		{pools.PromoteRequest{Image: "debian-12", To: "Canary"}, nil, "not the name of a channel"},
		{pools.PromoteRequest{Image: "debian-12", Why: strings.Repeat("x", 301)}, nil, "cannot be kept"},
		{pools.PromoteRequest{Image: "debian-12", Why: "a\nb"}, nil, "cannot be kept"},
	} {
		_, err := c.Promote(tt.r, "the test", false)
		if err == nil || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) && tt.want != "want NAME@ID" {
			t.Errorf("%+v: got %v", tt.r, err)
		}
	}
	m.full = errors.New("the disk is full")
	if _, err := c.Promote(pools.PromoteRequest{Image: "debian-12@" + d, Force: true}, "", false); !errors.Is(err, m.full) {
		t.Errorf("got %v", err)
	}
	want(t, c, "debian-12", a)
	m.full = nil
	if _, err := c.Promote(pools.PromoteRequest{Image: "debian-12@" + d, Force: true}, "", false); err != nil {
		t.Error(err)
	}
	want(t, c, "debian-12", d)
	if err := c.Mark(pools.MarkRequest{Image: "debian-12@" + d[:12], Good: true}, "the test", false); err != nil || c.IsBad("debian-12", d) {
		t.Errorf("it is bad still: %v", err)
	}
	for i := range pools.MaxChannels + 1 {
		_, err = c.Promote(pools.PromoteRequest{Image: "debian-12@" + d, To: fmt.Sprint("c", i)}, "", false)
	}
	if !errors.Is(err, pools.ErrBadImage) || len(m.Of("debian-12").Channels) != pools.MaxChannels {
		t.Errorf("got %v", err)
	}
}

// TestRollbackSkips: a generation that is gone, damaged or bad is no way back.
func TestRollbackSkips(t *testing.T) {
	c, _, a, b, d := three(t)
	for _, id := range []string{b, d} {
		if _, err := c.Promote(pools.PromoteRequest{Image: "debian-12@" + id}, "", false); err != nil {
			t.Fatal(err)
		}
	}
	gone, err := c.Dir.Lookup("debian-12@" + b)
	if err == nil {
		err = os.RemoveAll(gone.Path)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Rollback(pools.RollbackRequest{Image: "debian-12:stable"}, "", false); err != nil || got.Current != a {
		t.Errorf("got %+v, %v", got, err)
	}
	// A channel whose generation is gone says so, and how to move it.
	if _, err := c.Promote(pools.PromoteRequest{Image: "debian-12@" + d, To: "canary"}, "", false); err != nil {
		t.Fatal(err)
	}
	if gone, err = c.Dir.Lookup("debian-12@" + d); err == nil {
		err = os.RemoveAll(gone.Path)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Lookup("debian-12:canary"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "drover image rollback") {
		t.Errorf("got %v", err)
	}
}

// TestPromoteBesideBoots: while a channel moves, each boot gets one generation that exists.
func TestPromoteBesideBoots(t *testing.T) {
	c, _, a, b, d := three(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := range 50 {
			_, err := c.Promote(pools.PromoteRequest{Image: "debian-12@" + []string{b, d}[i%2]}, "", false)
			if err == nil && i%3 == 0 {
				_, err = c.Rollback(pools.RollbackRequest{Image: "debian-12"}, "", false)
			}
			if err != nil && !errors.Is(err, pools.ErrNoImage) {
				t.Error(err)
			}
		}
	}()
	for {
		image, err := c.Lookup("debian-12")
		if err != nil || image.ID != a && image.ID != b && image.ID != d {
			t.Fatalf("got %s, %v", image.ID, err)
		}
		if filepath.Base(image.Path) != image.ID {
			t.Fatalf("got %s of %s", image.Path, image.ID)
		}
		select {
		case <-ended:
			return
		default:
		}
	}
}
