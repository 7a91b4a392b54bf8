package initrd

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"drover/imagebuild/layer"
	"drover/imagebuild/rootfs"

	"github.com/ulikunitz/xz"
)

// maxModule bounds one module, in bytes. The largest, amdgpu, has 30 MB.
const maxModule = 256 << 20

// plainName returns the path of a module without the extension of its compression.
func plainName(file string) string {
	if i := strings.LastIndex(file, ".ko."); i >= 0 {
		return file[:i+len(".ko")]
	}
	return file
}

// cutCompression cuts the extension of a compression off a file name.
func cutCompression(name string) (plain, ext string) {
	for _, ext := range []string{".gz", ".xz", ".zst"} {
		if plain, ok := strings.CutSuffix(name, ext); ok {
			return plain, ext
		}
	}
	return name, ""
}

// module is a module for the initrd.
type module struct {
	path    string // in the initrd, below the modules' directory
	content []byte
	plain   []byte // decompressed content
}

// module reads a module. The init of the initrd gives it to the kernel, and many kernels
// cannot decompress modules, so it is decompressed unless this one can.
func (s *moduleSet) module(file string) (module, error) {
	b, err := s.read(file, maxModule)
	m := module{path: s.stored(file), content: b, plain: b}
	if err == nil && path.Ext(file) != ".ko" {
		m.plain, err = decompress(b, path.Ext(file))
		if err != nil {
			err = fmt.Errorf("usr/lib/modules/%s/%s: %w", s.version, file, err)
		}
	}
	if m.path != file {
		m.content = m.plain
	}
	return m, err
}

// stored returns the path of a module in the initrd.
func (s *moduleSet) stored(file string) string {
	if s.decompressesXZ && path.Ext(file) == ".xz" {
		return file
	}
	return plainName(file)
}

// decompressesXZ reports whether a kernel decompresses modules of xz itself, by its
// config. Then they stay as they are: the initrd is a seventh smaller than with all of
// them in one stream of zstd, and a machine unpacks only those that it loads. With other
// compressions it would be larger.
func decompressesXZ(t *rootfs.Tree, version string) (bool, error) {
	for _, name := range []string{"usr/lib/modules/" + version + "/config", "lib/modules/" + version + "/config", "boot/config-" + version} {
		n := t.Lookup(name)
		if n == nil || n.File.Kind != tar.TypeReg || n.File.Size > maxConfig {
			continue
		}
		b, err := n.File.Content()
		if err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
		set := map[string]bool{}
		for line := range strings.Lines(string(b)) {
			set[strings.TrimSpace(line)] = true
		}
		return set["CONFIG_MODULE_DECOMPRESS=y"] && set["CONFIG_MODULE_COMPRESS_XZ=y"], nil
	}
	return false, nil
}

// maxConfig bounds a kernel's config, in bytes. Debian's has 280 kB.
const maxConfig = 4 << 20

// decompress decompresses a file whose name ends in ext.
func decompress(b []byte, ext string) ([]byte, error) {
	r, err := open(b, ext)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	out, err := io.ReadAll(io.LimitReader(r, maxModule+1))
	if len(out) > maxModule {
		return nil, fmt.Errorf("larger than %d bytes", maxModule)
	}
	return out, err
}

// open opens the contents of a compressed file whose name ends in ext.
func open(b []byte, ext string) (io.ReadCloser, error) {
	switch ext {
	case ".gz":
		return layer.Decompress(bytes.NewReader(b), "gzip")
	case ".zst":
		return layer.Decompress(bytes.NewReader(b), "zstd")
	case ".xz":
		if err := checkXZ(b); err != nil {
			return nil, err
		}
		r, err := xz.ReaderConfig{DictCap: 1 << 20}.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		return io.NopCloser(r), nil
	}
	return nil, errors.New("unknown kind of module file")
}

// maxXZDictionary is the code of the largest dictionary of xz, 64 MiB: that of xz -9.
// Kernels' modules have 1 or 2 MiB. The library allocates as much as a file asks for, up
// to 4 GiB.
const maxXZDictionary = 28

// checkXZ returns an error if the first block of an xz file asks for a large dictionary
// or has another filter than LZMA2, which the library does not know (xz file format,
// sections 3.1 and 5.3).
func checkXZ(b []byte) error {
	const streamHeader = 12
	if len(b) <= streamHeader+2 || b[streamHeader] == 0 {
		return nil // too short or empty: the library says what is wrong
	}
	flags, rest := b[streamHeader+1], b[streamHeader+2:]
	if flags&3 != 0 {
		return errors.New("compressed with a filter of xz for machine code, which is not supported: compress it with xz --check=crc32 --lzma2")
	}
	for _, size := range []byte{0x40, 0x80} { // lengths of seven bits a byte
		for more := flags&size != 0; more && len(rest) > 0; rest = rest[1:] {
			more = rest[0]&0x80 != 0
		}
	}
	if len(rest) >= 3 && rest[0] == 0x21 && rest[2]&0x3f > maxXZDictionary {
		return errors.New("needs a dictionary of more than 64 MiB: compress it with xz -9 or less")
	}
	return nil
}

// Firmware returns the names of the firmware files that a module may load: the
// firmware= fields of its .modinfo section. A file that is not ELF has none.
func Firmware(module []byte) []string {
	f, err := elf.NewFile(bytes.NewReader(module))
	if err != nil {
		return nil
	}
	section := f.Section(".modinfo")
	if section == nil {
		return nil
	}
	info, err := section.Data()
	if err != nil {
		return nil
	}
	var names []string
	for field := range strings.SplitSeq(string(info), "\x00") {
		if name, ok := strings.CutPrefix(field, "firmware="); ok && name != "" {
			names = append(names, name)
		}
	}
	return names
}

// CheckProgram returns an error unless a program can be the first process: it must be a
// static executable for the processor arch. The kernel's own message for any other
// program is "Kernel panic: No working init found".
func CheckProgram(r io.ReaderAt, arch string) error {
	f, err := elf.NewFile(r)
	if err != nil {
		return fmt.Errorf("not an executable for Linux: %w", err)
	}
	if want, known := rootfs.Processors()[arch]; known && f.Machine != want {
		return fmt.Errorf("built for %s, but the image is for %s", f.Machine, arch)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("not a static executable: an initrd has no dynamic loader (build it with CGO_ENABLED=0)")
		}
	}
	return nil
}
