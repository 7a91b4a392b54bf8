package imagebuild

import (
	"fmt"
	"os"
	"regexp"
	"sync"
	"syscall"

	"drover/imagebuild/manifest"
)

// The files of an image.
const (
	KernelFile   = manifest.Kernel
	InitrdFile   = manifest.Initrd
	SquashfsFile = manifest.Squashfs
	ManifestFile = manifest.Name
)

// Manifest describes the contents of an image and their source.
type Manifest = manifest.Manifest

// File is one file of an image.
type File = manifest.File

// readManifest reads a manifest file.
func readManifest(path string) (*Manifest, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > manifest.MaxSize {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, manifest.MaxSize)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := manifest.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ManifestFile, err)
	}
	return m, nil
}

// manifests keeps manifests that were read. A server asks for one with each request, a
// generation never changes, and the digests of chunks make manifests long.
type manifests struct {
	mu   sync.RWMutex
	kept map[string]kept // by path
}

// kept is a manifest with its ID, and the state of the file that it was read from.
type kept struct {
	manifest *Manifest
	id       string
	state    fileState
}

// fileState changes with each change of a file.
type fileState struct {
	device, inode uint64
	size          int64
	changed       syscall.Timespec
}

// maxKept is the number of manifests beyond which all are forgotten: images that were
// removed are among them.
const maxKept = 256

// read returns the manifest in a file, and its ID. The manifest is shared: do not change
// it.
func (c *manifests) read(path string) (*Manifest, string, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return nil, "", &os.PathError{Op: "stat", Path: path, Err: err}
	}
	state := fileState{device: uint64(st.Dev), inode: st.Ino, size: st.Size, changed: st.Ctim}
	c.mu.RLock()
	k, ok := c.kept[path]
	c.mu.RUnlock()
	if ok && k.state == state {
		return k.manifest, k.id, nil
	}
	m, err := readManifest(path)
	if err != nil {
		return nil, "", err
	}
	k = kept{m, m.ID(), state}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil || len(c.kept) >= maxKept {
		c.kept = map[string]kept{}
	}
	c.kept[path] = k
	return k.manifest, k.id, nil
}

// checkName returns an error unless name is valid for an image. Names are parts of paths
// and URLs.
func checkName(name string) error {
	if len(name) > 128 || !regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`).MatchString(name) {
		return fmt.Errorf("image name %.140q: want lower-case letters, digits, '.', '_' and '-', a letter or digit first, 128 at most", name)
	}
	return nil
}
