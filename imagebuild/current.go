package imagebuild

import (
	"fmt"
	"path/filepath"
)

// SetCurrent makes a generation, NAME@sha256:ID, the one that its name alone means, with one
// rename: a boot gets the one before or this one. It refuses a damaged generation, after reading
// all of it. The error wraps [ErrBusy] while a build of the image runs, and [io/fs.ErrNotExist]
// when there is no such generation.
func (d *Dir) SetCurrent(ref string) (Image, error) {
	name, id, err := SplitRef(ref)
	if err == nil && id == "" {
		err = fmt.Errorf("image %q: want one generation, NAME@ID: drover image list shows them", name)
	}
	if err != nil {
		return Image{}, err
	}
	image, err := d.Lookup(ref)
	if err != nil {
		return Image{}, err
	}
	dir := filepath.Join(d.path, name)
	l, err := lock(dir) // no prune removes it meanwhile
	if err != nil {
		return Image{}, fmt.Errorf("image %s: %w", ref, err)
	}
	defer l.Close()
	if err := image.Verify(); err != nil {
		return Image{}, fmt.Errorf("%w: build it again", err)
	}
	if _, err := clean(dir); err != nil {
		return Image{}, err
	}
	if err := (&store{images: d.path, name: name, dir: dir}).setCurrent(image.ID); err != nil {
		return Image{}, err
	}
	return d.Lookup(image.Ref())
}
