package oci

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"drover/imagebuild/layer"
)

// OpenArchive opens FILE[:TAG], a tar of an image layout, without unpacking it.
func OpenArchive(arg string, platform Platform) (*layer.Source, error) {
	name, tag := cutTag(arg)
	a, err := openTar(name)
	if err != nil {
		return nil, err
	}
	return openLayout(a.open, a.file.Close, tag, platform)
}

// archive is a tar whose files are read where they are.
type archive struct {
	file  *os.File
	files map[string]*io.SectionReader
	links map[string]string // path -> path of the target
}

// Bounds on an archive of an image: each layer and each JSON file is one file.
const (
	maxMemberName = 256 // bytes; a blob named by its SHA-512 has 141
	maxMembers    = 1 << 16
)

// openTar opens a tar and finds the files in it. The tar reader reads whole blocks and
// never reads ahead, so after a header the position in the file is the start of the
// contents.
func openTar(name string) (*archive, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	a := &archive{file: f, files: map[string]*io.SectionReader{}, links: map[string]string{}}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%q is not a regular file", name)
	}
	if err == nil {
		err = a.index()
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("not a tar of an image (compressed ones must be unpacked first): %w", err)
	}
	return a, nil
}

func (a *archive) index() error {
	for tr := tar.NewReader(a.file); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return err
		}
		name := path.Clean(h.Name)
		if len(name) > maxMemberName || len(h.Linkname) > maxMemberName {
			continue
		}
		if len(a.files)+len(a.links) >= maxMembers {
			return fmt.Errorf("more than %d files", maxMembers)
		}
		switch h.Typeflag {
		case tar.TypeReg:
			at, err := a.file.Seek(0, io.SeekCurrent)
			if err != nil {
				return err
			}
			a.files[name] = io.NewSectionReader(a.file, at, h.Size)
		case tar.TypeSymlink:
			a.links[name] = path.Join(path.Dir(name), h.Linkname)
		case tar.TypeLink:
			a.links[name] = path.Clean(h.Linkname)
		}
	}
}

// open opens a file of the archive. Old versions of docker save write a layer that is
// there twice as a link.
func (a *archive) open(name string) (io.ReadCloser, int64, error) {
	name = path.Clean(name)
	if target, ok := a.links[name]; ok && a.files[name] == nil {
		name = target
	}
	section, ok := a.files[name]
	if !ok {
		return nil, 0, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return io.NopCloser(io.NewSectionReader(section, 0, section.Size())), section.Size(), nil // read from its start again
}
