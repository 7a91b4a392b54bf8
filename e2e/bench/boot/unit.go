package main

import (
	"fmt"
	"os"
	"strings"
)

// withUnit copies an initramfs and puts upUnit before it, as an archive of its own: the
// kernel unpacks one archive after another.
func withUnit(to, from string) error {
	initramfs, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, append(archive("bench-up.service", upUnit), initramfs...), 0o644)
}

// archive returns a cpio archive of one file ("newc", see the kernel's
// driver-api/early-userspace/buffer-format).
func archive(name, content string) []byte {
	var b strings.Builder
	file := func(name, content string, mode int) {
		// inode, mode, uid, gid, nlink, mtime, size, device (2), its number (2), name's size, checksum
		fields := []int{1, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0}
		b.WriteString("070701")
		for _, f := range fields {
			fmt.Fprintf(&b, "%08X", f)
		}
		b.WriteString(name + "\x00")
		pad(&b)
		b.WriteString(content)
		pad(&b)
	}
	const regular = 0o100644
	file(name, content, regular)
	file("TRAILER!!!", "", 0)
	return []byte(b.String())
}

// pad adds zeros up to a multiple of four bytes.
func pad(b *strings.Builder) {
	for b.Len()%4 != 0 {
		b.WriteByte(0)
	}
}
