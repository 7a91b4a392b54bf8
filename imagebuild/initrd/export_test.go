package initrd

import "io"

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

// Compress is compress.
var Compress = compress

// Compressor is compressor.
const Compressor = compressor
