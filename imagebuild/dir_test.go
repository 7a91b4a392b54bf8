package imagebuild_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/imagebuild"
)

// generation writes an image by hand and returns its ID.
func generation(t *testing.T, images, name, kernel string, created time.Time) string {
	t.Helper()
	sum := strings.Repeat("ab", 32)
	m := imagebuild.Manifest{Name: name, Created: created, KernelVersion: "6.1", Platform: "linux/amd64", Files: map[string]imagebuild.File{
		"kernel": {Size: int64(len(kernel)), SHA256: sum}, "initrd": {Size: 1, SHA256: sum}, "root.squashfs": {Size: 2, SHA256: sum}}}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(images, name, m.ID())
	for file, content := range map[string]string{"kernel": kernel, "initrd": "i", "root.squashfs": "sq", "manifest.json": string(text)} {
		write(t, filepath.Join(dir, file), []byte(content))
	}
	return m.ID()
}

func setCurrent(t *testing.T, images, name, target string) {
	t.Helper()
	link := filepath.Join(images, name, "current")
	_ = os.Remove(link)
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
}

func TestLookup(t *testing.T) {
	images := t.TempDir()
	first := generation(t, images, "debian-12", "k", time.Unix(1, 0))
	second := generation(t, images, "debian-12", "kk", time.Unix(2, 0))
	setCurrent(t, images, "debian-12", first)
	d := imagebuild.Open(images)
	for ref, want := range map[string]string{"debian-12": first, "debian-12@sha256:" + first: first, "debian-12@sha256:" + second: second} {
		got, err := d.Lookup(ref)
		if err != nil {
			t.Errorf("%s: %v", ref, err)
			continue
		}
		if got.ID != want || got.Path != filepath.Join(images, "debian-12", want) || got.Current != (want == first) || got.Ref() != "debian-12@sha256:"+want {
			t.Errorf("%s: got %+v, want %s", ref, got, want)
		}
	}
	for _, ref := range []string{"debian-13", "debian-12@sha256:" + strings.Repeat("0", 64)} {
		if _, err := d.Lookup(ref); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got error %v, want %v", ref, err, fs.ErrNotExist)
		}
	}
	for _, ref := range []string{"", ".", "..", "../debian-12", "debian-12/current", "Debian", "-x", "a@", "a@sha256:", "a@md5:" + first, "a@sha256:" + first[:11],
		"a@sha256:" + strings.ToUpper(first), "a@sha256:../../" + first[:58], strings.Repeat("a", 129)} {
		if _, err := d.Lookup(ref); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: got error %v, want one about the reference", ref, err)
		}
	}
}

