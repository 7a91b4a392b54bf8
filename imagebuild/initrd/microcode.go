package initrd

import (
	"archive/tar"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"drover/imagebuild/rootfs"
)

// The kernel reads microcode before it unpacks an initrd, from these two files of an
// archive that is not compressed and comes first
// (Documentation/arch/x86/microcode.rst).
const (
	microcodeDir   = "kernel/x86/microcode/"
	intelMicrocode = microcodeDir + "GenuineIntel.bin"
	amdMicrocode   = microcodeDir + "AuthenticAMD.bin"
)

// microcodeBudget bounds the microcode of Intel's processors that an initrd has without
// being asked, in bytes. All of it has 15 MB, more than the rest of the initrd, it cannot
// be compressed, and every machine fetches it in every boot.
const microcodeBudget = 1_300_000

// serverModels are the families and models of Intel's server processors, as their
// microcode files are named: Xeon, Xeon E and D, Atom C.
const serverModels = "06-1a 06-1e 06-25 06-2a 06-2c 06-2d 06-2e 06-2f 06-3a 06-3c 06-3e 06-3f 06-45 06-47 06-4d 06-4f " +
	"06-55 06-56 06-5e 06-5f 06-6a 06-6c 06-86 06-8f 06-9e 06-a5 06-a7 06-ad 06-ae 06-af 06-b7 06-cf"

// Microcode chooses the processor microcode for an initrd.
type Microcode struct {
	mode   string   // "auto", "all" or "none"
	models []string // in addition to auto: "06-8f"
}

// ParseMicrocode parses auto, all, none, or models of Intel's processors to have in
// addition to auto, such as 06-8f,06-6a. The empty string is auto.
func ParseMicrocode(s string) (Microcode, error) {
	switch s {
	case "", "auto":
		return Microcode{mode: "auto"}, nil
	case "all", "none":
		return Microcode{mode: s}, nil
	}
	models := strings.Split(s, ",")
	for _, m := range models {
		if !regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{2}$`).MatchString(m) {
			return Microcode{}, fmt.Errorf("microcode %q is not auto, all, none or models such as 06-8f,06-6a (cpu family and model of /proc/cpuinfo in hex)", s)
		}
	}
	return Microcode{mode: "auto", models: models}, nil
}

// update is one microcode update of Intel's.
type update struct {
	model string // of the file: "06-8f"
	data  []byte
}

// microcode returns the files of the archive that the kernel reads first, by path, and
// the models whose microcode is in the image but was left out.
func (c Microcode) microcode(t *rootfs.Tree) (files map[string][]byte, left []string, err error) {
	if c.mode == "none" {
		return nil, nil, nil
	}
	files = map[string][]byte{}
	all, err := amd(t)
	if err != nil {
		return nil, nil, err
	}
	if len(all) > 0 {
		files[amdMicrocode] = all
	}
	updates, err := c.intel(t)
	if err != nil {
		return nil, nil, err
	}
	chosen, left := c.choose(unique(updates))
	if len(chosen) > 0 {
		files[intelMicrocode] = chosen
	}
	return files, left, nil
}

// amdMagic begins a container of AMD's microcode.
const amdMagic = 0x00414d44

// amd returns all microcode of AMD's processors, some 150 kB.
func amd(t *rootfs.Tree) (all []byte, err error) {
	files, err := firmwareFiles(t, "amd-ucode", func(name string) bool {
		ok, _ := path.Match("microcode_amd*.bin", name)
		return ok
	})
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		b := files[name]
		if len(b) < 4 || binary.LittleEndian.Uint32(b) != amdMagic {
			return nil, fmt.Errorf("amd-ucode/%s in the image is not microcode (--microcode none leaves it out)", name)
		}
		all = append(all, b...)
	}
	return all, nil
}

// intel returns the microcode of Intel's processors that c may choose.
func (c Microcode) intel(t *rootfs.Tree) (updates []update, err error) {
	name := regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{2}-[0-9a-f]{2}(\.initramfs)?$`)
	files, err := firmwareFiles(t, "intel-ucode", func(file string) bool {
		return name.MatchString(file) && (c.mode == "all" || isServer(modelOf(file)) || slices.Contains(c.models, modelOf(file)))
	})
	if err != nil {
		return nil, err
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		list, err := parseUpdates(files[file])
		if err != nil {
			return nil, fmt.Errorf("intel-ucode/%s in the image: %w (--microcode none leaves it out)", file, err)
		}
		for _, data := range list {
			updates = append(updates, update{model: modelOf(file), data: data})
		}
	}
	return updates, nil
}

