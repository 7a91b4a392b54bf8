package catalog_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/imagebuild"
	"drover/imagebuild/manifest"
	"drover/pools"
	"drover/pools/resolve"
	"drover/server/catalog"
)

// generation makes a generation of an image whose files differ by content, and returns its ID.
func generation(t *testing.T, images, name, content string) string {
	t.Helper()
	m := manifest.Manifest{Name: name, Created: time.Unix(1000, 0), Platform: "linux/amd64", Files: map[string]manifest.File{}}
	for _, f := range manifest.Files() {
		sum := strings.Repeat("0", 64-len(content)) + content
		m.Files[f] = manifest.File{Size: 1, SHA256: sum}
	}
	dir := filepath.Join(images, name, m.ID())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(&m)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range manifest.Files() {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, f), []byte("x"), 0o644))
	}
	if err = errors.Join(err, os.WriteFile(filepath.Join(dir, manifest.Name), text, 0o644)); err != nil {
		t.Fatal(err)
	}
	return m.ID()
}

// setCurrent makes a generation the one that the name alone means, as a build does.
func setCurrent(t *testing.T, images, name, id string) {
	t.Helper()
	link := filepath.Join(images, name, "current")
	err := os.Symlink(id, link+".new")
	if err = errors.Join(err, os.Rename(link+".new", link)); err != nil {
		t.Fatal(err)
	}
}

type farm []pools.Pool

func (f farm) Farm() *resolve.Farm {
	return resolve.NewFarm(resolve.Checked{Config: pools.Config{Pools: f}})
}

func TestGenerations(t *testing.T) {
	images := t.TempDir()
	a, b := generation(t, images, "debian-12", "a"), generation(t, images, "debian-12", "b")
	setCurrent(t, images, "debian-12", b)
	c := catalog.Catalog{Channels: &memory{}, Dir: imagebuild.Open(images), Farm: farm{
		{Name: "newest", Image: "debian-12"}, {Name: "pinned", Image: "debian-12@sha256:" + a}, {Name: "short", Image: "debian-12@sha256:" + a[:12]},
		{Name: "missing", Image: "debian-13"}, {Name: "ignored"},
	}}
	want := map[string]string{"newest": b, "pinned": a, "short": a}
	if got := c.Generations(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	list := c.List()
	if len(list) != 2 || !list[0].Current || list[0].ID != b || list[1].Current || list[1].ID != a {
		t.Errorf("got %+v", list)
	}
}

func TestLookup(t *testing.T) {
	images := t.TempDir()
	a := generation(t, images, "debian-12", "a")
	setCurrent(t, images, "debian-12", a)
	twin := filepath.Join(images, "debian-12", a[:20]+strings.Repeat("0", 44))
	c := catalog.Catalog{Channels: &memory{}, Dir: imagebuild.Open(images)}
	for _, ref := range []string{"debian-12", "debian-12@sha256:" + a, "debian-12@sha256:" + a[:12], "debian-12@" + a[:13]} {
		if image, err := c.Lookup(ref); err != nil || image.ID != a {
			t.Errorf("%s: got %s, %v", ref, image.ID, err)
		}
	}
	for ref, want := range map[string]string{
		"debian-12@" + a[:11]:                         "want NAME@ID",
		"debian-12@sha256:" + strings.ToUpper(a[:12]): "want NAME@ID",
		"debian-12@../../../etc":                      "want NAME@ID",
		"debian-12@" + a + "0":                        "want NAME@ID",
	} {
		if _, err := c.Lookup(ref); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", ref, err, want)
		}
	}
	_, err := c.Lookup("debian-12@000000000000")
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "drover image list") {
		t.Errorf("unknown: got %v", err)
	}
	if err := os.Mkdir(twin, 0o755); err != nil {
		t.Fatal(err)
	}
	_, err = c.Lookup("debian-12@" + a[:12])
	if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "more digits") {
		t.Errorf("ambiguous: got %v", err)
	}
}
