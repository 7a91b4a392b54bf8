package buildcache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestCacheDir(t *testing.T) {
	tests := []struct {
		name           string
		own, xdg, home string
		want           string
	}{
		{"own variable first", "/own", "/xdg", "/home/x", "/own"},
		{"then the desktop's", "", "/xdg", "/home/x", "/xdg/drover"},
		{"then the home", "", "", "/home/x", "/home/x/.cache/drover"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("DROVER_CACHE", tt.own)
			t.Setenv("XDG_CACHE_HOME", tt.xdg)
			t.Setenv("HOME", tt.home)
			got, err := CacheDir()
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
	t.Run("no place at all", func(t *testing.T) {
		for _, v := range []string{"DROVER_CACHE", "XDG_CACHE_HOME", "HOME"} {
			t.Setenv(v, "")
		}
		if got, err := CacheDir(); err == nil {
			t.Errorf("got %q, want an error", got)
		}
	})
}

func TestHashOf(t *testing.T) {
	seen := map[string][]string{}
	for _, in := range [][]string{{}, {""}, {"", ""}, {"ab", "c"}, {"a", "bc"}, {"abc"}, {"c", "ab"}, {"1:a", "b"}, {"1", ":a1:b"}} {
		key := hashOf(in...)
		if other, dup := seen[key]; dup {
			t.Errorf("%q and %q have the same key", in, other)
		}
		seen[key] = in
		if again := hashOf(in...); again != key {
			t.Errorf("%q: got %q, then %q", in, key, again)
		}
	}
}

func TestHashFiles(t *testing.T) {
	root := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	hash := func() string {
		t.Helper()
		h, err := hashFiles(root, "go.mod", "files")
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	write("go.mod", "module x\n")
	write("files/a/unit", "one")
	write("ignored", "1")
	first := hash()
	write("ignored", "2")
	if got := hash(); got != first {
		t.Errorf("another file changed: got %s, want %s", got, first)
	}
	steps := []struct {
		what   string
		change func()
	}{
		{"content below a folder", func() { write("files/a/unit", "two") }},
		{"content of a file", func() { write("go.mod", "module y\n") }},
		{"a new file", func() { write("files/b", "") }},
		{"a new name", func() {
			if err := os.Rename(filepath.Join(root, "files/b"), filepath.Join(root, "files/c")); err != nil {
				t.Fatal(err)
			}
		}},
	}
	before := first
	for _, s := range steps {
		s.change()
		if got := hash(); got == before {
			t.Errorf("%s: the hash is still %s", s.what, got)
		} else {
			before = got
		}
	}
	if _, err := hashFiles(root, "no-such"); err == nil {
		t.Error("no such file: got no error")
	}
}

// counted returns a part with one file, and counts how often it is made.
func counted(kind, key string, made *atomic.Int32) part {
	return part{kind: kind, key: key, make: func(_ context.Context, dir string) error {
		made.Add(1)
		time.Sleep(time.Millisecond) // let the others come to the lock
		return os.WriteFile(filepath.Join(dir, "it"), []byte(key), 0o644)
	}}
}

func TestPartIsMadeOnce(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("DROVER_CACHE", cache)
	var made atomic.Int32
	p := counted("thing", "k1", &made)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			dir, err := p.path(t.Context(), share(nil))
			if err != nil {
				t.Error(err)
				return
			}
			if got, err := os.ReadFile(filepath.Join(dir, "it")); err != nil || string(got) != "k1" {
				t.Errorf("got %q, %v, want %q", got, err, "k1")
			}
		})
	}
	all.Wait()
	if got := made.Load(); got != 1 {
		t.Errorf("made %d times, want once", got)
	}
}

func TestPartThatFailsLeavesNothing(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("DROVER_CACHE", cache)
	broken := errors.New("broken")
	p := part{kind: "thing", key: "k1", make: func(_ context.Context, dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "half"), nil, 0o644); err != nil {
			t.Error(err)
		}
		return broken
	}}
	if dir, err := p.path(t.Context(), share(nil)); !errors.Is(err, broken) {
		t.Errorf("got %q, %v, want %v", dir, err, broken)
	}
	if got, want := entries(t, cache), []string{"thing.lock"}; !slices.Equal(got, want) {
		t.Errorf("cache: got %q, want %q", got, want)
	}
	var made atomic.Int32
	if _, err := counted("thing", "k1", &made).path(t.Context(), share(nil)); err != nil || made.Load() != 1 {
		t.Errorf("next try: got %v, made %d times, want once", err, made.Load())
	}
}

func TestOldPartsGo(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("DROVER_CACHE", cache)
	var made atomic.Int32
	get := func(kind, key string, age time.Duration) {
		t.Helper()
		dir, err := counted(kind, key, &made).path(t.Context(), share(nil))
		if err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-age)
		if err := os.Chtimes(dir, when, when); err != nil {
			t.Fatal(err)
		}
	}
	// The leftover of a killed process.
	if err := os.Mkdir(filepath.Join(cache, ".image-1234"), 0o700); err != nil {
		t.Fatal(err)
	}
	get("image", "k1", 3*time.Hour)
	get("images", "k1", 9*time.Hour) // another kind
	get("image", "k2", 2*time.Hour)
	get("image", "k1", time.Hour) // used again
	get("image", "k3", 0)
	want := []string{"image-k1", "image-k3", "image.lock", "images-k1", "images.lock"}
	if got := entries(t, cache); !slices.Equal(got, want) {
		t.Errorf("cache: got %q, want %q", got, want)
	}
	if got := made.Load(); got != 4 {
		t.Errorf("made %d parts, want 4", got)
	}
}

func TestLockWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	unlock, err := lock(t.Context(), path, func() { t.Error("the first one waits") })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = lock(ctx, path, cancel) // its context ends as soon as it has to wait
	if !errors.Is(err, context.Canceled) {
		t.Errorf("second: got %v, want %v", err, context.Canceled)
	}
	unlock()
	unlock, err = lock(t.Context(), path, func() { t.Error("it is free again") })
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestSourceRoot(t *testing.T) {
	root, err := SourceRoot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, dockerfile)); err != nil {
		t.Error(err)
	}
	// The modules below e2e are not the root.
	t.Chdir(filepath.Join(root, "e2e/containerd"))
	if got, err := SourceRoot(); got != root {
		t.Errorf("in e2e/containerd: got %q, %v, want %q", got, err, root)
	}
	t.Chdir(t.TempDir())
	if got, err := SourceRoot(); err == nil || !strings.Contains(err.Error(), "source tree") {
		t.Errorf("elsewhere: got %q, %v, want an error", got, err)
	}
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range found {
		names = append(names, f.Name())
	}
	return names
}
