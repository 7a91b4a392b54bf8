package imagebuild_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"drover/imagebuild"
	"drover/imagebuild/initrd"
)

// unpack returns the files of an initrd by name. It has its own reader of newc.
func unpack(t *testing.T, image imagebuild.Image) map[string][]byte {
	t.Helper()
	d, err := zstd.NewReader(nil, zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	raw := read(t, filepath.Join(image.Path, imagebuild.InitrdFile))
	if bytes.HasPrefix(raw, []byte("070701")) { // microcode
		raw = raw[bytes.Index(raw, []byte("\x28\xb5\x2f\xfd")):]
	}
	b, err := d.DecodeAll(raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for off := 0; ; {
		field := func(i int) int {
			n, err := strconv.ParseUint(string(b[off+6+8*i:off+14+8*i]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
		if string(b[off:off+6]) != "070701" {
			t.Fatalf("no cpio header at %d", off)
		}
		size, nameLen := field(6), field(11)
		name := string(b[off+110 : off+110+nameLen-1])
		off = (off + 110 + nameLen + 3) &^ 3
		if name == "TRAILER!!!" {
			return files
		}
		files[name] = b[off : off+size]
		off = (off + size + 3) &^ 3
	}
}

func TestInitrd(t *testing.T) {
	b := builder(t, machine()...)
	b.Modules = []string{"nvme"}
	image := build(t, b)
	files := unpack(t, image)
	mods := "usr/lib/modules/" + kver + "/"

	var got []string
	for name := range files {
		if strings.HasSuffix(name, ".ko") {
			got = append(got, filepath.Base(name))
		}
	}
	slices.Sort(got)
	// failover: needed by virtio_net. libcrc32c: needed by bnx2x.
	// crc32c_generic: by a soft dependency of libcrc32c on one of its aliases.
	want := []string{"bnx2x.ko", "crc32c_generic.ko", "failover.ko", "libcrc32c.ko", "loop.ko", "nvme.ko", "overlay.ko", "squashfs.ko", "virtio_net.ko"}
	if !slices.Equal(got, want) {
		t.Errorf("modules are %q, want %q", got, want)
	}
	for name, want := range map[string]string{
		"init":                   string(staticELF(t, elf.EM_X86_64, false)),
		"lib":                    "usr/lib",
		mods + "modules.alias":   "alias virtio:d00000001v* virtio_net\nalias crc32c crc32c_generic\n",
		mods + "modules.softdep": "softdep libcrc32c pre: crc32c\n",
		mods + "modules.builtin": "kernel/net/packet/af_packet.ko\n",
		mods + "modules.dep": "kernel/crypto/crc32c_generic.ko:\nkernel/drivers/block/loop.ko:\n" +
			"kernel/drivers/net/bnx2x.ko: kernel/lib/libcrc32c.ko\nkernel/drivers/net/virtio_net.ko: kernel/net/core/failover.ko\n" +
			"kernel/drivers/nvme/nvme.ko:\nkernel/fs/overlayfs/overlay.ko:\nkernel/fs/squashfs/squashfs.ko:\nkernel/lib/libcrc32c.ko:\nkernel/net/core/failover.ko:\n",
		mods + "kernel/drivers/net/virtio_net.ko": "virtio_net",
	} {
		if got := string(files[name]); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, dir := range []string{"proc", "sys", "dev", "run", "dev/console"} {
		if _, ok := files[dir]; !ok {
			t.Errorf("%s is missing", dir)
		}
	}
}

// TestInitrdWindow: the window is small, since the kernel allocates it.
func TestInitrdWindow(t *testing.T) {
	b := builder(t, machine()...)
	noise := make([]byte, 9<<20)
	rand.NewChaCha8([32]byte{}).Read(noise)
	write(t, b.Init, append(staticELF(t, elf.EM_X86_64, false), noise...))
	var h zstd.Header
	if err := h.Decode(read(t, filepath.Join(build(t, b).Path, imagebuild.InitrdFile))); err != nil {
		t.Fatal(err)
	}
	if h.SingleSegment || h.WindowSize == 0 || h.WindowSize > 8<<20 {
		t.Errorf("frame is %+v, want a window of at most 8 MiB", h)
	}
}

func TestInitrdCompressedModules(t *testing.T) {
	mods := "usr/lib/modules/" + kver + "/"
	loop, overlay := mods+"kernel/drivers/block/loop.ko", mods+"kernel/fs/overlayfs/overlay.ko"
	squashfs := mods + "kernel/fs/squashfs/squashfs.ko"
	dep := "modules.dep=kernel/fs/squashfs/squashfs.ko.xz:\nkernel/drivers/block/loop.ko.zst: kernel/fs/overlayfs/overlay.ko.gz\nkernel/fs/overlayfs/overlay.ko.gz:\n"
	files := with(machine(), []string{loop, overlay, squashfs, mods + "modules.dep"}, mods+dep, squashfs+".xz="+string(xzipped(t, []byte("squashfs"))),
		loop+".zst="+string(zstandard(t, []byte("loop"))), overlay+".gz="+string(gzipped(t, []byte("overlay"))))
	out := unpack(t, build(t, builder(t, files...)))
	for name, want := range map[string]string{
		loop: "loop", overlay: "overlay", squashfs: "squashfs",
		mods + "modules.dep": "kernel/drivers/block/loop.ko: kernel/fs/overlayfs/overlay.ko\nkernel/fs/overlayfs/overlay.ko:\nkernel/fs/squashfs/squashfs.ko:\n",
	} {
		if got := string(out[name]); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}

	for name, config := range map[string]string{"boot/config-" + kver: "xz", "usr/lib/modules/" + kver + "/config": "xz", "boot/config": ""} {
		t.Run("the kernel decompresses, "+name, func(t *testing.T) {
			out := unpack(t, build(t, builder(t, append(files, name+"=# a config\nCONFIG_MODULE_COMPRESS_XZ=y\nCONFIG_MODULE_DECOMPRESS=y\n")...)))
			want, ext := xzipped(t, []byte("squashfs")), ".xz"
			if config == "" { // of another kernel
				want, ext = []byte("squashfs"), ""
			}
			if !bytes.Equal(out[squashfs+ext], want) {
				t.Errorf("%s is %q, want %q", squashfs+ext, out[squashfs+ext], want)
			}
			dep := "kernel/drivers/block/loop.ko: kernel/fs/overlayfs/overlay.ko\nkernel/fs/overlayfs/overlay.ko:\nkernel/fs/squashfs/squashfs.ko" + ext + ":\n"
			if got := string(out[mods+"modules.dep"]); got != dep || string(out[loop]) != "loop" || string(out[overlay]) != "overlay" {
				t.Errorf("modules.dep is %q, want %q; loop is %q, overlay %q", got, dep, out[loop], out[overlay])
			}
		})
	}
	t.Run("the kernel does not decompress", func(t *testing.T) {
		out := unpack(t, build(t, builder(t, append(files, "boot/config-"+kver+"=CONFIG_MODULE_COMPRESS_XZ=y\n# CONFIG_MODULE_DECOMPRESS is not set\n")...)))
		if got := string(out[squashfs]); got != "squashfs" {
			t.Errorf("%s is %q, want it decompressed", squashfs, got)
		}
	})

	for name, test := range map[string]struct{ ext, content, want string }{
		"bad xz": {".xz", "\xfd7zXZ\x00", "loop.ko.xz: "},
		"cut xz": {".xz", string(xzipped(t, []byte("loop"))[:40]), "loop.ko.xz: "},
		// The header of a block that asks for a dictionary of 4 GiB, and one with the filter for x86.
		"large xz":    {".xz", "\xfd7zXZ\x00\x00\x01\x69\x22\xde\x36\x02\x00\x21\x01\x28\x00\x00\x00", "dictionary of more than 64 MiB"},
		"filtered xz": {".xz", "\xfd7zXZ\x00\x00\x01\x69\x22\xde\x36\x02\x01\x04\x00\x21\x01\x16\x00\x00", "filter of xz for machine code"},
		"bad gz":      {".gz", "no gzip", "loop.ko.gz: "},
		"bad zst":     {".zst", "no zstd", "loop.ko.zst: "},
		"other":       {".lz4", "", "unknown kind of module file"},
	} {
		t.Run(name, func(t *testing.T) {
			files := with(machine(), []string{loop, mods + "modules.dep"}, loop+test.ext+"="+test.content,
				mods+"modules.dep=kernel/fs/squashfs/squashfs.ko:\nkernel/fs/overlayfs/overlay.ko:\nkernel/drivers/block/loop.ko"+test.ext+":\n")
			_, err := builder(t, files...).Build(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

// TestInitrdFirmware: the initrd contains the firmware that its modules may load.
func TestInitrdFirmware(t *testing.T) {
	mods := "usr/lib/modules/" + kver + "/"
	module := moduleELF(t, "license=GPL\x00firmware=bnx2x/a.fw\x00firmware=bnx2x/none.fw\x00firmware=../etc/shadow\x00firmware=b.fw\x00")
	if got, want := initrd.Firmware(module), []string{"bnx2x/a.fw", "bnx2x/none.fw", "../etc/shadow", "b.fw"}; !slices.Equal(got, want) {
		t.Fatalf("firmware is %q, want %q", got, want)
	}
	files := with(machine(), []string{mods + "kernel/drivers/net/bnx2x.ko"}, mods+"kernel/drivers/net/bnx2x.ko="+string(module),
		"usr/lib/firmware/bnx2x/a.fw=first", "usr/lib/firmware/b.fw.xz=second", "usr/lib/firmware/unused.fw=x", "etc/shadow=secret")
	out := unpack(t, build(t, builder(t, files...)))
	var got []string
	for name, content := range out {
		if strings.HasSuffix(name, "shadow") || strings.Contains(name, ".fw") {
			got = append(got, name+"="+string(content))
		}
	}
	slices.Sort(got)
	if want := []string{"usr/lib/firmware/b.fw.xz=second", "usr/lib/firmware/bnx2x/a.fw=first"}; !slices.Equal(got, want) {
		t.Errorf("firmware in the initrd is %q, want %q", got, want)
	}
}

// moduleELF returns an object file with a .modinfo section.
func moduleELF(t testing.TB, info string) []byte {
	t.Helper()
	names := "\x00.modinfo\x00.shstrtab\x00"
	h := elf.Header64{Type: uint16(elf.ET_REL), Machine: uint16(elf.EM_X86_64), Version: 1, Shoff: 64, Ehsize: 64, Shentsize: 64, Shnum: 3, Shstrndx: 2}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	start := uint64(64 + 3*64)
	var b bytes.Buffer
	for _, part := range []any{h, elf.Section64{},
		elf.Section64{Name: 1, Type: uint32(elf.SHT_PROGBITS), Off: start, Size: uint64(len(info))},
		elf.Section64{Name: 10, Type: uint32(elf.SHT_STRTAB), Off: start + uint64(len(info)), Size: uint64(len(names))},
	} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return append(b.Bytes(), info+names...)
}

// TestInitrdForZstdAndCpio: the programs zstd and cpio read an initrd.
func TestInitrdForZstdAndCpio(t *testing.T) {
	needs(t, "cpio", "cpio")
	needs(t, "zstd", "zstd")
	image := build(t, builder(t, machine()...))
	// -M8MB: the window needs no more memory than every kernel has.
	plain, err := exec.Command("zstd", "-dc", "-M8MB", filepath.Join(image.Path, imagebuild.InitrdFile)).Output()
	if err != nil {
		t.Fatalf("zstd: %v", err)
	}
	cmd := exec.Command("cpio", "-it", "--quiet")
	cmd.Stdin = bytes.NewReader(plain)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cpio: %v", err)
	}
	if got := strings.Fields(string(out)); len(got) != len(unpack(t, image)) || !slices.Contains(got, "init") {
		t.Errorf("cpio lists %q", got)
	}
}
