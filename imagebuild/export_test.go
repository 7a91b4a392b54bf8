package imagebuild

import (
	"bytes"
	"context"
	"io"
)

// Flatten puts layers on top of each other and returns the tar of the result,
// without what a node's image needs besides.
func Flatten(dir string, whiteouts bool, layers ...[]byte) ([]byte, error) {
	sp, err := newSpool(dir, 1<<30)
	if err != nil {
		return nil, err
	}
	defer sp.close()
	t := newTree()
	reader := layerReader{spool: sp, whiteouts: whiteouts}
	for _, l := range layers {
		list, err := readStream(bytes.NewReader(l), &reader)
		if err != nil {
			return nil, err
		}
		if err := t.apply(list); err != nil {
			return nil, err
		}
	}
	if err := sp.finish(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.emit(&b, func(int64) {})
	return b.Bytes(), err
}

// Excluded tells whether patterns leave out a file, given that none of its
// parents is.
func Excluded(patterns []string, name string, dir bool) (bool, error) {
	x, err := newExcludes(patterns)
	return x.match(name, dir), err
}

// Cpio writes an archive with one entry of each kind.
func Cpio(w io.Writer) error {
	c := &cpioWriter{w: w}
	c.dir("dev")
	c.char("dev/console", 0o600, 5, 1)
	c.link("lib", "usr/lib")
	c.file("init", 0o755, []byte("program"))
	c.file("empty", 0o644, nil)
	return c.close()
}

// OpenArchive reads an OCI archive and all of its layers.
func OpenArchive(dir, file string) error {
	src, err := openSource("oci-archive:"+file, Platform{OS: "linux", Arch: "amd64"})
	if err != nil {
		return err
	}
	defer src.close()
	sp, err := newSpool(dir, 1<<24)
	if err != nil {
		return err
	}
	defer sp.close()
	reader, t := layerReader{spool: sp}, newTree()
	for _, l := range src.layers {
		list, err := l.read(context.Background(), &reader, func(int64) {})
		if err == nil {
			err = t.apply(list)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Parsers of what images hold.
var (
	Firmware      = firmware
	CheckInit     = checkInit
	ParseManifest = parseManifest
)

// What compresses an initrd.
var (
	FindZstd       = findZstd
	CompressInitrd = compressInitrd
)
