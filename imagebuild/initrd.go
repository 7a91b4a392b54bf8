package imagebuild

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"drover/imagebuild/initrd"
)

// contents are the contents of an initrd, in a temporary file without a name, and the
// key of the bytes that they are compressed to.
type contents struct {
	file *os.File
	key  string
}

// contents writes the contents of the initrd, not compressed.
func (r *run) contents(ctx context.Context, archive *initrd.Archive) (*contents, error) {
	f, err := os.CreateTemp(r.store.temp, ".initrd-")
	if err != nil {
		return nil, err
	}
	if err = os.Remove(f.Name()); err == nil {
		d := &digester{ctx: ctx, w: f, h: sha256.New(), progress: r.begin("writing "+InitrdFile, 0)}
		if err = archive.WriteContents(d); err == nil {
			return &contents{file: f, key: archive.Key(d.h.Sum(nil))}, nil
		}
	}
	f.Close()
	return nil, err
}

// writeInitrd writes the initrd: a copy of one with the same contents, or it compresses
// them.
func (r *run) writeInitrd(ctx context.Context, archive *initrd.Archive, c *contents) (File, error) {
	f, ok, err := r.store.reuse(ctx, c.key)
	if err == nil && !ok {
		if _, err = c.file.Seek(0, io.SeekStart); err == nil {
			f, err = r.store.write(ctx, InitrdFile, func(int64) {}, func(w io.Writer) error { return archive.Write(w, c.file) })
		}
	}
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", InitrdFile, err)
	}
	return f, nil
}

// warn names what nodes will not have.
func (r *run) warn(archive *initrd.Archive) {
	for _, m := range archive.Missing {
		attributes := []any{"driver", m.Driver, "missing", fmt.Sprintf("%d of %d files", len(m.Files), m.Of), "first", m.Files[0], "install", m.Package}
		if m.LeftOut {
			attributes = append(attributes, "initrd", "without the driver, which does nothing without firmware")
		}
		r.Log.Warn("the image lacks firmware of a network driver", attributes...)
	}
	if len(archive.Left) > 0 {
		r.Log.Warn("microcode of some processors would make the initrd large and is not in it; add models with --microcode",
			"models", strings.Join(archive.Left, ","))
	}
	lost := r.tree.Lost()
	for _, attribute := range slices.Sorted(maps.Keys(lost)) {
		files := lost[attribute]
		r.Log.Warn("squashfs cannot store an attribute: files lose it", "attribute", attribute, "files", len(files),
			"first", strings.Join(files[:min(3, len(files))], ", "))
	}
}

// reuse copies the initrd with a key from a generation that exists, of any name, and
// reports whether there is one.
func (s *store) reuse(ctx context.Context, key string) (File, bool, error) {
	list, _ := Open(s.images).List() // damaged generations are not in it
	for _, image := range list {
		if image.InitrdKey != key {
			continue
		}
		f, err := s.write(ctx, InitrdFile, func(int64) {}, func(w io.Writer) error {
			old, err := os.Open(filepath.Join(image.Path, InitrdFile))
			if err != nil {
				return err
			}
			defer old.Close()
			_, err = io.Copy(w, old)
			return err
		})
		if err == nil && f == image.Files[InitrdFile] {
			return f, true, nil
		}
		// It is damaged, or cannot be read.
		if err := os.Remove(filepath.Join(s.temp, InitrdFile)); err != nil {
			return File{}, false, err
		}
		if ctx.Err() != nil {
			return File{}, false, ctx.Err()
		}
	}
	return File{}, false, nil
}
