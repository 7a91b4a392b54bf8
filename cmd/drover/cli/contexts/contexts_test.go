package contexts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/cmd/drover/cli/contexts"
	"drover/e2e/fixture"
)

// load reads the contexts, which the test expects to be good.
func load(t *testing.T) *contexts.Contexts {
	t.Helper()
	c, err := contexts.Load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestContexts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "contexts.json")
	t.Setenv(contexts.Env, file)
	if c := load(t); len(c.All) > 0 || c.Current != "" {
		t.Errorf("without a file: %+v", c)
	}
	for _, x := range []contexts.Context{{Name: "a", URL: "https://a", Token: "one"}, {Name: "b", URL: "https://b"}, {Name: "a", URL: "https://a2", Token: "two"}} {
		if err := load(t).Put(x); err != nil {
			t.Fatal(err)
		}
	}
	fixture.WantMode(t, file, 0o600)
	fixture.WantMode(t, filepath.Dir(file), os.ModeDir|0o700)
	if a, ok := load(t).Find(""); !ok || a.URL != "https://a2" || len(load(t).All) != 2 {
		t.Errorf("the current one is %+v, of %+v", a, load(t).All)
	}
	if err := load(t).Use("b"); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*contexts.Contexts) error{
		"use":    func(c *contexts.Contexts) error { return c.Use("none") },
		"remove": func(c *contexts.Contexts) error { return c.Remove("none") },
		"put":    func(c *contexts.Contexts) error { return c.Put(contexts.Context{Name: "../x"}) },
		"empty":  func(c *contexts.Contexts) error { return c.Put(contexts.Context{}) },
		"dash":   func(c *contexts.Contexts) error { return c.Put(contexts.Context{Name: "-"}) }, // the server of this host
	} {
		if err := change(load(t)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if b, ok := load(t).Find(""); !ok || b.Name != "b" {
		t.Errorf("the current one is %+v", b)
	}
	if err := load(t).Remove("b"); err != nil {
		t.Error(err)
	}
	if x, ok := load(t).Find(""); ok { // none takes its place: commands would ask another server unnoticed
		t.Errorf("the current one is %+v", x)
	}
	if err := load(t).Remove("a"); err != nil {
		t.Error(err)
	}
	fixture.WantNoText(t, "the file", fixture.ReadFile(t, file), "one", "two")
}

// TestBadFiles: a file that others can read, or that is none of contexts, is an error that says what
// to do.
func TestBadFiles(t *testing.T) {
	const good = `{"current": "a", "contexts": [{"name": "a", "url": "https://a", "token": "t"}]}`
	for name, tt := range map[string]struct {
		mode os.FileMode
		text string
		want string
	}{
		"good":           {0o600, good, ""},
		"for a group":    {0o640, good, "others can read it"},
		"for all":        {0o604, good, "others can read it"},
		"no JSON":        {0o600, "contexts: []", "remove it, and log in again"},
		"of another":     {0o600, `{"contexts": 7}`, "remove it, and log in again"},
		"more than 1 MB": {0o600, good + strings.Repeat(" ", 1<<20), "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "contexts.json")
			t.Setenv(contexts.Env, file)
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(file, tt.mode); err != nil {
				t.Fatal(err)
			}
			_, err := contexts.Load()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestNoHome: a service without a home has no contexts, and can keep none.
func TestNoHome(t *testing.T) {
	for _, name := range []string{contexts.Env, "HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, "")
	}
	if err := load(t).Put(contexts.Context{Name: "a"}); err == nil || !strings.Contains(err.Error(), contexts.Env) {
		t.Errorf("got %v", err)
	}
}
