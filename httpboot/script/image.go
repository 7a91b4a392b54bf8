package script

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unicode"

	"drover/pools"
)

// Image is one generation of an image. The files of a name and a generation
// never change.
type Image struct {
	Name       string
	Generation string // its digest: a SHA-256 in hex
	Dir        string // the directory that holds the files
	Kernel     FileInfo
	Initrd     FileInfo
	Squashfs   FileInfo
}

// FileInfo is a file of an [Image].
type FileInfo struct {
	Name   string // in Image.Dir
	Size   int64  // bytes
	SHA256 string // hex
}

// SquashfsFile is the name of the root file system in URLs.
const SquashfsFile = "root.squashfs"

// Names of an image's other files in URLs.
const (
	kernelFile   = "kernel"
	initrdFile   = "initrd"
	manifestFile = "manifest.json"
)

// urlPath returns the path of the image's files, with a slash at its end.
func (i Image) urlPath() (string, error) {
	if !isImage(i.Name, i.Generation) {
		return "", fmt.Errorf("image %q, generation %q: not a name and a digest", i.Name, i.Generation)
	}
	return pools.ImagePath + i.Name + "/" + i.Generation + "/", nil
}

// Open opens the file with this name in URLs. The error is an [*Error]. A file whose size
// differs from the manifest is an error, since a node would notice that only after the
// whole transfer.
func (i Image) Open(name string) (*os.File, FileInfo, error) {
	info, ok := map[string]FileInfo{kernelFile: i.Kernel, initrdFile: i.Initrd, SquashfsFile: i.Squashfs}[name]
	if name == manifestFile { // the generation is a digest of all in it that a node uses
		info, ok = FileInfo{Name: name, SHA256: i.Generation}, true
	}
	if !ok {
		return nil, info, notFound("an image has %s, %s, %s and %s, no %q", kernelFile, initrdFile, SquashfsFile, manifestFile, name)
	}
	f, fi, err := openIn(i.Dir, info.Name)
	if name == manifestFile && err == nil {
		info.Size = fi.Size()
	}
	if err == nil && fi.Size() != info.Size {
		f.Close()
		err = fmt.Errorf("it has %d bytes, its manifest says %d", fi.Size(), info.Size)
	}
	if err != nil {
		// Only the text, without fs.ErrNotExist: a missing file is a fault of the server.
		return nil, info, &Error{Msg: fmt.Sprintf("%s of image %q is damaged", name, i.Name), Err: errors.New(err.Error())}
	}
	return f, info, nil
}

// Image returns a generation of an image. The error is an [*Error].
func (r *Renderer) Image(name, generation string) (Image, error) {
	if !isImage(name, generation) {
		return Image{}, notFound("no such image")
	}
	img, err := r.Images.Image(name + "@sha256:" + generation)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return img, notFound("no image %q of generation %.12s", name, generation)
	case err != nil:
		return img, &Error{Msg: fmt.Sprintf("image %q cannot be read", name), Err: err}
	}
	return img, nil
}

// isImage reports whether name and generation are valid for an image. A valid name needs
// no escaping in URLs and scripts.
func isImage(name, generation string) bool {
	return len(name) <= 128 && isFileName(name) && !strings.ContainsFunc(name, unicode.IsUpper) && isHex(generation, 64, 64)
}

// isFileName reports whether s can be the name of a file: letters, digits,
// dots, dashes and underscores, the first neither a dot nor a dash.
func isFileName(s string) bool {
	for i := range len(s) {
		c := s[i]
		alnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alnum && (i == 0 || c != '.' && c != '-' && c != '_') {
			return false
		}
	}
	return s != "" && len(s) <= 255
}

// isHex reports whether s consists of least to most digits of lower-case hex.
func isHex(s string, least, most int) bool {
	return len(s) >= least && len(s) <= most && strings.Trim(s, "0123456789abcdef") == ""
}

// openIn opens a regular file in dir, without leaving dir. For other kinds of files the
// error is [fs.ErrNotExist], too: clients must not learn whether there is a directory or
// a pipe of that name.
func openIn(dir, name string) (*os.File, fs.FileInfo, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	fi, err := root.Stat(name) // before Open, which would block on a pipe
	if err != nil {
		return nil, nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%q is no regular file: %w", name, fs.ErrNotExist)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, nil, err
	}
	if fi, err = f.Stat(); err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, fi, nil
}
