package imagebuild

import (
	"bytes"
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

var Firmware = firmware
