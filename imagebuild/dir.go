package imagebuild

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"drover/imagebuild/manifest"
)

// currentLink is the name of the link to the current generation of an image.
const currentLink = "current"

// Dir is a directory of images, NAME/ID/FILE. Readers need no lock: a generation becomes
// visible as a whole, never changes, and is removed as a whole.
type Dir struct {
	path      string
	manifests manifests
}

// Open returns the directory of images at path, which need not exist yet.
func Open(path string) *Dir { return &Dir{path: path} }

// Image is one generation of an image on disk.
type Image struct {
	Manifest
	ID      string `json:"id"`      // see [Manifest.ID]
	Path    string `json:"path"`    // the directory of the files
	Current bool   `json:"current"` // the name alone refers to this generation
}

// Ref returns the reference to this generation, NAME@sha256:ID.
func (i *Image) Ref() string { return i.Name + "@sha256:" + i.ID }

// Size returns the bytes of the files that machines fetch.
func (i *Image) Size() (n int64) {
	for _, f := range i.Files {
		n += f.Size
	}
	return n
}

// shortID is the least number of digits that name a generation.
const shortID = 12

// SplitRef parses a reference to an image, NAME or NAME@sha256:ID. The id of a name alone
// is empty. It may be the first 12 digits or more, and sha256: may be missing.
func SplitRef(ref string) (name, id string, err error) {
	name, digest, pinned := strings.Cut(ref, "@")
	if err := checkName(name); err != nil {
		return "", "", err
	}
	if !pinned {
		return name, "", nil
	}
	id = strings.TrimPrefix(digest, "sha256:")
	if len(id) < shortID || len(id) > 64 || strings.Trim(id, "0123456789abcdef") != "" {
		return "", "", fmt.Errorf("image %.200q: want NAME@ID, where ID has 12 to 64 lower-case hex digits: drover image list shows them", ref)
	}
	return name, id, nil
}

// Lookup returns the image with a reference, NAME or NAME@sha256:ID. The error wraps
// [fs.ErrNotExist] when there is no such image. Any other error means that the image is
// damaged or the reference malformed.
func (d *Dir) Lookup(ref string) (Image, error) {
	name, id, err := SplitRef(ref)
	if err != nil {
		return Image{}, err
	}
	current, err := d.current(name)
	if id == "" {
		if err != nil {
			return Image{}, fmt.Errorf("image %q: %w", name, err)
		}
		id = current
	}
	if !manifest.IsDigest(id) {
		if id, err = d.complete(name, id); err != nil {
			return Image{}, err
		}
	}
	return d.load(name, id, current)
}

// complete returns the ID of the one generation that begins with these digits.
func (d *Dir) complete(name, digits string) (string, error) {
	ids, err := subdirs(filepath.Join(d.path, name), func(s string) bool { return manifest.IsDigest(s) && strings.HasPrefix(s, digits) })
	switch {
	case err != nil:
		return "", err
	case len(ids) == 0:
		return "", fmt.Errorf("image %q has no generation %s: drover image list shows those that there are: %w", name, digits, fs.ErrNotExist)
	case len(ids) > 1:
		return "", fmt.Errorf("image %q has %d generations that begin with %s: give more digits", name, len(ids), digits)
	}
	return ids[0], nil
}

// List returns all generations of all images, sorted by name, the current one first, then
// the newest first. The error names the damaged generations; the list then has the
// others.
func (d *Dir) List() ([]Image, error) {
	names, err := d.Names()
	if err != nil {
		return nil, err
	}
	var list []Image
	var errs []error
	for _, name := range names {
		generations, err := d.Generations(name)
		list, errs = append(list, generations...), append(errs, err)
	}
	return list, errors.Join(errs...)
}

// Names returns the sorted names of the images. One whose first build has not ended has
// no generation.
func (d *Dir) Names() ([]string, error) {
	return subdirs(d.path, func(s string) bool { return checkName(s) == nil })
}

// Generations returns the generations of one image as [Dir.List] does. An image that does
// not exist has none.
func (d *Dir) Generations(name string) ([]Image, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	ids, err := subdirs(filepath.Join(d.path, name), manifest.IsDigest)
	if err != nil {
		return nil, err
	}
	current, _ := d.current(name) // there is none until the first build ends
	var list []Image
	var errs []error
	for _, id := range ids {
		image, err := d.load(name, id, current)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, image)
	}
	slices.SortStableFunc(list, func(a, b Image) int {
		switch {
		case a.Current:
			return -1
		case b.Current:
			return 1
		}
		return b.Created.Compare(a.Created)
	})
	return list, errors.Join(errs...)
}

// subdirs returns the sorted names of the directories in path that are valid.
func subdirs(path string, valid func(string) bool) ([]string, error) {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && valid(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// current returns the ID of the current generation.
func (d *Dir) current(name string) (string, error) {
	id, err := os.Readlink(filepath.Join(d.path, name, currentLink))
	if err != nil {
		return "", err
	}
	if !manifest.IsDigest(id) {
		return "", fmt.Errorf("link %s/%s leads to %.100q, not to a generation", name, currentLink, id)
	}
	return id, nil
}

// load reads the manifest of one generation. It checks that the directory has the ID of
// the manifest and that the files have their sizes, but reads no contents: a node checks
// their digests.
func (d *Dir) load(name, id, current string) (Image, error) {
	path := filepath.Join(d.path, name, id)
	bad := func(err error) (Image, error) { return Image{}, fmt.Errorf("image %s@sha256:%s: %w", name, id, err) }
	m, got, err := d.manifests.read(filepath.Join(path, ManifestFile))
	if err != nil {
		return bad(err)
	}
	if got != id {
		return bad(fmt.Errorf("%s describes sha256:%s", ManifestFile, got))
	}
	for file, want := range m.Files {
		st, err := os.Lstat(filepath.Join(path, filepath.Base(file)))
		// A missing file must not give fs.ErrNotExist, which means that there is no such image.
		if err != nil || !st.Mode().IsRegular() || st.Size() != want.Size {
			return bad(fmt.Errorf("%s is missing or does not have %d bytes: build the image again", file, want.Size))
		}
	}
	image := Image{Manifest: *m, ID: id, Path: path, Current: id == current}
	image.Name = name
	return image, nil
}

// Verify reads all files of the image and returns an error unless their digests are right.
func (i *Image) Verify() error {
	for _, name := range manifest.Files() {
		got, chunks, err := digestFile(filepath.Join(i.Path, name))
		if err != nil {
			return fmt.Errorf("image %s: %w", i.Ref(), err)
		}
		if name == SquashfsFile && i.Chunks != nil && !slices.Equal(chunks.SHA256, i.Chunks.SHA256) && got == i.Files[name] {
			return fmt.Errorf("image %s: %s has digests of chunks that are not those of %s", i.Ref(), ManifestFile, name)
		}
		if want := i.Files[name]; got != want {
			return fmt.Errorf("image %s: %s is damaged: sha256 is %s instead of %s", i.Ref(), name, got.SHA256, want.SHA256)
		}
	}
	return nil
}
