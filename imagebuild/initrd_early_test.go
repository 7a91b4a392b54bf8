package imagebuild_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"drover/imagebuild"
)

// intelUpdate returns a microcode update of Intel's form with a length, a signature and a
// right checksum.
func intelUpdate(signature uint32, size int) string {
	b := make([]byte, size)
	for i, v := range []uint32{1, 0x10, 0x01012024, signature, 0, 1, 1, uint32(size - 48), uint32(size)} {
		binary.LittleEndian.PutUint32(b[4*i:], v)
	}
	var sum uint32
	for i := 0; i < size; i += 4 {
		sum += binary.LittleEndian.Uint32(b[i:])
	}
	binary.LittleEndian.PutUint32(b[16:], -sum)
	return string(b)
}

const amdContainer = "DMA\x00 and the rest of a container"

// earlyFiles returns the files of the archive before the compressed one, and where the
// content of each begins.
func earlyFiles(t *testing.T, image imagebuild.Image) (map[string]string, map[string]int) {
	t.Helper()
	b := read(t, filepath.Join(image.Path, imagebuild.InitrdFile))
	files, at := map[string]string{}, map[string]int{}
	for off := 0; string(b[off:off+6]) == "070701"; {
		field := func(i int) int {
			n, err := hex.DecodeString(string(b[off+6+8*i : off+14+8*i]))
			if err != nil {
				t.Fatal(err)
			}
			return int(binary.BigEndian.Uint32(n))
		}
		size, nameLen := field(6), field(11)
		name := strings.TrimRight(string(b[off+110:off+110+nameLen]), "\x00")
		off = (off + 110 + nameLen + 3) &^ 3
		if name == "TRAILER!!!" {
			break
		}
		files[name], at[name] = string(b[off:off+size]), off
		off = (off + size + 3) &^ 3
	}
	return files, at
}

// TestMicrocode: the archive that the kernel reads first has the microcode of the image.
func TestMicrocode(t *testing.T) {
	small, twice := intelUpdate(0x906ea, 2048), intelUpdate(0x306f2, 4096)
	large, desktop := intelUpdate(0x806f8, 2<<20), intelUpdate(0x906a3, 1024)
	files := with(machine(), nil, "usr/lib/firmware/amd-ucode/microcode_amd.bin="+amdContainer, "usr/lib/firmware/amd-ucode/microcode_amd_fam17h.bin.xz="+string(xzipped(t, []byte(amdContainer))),
		"usr/lib/firmware/amd-ucode/README=text", "usr/lib/firmware/intel-ucode/06-3f-02.initramfs="+twice, "usr/lib/firmware/intel-ucode/06-3f-04="+twice,
		"usr/lib/firmware/intel-ucode/06-9e-0a="+small, "usr/lib/firmware/intel-ucode/06-8f-08="+large, "usr/lib/firmware/intel-ucode/06-9a-03="+desktop)
	const intel, amd = "kernel/x86/microcode/GenuineIntel.bin", "kernel/x86/microcode/AuthenticAMD.bin"
	for mode, want := range map[string]string{"": twice + small, "auto": twice + small, "all": twice + large + desktop + small, "06-8f": twice + large + small, "none": ""} {
		t.Run("mode "+mode, func(t *testing.T) {
			b := builder(t, files...)
			b.Microcode = mode
			var log bytes.Buffer
			b.Log = slog.New(slog.NewTextHandler(&log, nil))
			image := build(t, b)
			got, at := earlyFiles(t, image)
			if got[intel] != want {
				t.Errorf("Intel's microcode has %d bytes, want %d", len(got[intel]), len(want))
			}
			if wantAMD := map[bool]string{true: amdContainer + amdContainer}[mode != "none"]; got[amd] != wantAMD {
				t.Errorf("AMD's microcode is %q, want %q", got[amd], wantAMD)
			}
			if at[intel]%16 != 0 || at[amd]%16 != 0 {
				t.Errorf("microcode begins at %v, want multiples of 16", at)
			}
			if want := "models=06-8f"; strings.Contains(log.String(), want) != (mode == "" || mode == "auto") {
				t.Errorf("log is %q, want %q in mode auto alone", log.String(), want)
			}
			if got := unsquash(t, image); strings.Contains(got, "-ucode") {
				t.Errorf("the squashfs has the microcode, too:\n%s", got)
			}
			if got := unpack(t, image); string(got["lib"]) != "usr/lib" {
				t.Error("the archive behind the microcode has no lib")
			}
		})
	}
}

// TestMicrocodeForCpio: cpio reads the first archive, and the rest is one of zstd.
func TestMicrocodeForCpio(t *testing.T) {
	needs(t, "cpio", "cpio")
	image := build(t, builder(t, with(machine(), nil, "usr/lib/firmware/intel-ucode/06-9e-0a="+intelUpdate(0x906ea, 2048))...))
	cmd := exec.Command("cpio", "-it", "--quiet")
	cmd.Stdin = bytes.NewReader(read(t, filepath.Join(image.Path, imagebuild.InitrdFile)))
	out, err := cmd.Output()
	if want := "kernel\nkernel/x86\nkernel/x86/microcode\nkernel/x86/microcode/GenuineIntel.bin\n"; err != nil || string(out) != want {
		t.Errorf("cpio lists %q, %v, want %q", out, err, want)
	}
}