// modelOf returns family and model of the name of a microcode file.
func modelOf(file string) string { return file[:len("06-8f")] }

// isServer reports whether a model is in serverModels.
func isServer(model string) bool { return slices.Contains(strings.Fields(serverModels), model) }

// maxMicrocode bounds one file of microcode, in bytes. The largest has 3.3 MB.
const maxMicrocode = 64 << 20

// firmwareFiles returns the files of a directory of firmware that are wanted, by name
// without the extension of their compression, decompressed.
func firmwareFiles(t *rootfs.Tree, dir string, wanted func(name string) bool) (map[string][]byte, error) {
	base := "usr/lib/firmware/" + dir
	d := t.Lookup(base)
	if d == nil {
		base = "lib/firmware/" + dir
		d = t.Lookup(base)
	}
	if d == nil {
		return nil, nil
	}
	files := map[string][]byte{}
	for name := range d.Children {
		n := t.Lookup(base + "/" + name)
		plain, ext := cutCompression(name)
		if !wanted(plain) || n == nil || n.File.Kind != tar.TypeReg {
			continue
		}
		if n.File.Size > maxMicrocode {
			return nil, fmt.Errorf("%s/%s in the image: %d bytes is not a sensible size", base, name, n.File.Size)
		}
		b, err := n.File.Content()
		if err == nil && ext != "" {
			b, err = decompress(b, ext)
		}
		if err != nil {
			return nil, fmt.Errorf("%s/%s in the image: %w", base, name, err)
		}
		files[plain] = b
	}
	return files, nil
}

// parseUpdates cuts a file of Intel's microcode into its updates, and checks their sums
// (Intel SDM volume 3, section 9.11.1).
func parseUpdates(b []byte) ([][]byte, error) {
	const header, defaultSize = 48, 2048
	var list [][]byte
	for len(b) > 0 {
		if len(b) < header {
			return nil, errors.New("cut off in the header of an update")
		}
		size := int64(defaultSize)
		if binary.LittleEndian.Uint32(b[28:]) != 0 {
			size = int64(binary.LittleEndian.Uint32(b[32:]))
		}
		if binary.LittleEndian.Uint32(b) != 1 || size < header || size%4 != 0 {
			return nil, errors.New("not microcode of Intel")
		}
		if size > int64(len(b)) {
			return nil, errors.New("cut off in an update")
		}
		var sum uint32
		for i := int64(0); i < size; i += 4 {
			sum += binary.LittleEndian.Uint32(b[i:])
		}
		if sum != 0 {
			return nil, errors.New("an update is damaged: its checksum is wrong")
		}
		list = append(list, b[:size])
		b = b[size:]
	}
	return list, nil
}

// unique drops updates that are there twice: Intel repeats them in the file of each
// processor that they are for.
func unique(updates []update) []update {
	seen := map[[sha256.Size]byte]bool{}
	return slices.DeleteFunc(updates, func(u update) bool {
		sum := sha256.Sum256(u.data)
		again := seen[sum]
		seen[sum] = true
		return again
	})
}

// choose returns the updates for the initrd, one after the other, and the models of the
// others. Auto takes those of server processors, the smallest models first, up to the
// budget.
func (c Microcode) choose(updates []update) (chosen []byte, left []string) {
	size := map[string]int{}
	for _, u := range updates {
		size[u.model] += len(u.data)
	}
	models := slices.SortedFunc(maps.Keys(size), func(a, b string) int {
		return cmp.Or(cmp.Compare(size[a], size[b]), strings.Compare(a, b))
	})
	taken, sum := map[string]bool{}, 0
	for _, m := range models {
		switch {
		case c.mode == "all", slices.Contains(c.models, m):
			taken[m] = true
		case isServer(m) && sum+size[m] <= microcodeBudget:
			taken[m] = true
			sum += size[m]
		case isServer(m):
			left = append(left, m)
		}
	}
	for _, u := range updates {
		if taken[u.model] {
			chosen = append(chosen, u.data...)
		}
	}
	slices.Sort(left)
	return chosen, left
}
