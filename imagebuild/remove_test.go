package imagebuild_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/imagebuild"
)

// two returns a directory with an image of two generations, the second of which is current.
func two(t *testing.T) (images, old, current string) {
	t.Helper()
	images = t.TempDir()
	old, current = generation(t, images, "a", "k", time.Unix(1, 0)), generation(t, images, "a", "kk", time.Unix(2, 0))
	setCurrent(t, images, "a", current)
	return images, old, current
}

// hidden returns the hidden names of an image, except its lock.
func hidden(t *testing.T, images, name string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(images, name))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && e.Name() != ".lock" {
			all = append(all, e.Name())
		}
	}
	return all
}

func TestRemove(t *testing.T) {
	images, old, current := two(t)
	d := imagebuild.Open(images)
	reader, err := os.Open(filepath.Join(images, "a", old, "root.squashfs"))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := d.Remove("a@sha256:" + old); err != nil {
		t.Fatal(err)
	}
	if list, err := d.List(); err != nil || len(list) != 1 || list[0].ID != current {
		t.Errorf("got %v, %v, want the current generation alone", list, err)
	}
	if all := hidden(t, images, "a"); len(all) > 0 {
		t.Errorf("it left %v", all)
	}
	if got, err := io.ReadAll(reader); err != nil || string(got) != "sq" {
		t.Errorf("a reader that had opened a file got %q, %v, want all of it", got, err)
	}
}

// TestRemoveBusy: while a build of the image runs, nothing of it is removed, nor are the
// files of the build.
func TestRemoveBusy(t *testing.T) {
	b := builder(t, machine()...)
	old := generation(t, b.Images, "test", "k", time.Unix(1, 0))
	d := imagebuild.Open(b.Images)
	asked := false
	b.Progress = func(imagebuild.Progress) {
		if asked {
			return
		}
		asked = true
		if err := d.Remove("test@sha256:" + old); !errors.Is(err, imagebuild.ErrBusy) {
			t.Errorf("remove: got error %v, want %v", err, imagebuild.ErrBusy)
		}
		if _, err := d.Clean("test"); !errors.Is(err, imagebuild.ErrBusy) {
			t.Errorf("clean: got error %v, want %v", err, imagebuild.ErrBusy)
		}
	}
	build(t, b)
	if err := d.Remove("test@sha256:" + old); err != nil || !asked {
		t.Errorf("after the build: %v", err)
	}
}

// TestRemoveKilled: what a removal that was killed leaves is no generation, and the next
// removal, Clean or build removes it.
func TestRemoveKilled(t *testing.T) {
	for name, next := range map[string]func(t *testing.T, images, old string) error{
		"removal": func(_ *testing.T, images, old string) error {
			return imagebuild.Open(images).Remove("test@sha256:" + old)
		},
		"clean": func(t *testing.T, images, _ string) error {
			size, err := imagebuild.Open(images).Clean("test")
			if size != 3 {
				t.Errorf("got %d bytes, want 3", size)
			}
			return err
		},
		"build": func(t *testing.T, images, _ string) error {
			b := builder(t, machine()...)
			b.Images = images
			_, err := b.Build(t.Context())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			images := t.TempDir()
			old, current := generation(t, images, "test", "k", time.Unix(1, 0)), generation(t, images, "test", "kk", time.Unix(2, 0))
			setCurrent(t, images, "test", current)
			write(t, filepath.Join(images, "test", ".build-removed", "root.squashfs"), []byte("sq"))
			write(t, filepath.Join(images, "test", ".build-removed", "initrd"), []byte("i"))
			if list, err := imagebuild.Open(images).List(); err != nil || len(list) != 2 {
				t.Errorf("got %d generations, %v, want 2", len(list), err)
			}
			if err := next(t, images, old); err != nil {
				t.Error(err)
			}
			if all := hidden(t, images, "test"); len(all) > 0 {
				t.Errorf("%v is still there", all)
			}
		})
	}
}

func TestGenerations(t *testing.T) {
	images, old, current := two(t)
	generation(t, images, "b", "k", time.Unix(3, 0))
	write(t, filepath.Join(images, "b", strings.Repeat("0", 64), "manifest.json"), []byte("{"))
	write(t, filepath.Join(images, "c", ".build-1", "kernel"), nil)
	d := imagebuild.Open(images)
	if names, err := d.Names(); err != nil || strings.Join(names, " ") != "a b c" {
		t.Errorf("got %q, %v, want a b c", names, err)
	}
	if list, err := d.Generations("a"); err != nil || len(list) != 2 || list[0].ID != current || list[1].ID != old || list[1].Size() != 4 {
		t.Errorf("a: got %v, %v, want the current one and the other, of 4 bytes", list, err)
	}
	if list, err := d.Generations("b"); err == nil || !strings.Contains(err.Error(), strings.Repeat("0", 64)) || len(list) != 1 {
		t.Errorf("b: got %d generations, %v, want one, and an error with the damaged one", len(list), err)
	}
	for _, name := range []string{"c", "d"} {
		if list, err := d.Generations(name); err != nil || len(list) > 0 {
			t.Errorf("%s: got %v, %v, want none", name, list, err)
		}
	}
	if _, err := d.Generations("../a"); err == nil {
		t.Error("got no error for a name that leads elsewhere")
	}
}