func TestDamagedMicrocode(t *testing.T) {
	good := intelUpdate(0x906ea, 2048)
	for name, test := range map[string]struct{ file, want string }{
		"flipped": {"intel-ucode/06-9e-0a=" + good[:100] + "X" + good[101:], "checksum is wrong"},
		"cut":     {"intel-ucode/06-9e-0a=" + good[:1024], "cut off in an update"},
		"short":   {"intel-ucode/06-9e-0a=" + good + "x", "cut off in the header"},
		"text":    {"intel-ucode/06-9e-0a=" + strings.Repeat("text", 100), "not microcode of Intel"},
		"AMD":     {"amd-ucode/microcode_amd.bin=text", "is not microcode"},
		"xz":      {"amd-ucode/microcode_amd.bin.xz=text", "amd-ucode/microcode_amd.bin.xz"},
	} {
		t.Run(name, func(t *testing.T) {
			b := builder(t, with(machine(), nil, "usr/lib/firmware/"+test.file)...)
			if _, err := b.Build(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
			nothingVisible(t, b.Images)
			b.Microcode = "none"
			build(t, b)
		})
	}
}

// TestInitrdFiles: an operator's own files and archives are in the initrd.
func TestInitrdFiles(t *testing.T) {
	dir := t.TempDir()
	firmware, script, archive := filepath.Join(dir, "a.fw"), filepath.Join(dir, "hook"), filepath.Join(dir, "own.cpio.gz")
	write(t, firmware, []byte("firmware"))
	write(t, script, []byte("#!/bin/sh\n"))
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	packed := gzipped(t, []byte("070701 and so on"))
	write(t, archive, packed)
	mods := "usr/lib/modules/" + kver + "/"
	files := with(machine(), []string{mods + "kernel/drivers/net/bnx2x.ko"}, mods+"kernel/drivers/net/bnx2x.ko="+string(moduleELF(t, "firmware=bnx2x/a.fw\x00")))
	b := builder(t, files...)
	b.InitrdFiles = []string{archive}
	raw := read(t, filepath.Join(build(t, b).Path, imagebuild.InitrdFile))
	if !bytes.HasSuffix(raw, packed) || (len(raw)-len(packed))%512 != 0 {
		t.Error("the initrd does not end with the archive, at a block of 512 bytes")
	}
	b.InitrdFiles = []string{"/lib/firmware/bnx2x/a.fw=" + firmware, "etc/hooks/first=" + script}
	var log bytes.Buffer
	b.Log = slog.New(slog.NewTextHandler(&log, nil))
	out := unpack(t, build(t, b))
	if string(out["usr/lib/firmware/bnx2x/a.fw"]) != "firmware" || string(out["etc/hooks/first"]) != "#!/bin/sh\n" {
		t.Errorf("files are %q and %q", out["usr/lib/firmware/bnx2x/a.fw"], out["etc/hooks/first"])
	}
	if strings.Contains(log.String(), "lacks firmware") {
		t.Errorf("log is %q, although the operator brings the firmware", log.String())
	}

	for spec, want := range map[string]string{
		firmware: "want PATH=FILE, or an archive", "init=" + firmware: "/init of the initrd is drover's", "../x=" + firmware: `".."`, "=" + firmware: "want PATH=FILE",
		"dev/null=" + firmware: "/dev of the initrd", "a/=" + firmware: "want PATH=FILE", "a=" + dir: "not a regular file", "a=" + dir + "/none": "no such file",
	} {
		b.InitrdFiles = []string{spec}
		if _, err := b.Build(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", spec, err, want)
		}
	}
}

// TestInitrdIsReused: an initrd with the same contents is copied, unless it is damaged.
func TestInitrdIsReused(t *testing.T) {
	b := builder(t, machine()...)
	first := build(t, b)
	mark := func() { // what a copy of the first one has, and no other
		t.Helper()
		path := filepath.Join(first.Path, imagebuild.InitrdFile)
		write(t, path, bytes.Repeat([]byte("x"), int(first.Files[imagebuild.InitrdFile].Size)))
	}
	again := func(name string) imagebuild.Image {
		t.Helper()
		c := builder(t, with(machine(), nil, "opt/"+name+"=new")...)
		c.Images, c.Init, c.Name = b.Images, b.Init, name
		return build(t, c)
	}
	second := again("second")
	if second.Files[imagebuild.InitrdFile] != first.Files[imagebuild.InitrdFile] || second.InitrdKey != first.InitrdKey || second.InitrdKey == "" {
		t.Errorf("initrds are %+v and %+v", first, second)
	}
	if err := os.RemoveAll(filepath.Join(b.Images, "second")); err != nil {
		t.Fatal(err)
	}
	mark()
	third := again("third")
	if err := third.Verify(); err != nil {
		t.Errorf("a damaged initrd was copied: %v", err)
	}
	if third.Files[imagebuild.InitrdFile] != first.Files[imagebuild.InitrdFile] {
		t.Error("the same contents have another initrd")
	}
}
