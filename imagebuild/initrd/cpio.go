package initrd

import (
	"fmt"
	"io"
	"math"
)

// cpioWriter writes an archive in the "newc" format, which the kernel unpacks as
// initramfs (Documentation/driver-api/early-userspace/buffer-format). All owners are
// root, all times are 0. After the first error it writes nothing, and close returns the
// error.
type cpioWriter struct {
	w   io.Writer
	off int64
	ino int64
	err error
}

// Types and permissions, as in stat(2).
const (
	cpioDir  = 0o040000
	cpioFile = 0o100000
	cpioLink = 0o120000
	cpioChar = 0o020000
)

func (c *cpioWriter) dir(name string) { c.entry(name, cpioDir|0o755, 0, 0, nil) }

func (c *cpioWriter) link(name, target string) {
	c.entry(name, cpioLink|0o777, 0, 0, []byte(target))
}

func (c *cpioWriter) char(name string, perm, major, minor int64) {
	c.entry(name, cpioChar|perm, major, minor, nil)
}

func (c *cpioWriter) file(name string, perm int64, content []byte) {
	c.entry(name, cpioFile|perm, 0, 0, content)
}

// cpioHeader and cpioBlock are the sizes of the header of a file, without its name, and
// of that to which archives are padded, in bytes.
const (
	cpioHeader = 110
	cpioBlock  = 512
)

// aligned writes a file whose content begins at a multiple of 16 bytes, where processors
// want their microcode: zeros behind the name make up for the rest.
func (c *cpioWriter) aligned(name string, content []byte) {
	for (c.off+cpioHeader+int64(len(name))+1)%16 != 0 {
		name += "\x00"
	}
	c.file(name, 0o644, content)
}

func (c *cpioWriter) entry(name string, mode, major, minor int64, content []byte) {
	if c.err == nil && int64(len(content)) > math.MaxUint32 {
		c.err = fmt.Errorf("%q is larger than 4 GiB", name)
	}
	nlink := 1
	if mode&0o170000 == cpioDir {
		nlink = 2
	}
	c.ino++
	// Magic, ino, mode, uid, gid, nlink, mtime, size, device of the file
	// (major, minor), device number (major, minor), length of the name with
	// its final zero, checksum (of another format).
	c.write(fmt.Appendf(nil, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00",
		c.ino, mode, 0, 0, nlink, 0, len(content), 0, 0, major, minor, len(name)+1, 0, name))
	c.pad(4)
	c.write(content)
	c.pad(4)
}

// close writes the end mark. The kernel skips zeros up to the next archive, so a boot
// loader may append an archive of its own.
func (c *cpioWriter) close() error {
	c.ino = -1
	c.entry("TRAILER!!!", 0, 0, 0, nil)
	c.pad(cpioBlock)
	return c.err
}

func (c *cpioWriter) pad(to int64) {
	c.write(make([]byte, (to-c.off%to)%to))
}

func (c *cpioWriter) write(b []byte) { _, _ = c.Write(b) } // c.err has the error

// Write writes bytes as they are.
func (c *cpioWriter) Write(b []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.w.Write(b)
	c.off += int64(n)
	c.err = err
	return n, err
}
