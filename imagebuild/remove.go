package imagebuild

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"drover/internal/atomicfile"
)

// ErrCurrent is the error for the removal of the current generation of an image.
var ErrCurrent = errors.New("it is the current generation")

// Remove removes one generation of an image, NAME@sha256:ID. The error wraps [ErrCurrent]
// for the current one, [ErrBusy] while a build of the image runs, and [fs.ErrNotExist] when
// there is no such generation.
//
// One rename hides the generation. If the process is killed after that, [Dir.Clean] or the
// next build of the image removes the rest. Readers that have opened a file can read it to
// its end; its space is free after that.
func (d *Dir) Remove(ref string) error {
	name, id, err := SplitRef(ref)
	if err == nil && id == "" {
		err = fmt.Errorf("image %q: want one generation, NAME@sha256:ID", name)
	}
	if err != nil {
		return err
	}
	if err := d.remove(name, id); err != nil {
		return fmt.Errorf("image %s: %w", ref, err)
	}
	return nil
}

func (d *Dir) remove(name, id string) error {
	dir := filepath.Join(d.path, name)
	l, err := lock(dir)
	if err != nil {
		return err
	}
	defer l.Close()
	// Without a link that leads to a generation, the current one is unknown.
	switch current, err := d.current(name); {
	case err != nil:
		return err
	case current == id:
		return ErrCurrent
	}
	if _, err := clean(dir); err != nil {
		return err
	}
	hidden := filepath.Join(dir, buildPrefix+"removed")
	if err := os.Rename(filepath.Join(dir, id), hidden); err != nil {
		return err
	}
	// Otherwise half of the files could be back under the ID after a power cut.
	if err := atomicfile.SyncDir(dir); err != nil {
		return err
	}
	return os.RemoveAll(hidden)
}

// Clean removes the hidden files of an image, and returns their size in bytes: what builds and
// removals have left that were killed. The error wraps [ErrBusy] while a build of the image
// runs.
func (d *Dir) Clean(name string) (int64, error) {
	if err := checkName(name); err != nil {
		return 0, err
	}
	dir := filepath.Join(d.path, name)
	l, err := lock(dir)
	if err != nil {
		return 0, fmt.Errorf("image %q: %w", name, err)
	}
	defer l.Close()
	return clean(dir)
}

// clean removes the hidden files in the directory of an image, and returns their size. It
// requires the lock of the image: all hidden files belong to processes that have ended.
func clean(dir string) (size int64, err error) {
	old, err := fs.Glob(os.DirFS(dir), buildPrefix+"*")
	for _, name := range old {
		path := filepath.Join(dir, name)
		size += sizeOf(path)
		err = errors.Join(err, os.RemoveAll(path))
	}
	return size, err
}

// sizeOf returns the bytes of the regular files below path that can be read.
func sizeOf(path string) (size int64) {
	_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	return size
}
