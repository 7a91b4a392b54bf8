package initrd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"drover/imagebuild/rootfs"
)

// Own are the operator's own parts of an initrd.
type Own struct {
	files    []ownFile
	archives [][]byte // cpio archives, compressed or not, as they are
}

// ownFile is one file for an initrd.
type ownFile struct {
	path    string
	mode    int64
	content []byte
}

// ReadOwn reads files for an initrd. Each of specs is PATH=FILE, which puts FILE at PATH
// of the initrd, or the name of a cpio archive, which is appended as it is: its files
// replace those of the initrd.
func ReadOwn(specs []string) (Own, error) {
	var own Own
	for _, spec := range specs {
		if err := own.read(spec); err != nil {
			return Own{}, fmt.Errorf("file for the initrd %q: %w", spec, err)
		}
	}
	return own, nil
}

func (o *Own) read(spec string) error {
	to, from, single := strings.Cut(spec, "=")
	if !single {
		content, _, err := readOwnFile(spec)
		if err != nil {
			return err
		}
		if err := checkArchive(content); err != nil {
			return err
		}
		o.archives = append(o.archives, content)
		return nil
	}
	elems, err := rootfs.CleanPath(to)
	if err != nil {
		return err
	}
	if len(elems) > 1 && elems[0] == "lib" { // a link in the initrd
		elems = append([]string{"usr"}, elems...)
	}
	if len(elems) == 0 || strings.HasSuffix(to, "/") {
		return errors.New("want PATH=FILE, with the path of a file in the initrd")
	}
	if slices.Contains([]string{"init", "lib", "dev", "proc", "sys"}, elems[0]) {
		return fmt.Errorf("/%s of the initrd is drover's", elems[0])
	}
	content, mode, err := readOwnFile(from)
	if err != nil {
		return err
	}
	o.files = append(o.files, ownFile{path: path.Join(elems...), mode: mode, content: content})
	return nil
}

// readOwnFile returns the content of a file and its mode in the initrd.
func readOwnFile(name string) ([]byte, int64, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%q is not a regular file", name)
	}
	if info.Size() > maxModule {
		return nil, 0, fmt.Errorf("%q: %d bytes is not a sensible size, want at most %d", name, info.Size(), maxModule)
	}
	content, err := os.ReadFile(name)
	mode := int64(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	return content, mode, err
}

// checkArchive returns an error unless b is a cpio archive that the kernel unpacks:
// newc, plain or compressed. A kernel that finds anything else gives up in the middle.
func checkArchive(b []byte) error {
	const want = "want PATH=FILE, or an archive of cpio -H newc, plain or compressed with gzip, xz or zstd"
	plain := b
	for magic, ext := range map[string]string{"\x1f\x8b": ".gz", "\x28\xb5\x2f\xfd": ".zst", "\xfd7zXZ\x00": ".xz"} {
		if bytes.HasPrefix(b, []byte(magic)) {
			r, err := open(b, ext)
			if err != nil {
				return fmt.Errorf("damaged: %w", err)
			}
			defer r.Close()
			plain = make([]byte, len("070701"))
			if _, err := io.ReadFull(r, plain); err != nil {
				return fmt.Errorf("%s: %w", want, err)
			}
		}
	}
	if !bytes.HasPrefix(plain, []byte("070701")) && !bytes.HasPrefix(plain, []byte("070702")) {
		return errors.New(want)
	}
	return nil
}
