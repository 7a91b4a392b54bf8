package initrd

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"path"
	"strings"

	"drover/imagebuild/layer"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxModule bounds one module, in bytes. The largest, amdgpu, has 30 MB.
const maxModule = 256 << 20

// plainName is the path of a module once it is decompressed.
func plainName(file string) string {
	if i := strings.LastIndex(file, ".ko."); i >= 0 {
		return file[:i+len(".ko")]
	}
	return file
}

// module returns the contents of a module, decompressed: the init of the
// initrd gives them to the kernel, and many kernels cannot decompress them
// (CONFIG_MODULE_DECOMPRESS, off in Debian).
func (s *moduleSet) module(file string) ([]byte, error) {
	b, err := s.read(file, maxModule)
	if err != nil {
		return nil, err
	}
	place := func(err error) error { return fmt.Errorf("usr/lib/modules/%s/%s: %w", s.version, file, err) }
	var r io.Reader
	switch path.Ext(file) {
	case ".ko":
		return b, nil
	case ".gz":
		if r, err = gzip.NewReader(bytes.NewReader(b)); err != nil {
			return nil, place(err)
		}
	case ".zst":
		d, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderMaxWindow(layer.MaxWindow), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, place(err)
		}
		defer d.Close()
		r = d
	case ".xz":
		return nil, place(fmt.Errorf("compressed with xz, which is not supported: " +
			"decompress the modules in the image (find /usr/lib/modules -name '*.ko.xz' -exec xz -d {} +; depmod VERSION)"))
	default:
		return nil, place(fmt.Errorf("unknown kind of module file"))
	}
	out, err := io.ReadAll(io.LimitReader(r, maxModule+1))
	if err != nil {
		return nil, place(err)
	}
	if len(out) > maxModule {
		return nil, place(fmt.Errorf("larger than %d bytes", maxModule))
	}
	return out, nil
}

// Firmware returns the names of the firmware files that a module may ask for:
// the firmware= lines of its .modinfo section. A file that is not ELF has none.
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

// CheckProgram returns an error unless a program can be the first process: a static
// executable for the processor arch. The kernel says no more than "Kernel panic: No
// working init found".
func CheckProgram(r io.ReaderAt, arch string) error {
	f, err := elf.NewFile(r)
	if err != nil {
		return fmt.Errorf("not an executable for Linux: %w", err)
	}
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "arm": elf.EM_ARM,
		"386": elf.EM_386, "riscv64": elf.EM_RISCV, "ppc64le": elf.EM_PPC64, "s390x": elf.EM_S390}
	if want, known := machines[arch]; known && f.Machine != want {
		return fmt.Errorf("built for %s, but the image is for %s", f.Machine, arch)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("not a static executable: an initrd has no dynamic loader (build it with CGO_ENABLED=0)")
		}
	}
	return nil
}
