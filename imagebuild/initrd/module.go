package initrd

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"drover/imagebuild/layer"
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

// module returns the contents of a module, decompressed: the init of the initrd gives
// them to the kernel, and many kernels cannot decompress modules
// (CONFIG_MODULE_DECOMPRESS, off in Debian).
func (s *moduleSet) module(file string) ([]byte, error) {
	b, err := s.read(file, maxModule)
	if err == nil && path.Ext(file) != ".ko" {
		b, err = decompress(b, path.Ext(file))
		if err != nil {
			err = fmt.Errorf("usr/lib/modules/%s/%s: %w", s.version, file, err)
		}
	}
	return b, err
}

// decompress decompresses a module whose file name ends in ext.
func decompress(b []byte, ext string) ([]byte, error) {
	format := map[string]string{".gz": "gzip", ".zst": "zstd"}[ext]
	switch {
	case ext == ".xz":
		return nil, errors.New("compressed with xz, which is not supported: " +
			"decompress the modules in the image (find /usr/lib/modules -name '*.ko.xz' -exec xz -d {} +; depmod VERSION)")
	case format == "":
		return nil, errors.New("unknown kind of module file")
	}
	r, err := layer.Decompress(bytes.NewReader(b), format)
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
