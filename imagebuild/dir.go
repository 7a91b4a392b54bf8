package imagebuild

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// currentLink names the generation of an image that is in use.
const currentLink = "current"

// maxManifest bounds a manifest file, in bytes.
const maxManifest = 1 << 20

// Dir is a directory of images, NAME/ID/FILE. Reading needs no lock: a
// generation appears whole and never changes.
type Dir struct {
	path string
}

// Open returns the images in a directory. The directory need not exist yet.
func Open(path string) *Dir { return &Dir{path: path} }

// Image is one generation of an image on disk.
type Image struct {
	Manifest
	ID      string `json:"id"`      // see [Manifest.ID]
	Path    string `json:"path"`    // the directory that holds the files
	Current bool   `json:"current"` // the name alone means this generation
}

// Ref returns the reference to exactly this generation, NAME@sha256:ID.
func (i *Image) Ref() string { return i.Name + "@sha256:" + i.ID }

// SplitRef reads a reference to an image, NAME or NAME@sha256:ID. The id is
// empty for a name alone.
func SplitRef(ref string) (name, id string, err error) {
	name, digest, pinned := strings.Cut(ref, "@")
	if err := checkName(name); err != nil {
		return "", "", err
	}
	if !pinned {
		return name, "", nil
	}
	id, ok := strings.CutPrefix(digest, "sha256:")
	if !ok || !isID(id) {
		return "", "", fmt.Errorf("image %.200q: want NAME@sha256: and 64 lower-case hex digits", ref)
	}
	return name, id, nil
}

// Lookup finds an image by reference. The error wraps [fs.ErrNotExist] when
// there is no such image; any other means that it is there but damaged.
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
	return d.load(name, id, current)
}

// List returns all generations of all images, by name, the current one first,
// then the newest. Damaged ones are left out and named in the error, which may
// come with a list.
func (d *Dir) List() ([]Image, error) {
	names, err := subdirs(d.path, func(s string) bool { return checkName(s) == nil })
	if err != nil {
		return nil, err
	}
	var list []Image
	var errs []error
	for _, name := range names {
		ids, err := subdirs(filepath.Join(d.path, name), isID)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		current, _ := d.current(name) // none: a first build that has not ended
		for _, id := range ids {
			image, err := d.load(name, id, current)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			list = append(list, image)
		}
	}
	slices.SortStableFunc(list, func(a, b Image) int {
		switch {
		case a.Name != b.Name:
			return strings.Compare(a.Name, b.Name)
		case a.Current != b.Current:
			if a.Current {
				return -1
			}
			return 1
		}
		return b.Created.Compare(a.Created)
	})
	return list, errors.Join(errs...)
}

// subdirs returns the sorted names of the directories in path that are right.
func subdirs(path string, right func(string) bool) ([]string, error) {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && right(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// current reads the link to the generation in use.
func (d *Dir) current(name string) (string, error) {
	id, err := os.Readlink(filepath.Join(d.path, name, currentLink))
	if err != nil {
		return "", err
	}
	if !isID(id) {
		return "", fmt.Errorf("link %s/%s leads to %.100q, not to a generation", name, currentLink, id)
	}
	return id, nil
}

// load reads one generation: its manifest must be the one that its directory
// is named after, and its files must have their sizes. The contents are not
// read; a node checks their digests.
func (d *Dir) load(name, id, current string) (Image, error) {
	path := filepath.Join(d.path, name, id)
	bad := func(err error) (Image, error) { return Image{}, fmt.Errorf("image %s@sha256:%s: %w", name, id, err) }
	b, err := readBounded(filepath.Join(path, ManifestFile), maxManifest)
	if err != nil {
		return bad(err)
	}
	m, err := parseManifest(b)
	if err != nil {
		return bad(fmt.Errorf("%s: %w", ManifestFile, err))
	}
	if got := m.ID(); got != id {
		return bad(fmt.Errorf("%s describes sha256:%s", ManifestFile, got))
	}
	for file, want := range m.Files {
		st, err := os.Lstat(filepath.Join(path, filepath.Base(file)))
		// A file that is gone must not look like an image that never was.
		if err != nil || !st.Mode().IsRegular() || st.Size() != want.Size {
			return bad(fmt.Errorf("%s is missing or does not have %d bytes: build the image again", file, want.Size))
		}
	}
	m.Name = name
	return Image{Manifest: *m, ID: id, Path: path, Current: id == current}, nil
}

// Verify reads all files of the image and compares their digests.
func (i *Image) Verify() error {
	for _, name := range imageFiles() {
		got, err := digestFile(filepath.Join(i.Path, name))
		if err != nil {
			return fmt.Errorf("image %s: %w", i.Ref(), err)
		}
		if want := i.Files[name]; got != want {
			return fmt.Errorf("image %s: %s is damaged: sha256 is %s instead of %s", i.Ref(), name, got.SHA256, want.SHA256)
		}
	}
	return nil
}

func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return b, nil
}