func TestLookupDamaged(t *testing.T) {
	images := t.TempDir()
	id := generation(t, images, "a", "k", time.Unix(1, 0))
	dir := filepath.Join(images, "a", id)
	tests := []struct {
		name   string
		damage func()
		want   string
	}{
		{"current leads elsewhere", func() { setCurrent(t, images, "a", "../../etc") }, `leads to "../../etc"`},
		{"file of another size", func() { write(t, filepath.Join(dir, "initrd"), []byte("longer")) }, "initrd is missing or does not have 1 bytes"},
		{"file missing", func() { _ = os.Remove(filepath.Join(dir, "kernel")) }, "kernel is missing"},
		{"manifest of another image", func() {
			write(t, filepath.Join(dir, "manifest.json"), []byte(strings.Replace(string(read(t, filepath.Join(dir, "manifest.json"))), "6.1", "6.2", 1)))
		}, "manifest.json describes sha256:"},
		{"manifest without a file", func() { write(t, filepath.Join(dir, "manifest.json"), []byte(`{"files":{}}`)) }, "lists no kernel"},
		{"manifest with a bad digest", func() {
			write(t, filepath.Join(dir, "manifest.json"), []byte(`{"files":{"kernel":{"size":1,"sha256":"x"}}}`))
		}, "size or digest of kernel is malformed"},
		{"manifest is no JSON", func() { write(t, filepath.Join(dir, "manifest.json"), []byte("{")) }, "manifest.json: unexpected end"},
		{"huge manifest", func() { write(t, filepath.Join(dir, "manifest.json"), make([]byte, 5<<20)) }, "is larger than 4194304 bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			generation(t, images, "a", "k", time.Unix(1, 0)) // whole again
			setCurrent(t, images, "a", id)
			if _, err := imagebuild.Open(images).Lookup("a"); err != nil {
				t.Fatal(err)
			}
			test.damage()
			_, err := imagebuild.Open(images).Lookup("a")
			if err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

// TestLookupAgain: a manifest that was read before is noticed when it changes.
func TestLookupAgain(t *testing.T) {
	images := t.TempDir()
	id := generation(t, images, "a", "k", time.Unix(1, 0))
	setCurrent(t, images, "a", id)
	d := imagebuild.Open(images)
	for range 3 {
		if got, err := d.Lookup("a"); err != nil || got.ID != id || got.Name != "a" {
			t.Fatalf("got %+v, %v, want %s", got, err, id)
		}
	}
	manifest := filepath.Join(images, "a", id, "manifest.json")
	content := read(t, manifest)
	write(t, manifest, []byte("no JSON"))
	if got, err := d.Lookup("a"); err == nil {
		t.Errorf("damaged: got %+v, want an error", got)
	}
	write(t, manifest, content)
	if got, err := d.Lookup("a"); err != nil || got.ID != id {
		t.Errorf("whole again: got %+v, %v, want %s", got, err, id)
	}
	if err := os.RemoveAll(filepath.Join(images, "a", id)); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Lookup("a@sha256:" + id); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed: got %+v, %v, want %v", got, err, fs.ErrNotExist)
	}
}

func TestList(t *testing.T) {
	images := t.TempDir()
	if list, err := imagebuild.Open(filepath.Join(images, "missing")).List(); err != nil || len(list) != 0 {
		t.Errorf("missing directory: got %v, %v, want nothing", list, err)
	}
	old := generation(t, images, "b", "k", time.Unix(1, 0))
	newer := generation(t, images, "b", "kk", time.Unix(2, 0))
	newest := generation(t, images, "b", "kkk", time.Unix(3, 0))
	other := generation(t, images, "a", "k", time.Unix(9, 0))
	setCurrent(t, images, "b", newer)
	write(t, filepath.Join(images, "b", ".build-1", "kernel"), nil)
	write(t, filepath.Join(images, "b", "notes"), nil)
	write(t, filepath.Join(images, "README"), nil)
	list, err := imagebuild.Open(images).List()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, image := range list {
		got = append(got, image.Name+" "+image.ID)
	}
	want := []string{"a " + other, "b " + newer, "b " + newest, "b " + old}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got  %q\nwant %q", got, want)
	}

	if err := os.Remove(filepath.Join(images, "b", newest, "initrd")); err != nil {
		t.Fatal(err)
	}
	list, err = imagebuild.Open(images).List()
	if err == nil || !strings.Contains(err.Error(), newest) || len(list) != 3 {
		t.Errorf("one damaged: got %d images and error %v, want 3 and one with %s", len(list), err, newest)
	}
}

func FuzzSplitRef(f *testing.F) {
	f.Add("debian-12")
	f.Add("a@sha256:" + strings.Repeat("0", 64))
	f.Add("../x@sha256:")
	f.Fuzz(func(t *testing.T, ref string) {
		name, id, err := imagebuild.SplitRef(ref)
		if err != nil {
			return
		}
		if path := filepath.Join("/images", name, id, "kernel"); !strings.HasPrefix(path, "/images/"+name+"/") || strings.Contains(name, "/") {
			t.Errorf("%q leads to %q", ref, path)
		}
		if id != "" {
			name += "@sha256:" + id
		}
		if name != ref {
			t.Errorf("%q was read as %q", ref, name)
		}
	})
}
