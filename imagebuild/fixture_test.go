package imagebuild_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"drover/e2e/fixture"
	"drover/imagebuild"
)

const kver = "6.1.0-9-test"

// needs skips a test when a program is missing. In CI it fails the test, since a test that
// is always skipped tests nothing.
func needs(t testing.TB, program, pkg string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	fixture.Missing(t, fmt.Sprintf("%s is missing: install %s", program, pkg))
}

// machine returns a small root file system that can become an image.
func machine() []string {
	mods := "usr/lib/modules/" + kver + "/"
	return []string{
		"usr/", "usr/lib/", "lib@usr/lib", "etc/", "usr/lib/systemd/systemd=systemd",
		"boot/vmlinuz-" + kver + "=the kernel", "boot/config-" + kver + "=CONFIG_X=y", "boot/initrd.img-" + kver + "=not ours",
		mods + "modules.dep=kernel/fs/squashfs/squashfs.ko:\nkernel/fs/overlayfs/overlay.ko:\nkernel/drivers/block/loop.ko:\n" +
			"kernel/drivers/net/virtio_net.ko: kernel/net/core/failover.ko\nkernel/net/core/failover.ko:\n" +
			"kernel/drivers/net/bnx2x.ko: kernel/lib/libcrc32c.ko\nkernel/lib/libcrc32c.ko:\nkernel/crypto/crc32c_generic.ko:\n" +
			"kernel/drivers/usb/usb-storage.ko:\nkernel/drivers/nvme/nvme.ko:\n",
		mods + "modules.alias=alias virtio:d00000001v* virtio_net\nalias usb:v* usb_storage\nalias crc32c crc32c_generic\n",
		mods + "modules.softdep=softdep libcrc32c pre: crc32c\nsoftdep usb_storage post: nvme\n",
		mods + "modules.builtin=kernel/net/packet/af_packet.ko\n",
		mods + "kernel/fs/squashfs/squashfs.ko=squashfs", mods + "kernel/fs/overlayfs/overlay.ko=overlay",
		mods + "kernel/drivers/block/loop.ko=loop", mods + "kernel/drivers/net/virtio_net.ko=virtio_net",
		mods + "kernel/net/core/failover.ko=failover", mods + "kernel/drivers/net/bnx2x.ko=bnx2x",
		mods + "kernel/lib/libcrc32c.ko=libcrc32c", mods + "kernel/crypto/crc32c_generic.ko=crc32c",
		mods + "kernel/drivers/usb/usb-storage.ko=usb", mods + "kernel/drivers/nvme/nvme.ko=nvme",
	}
}

// with returns files without the names in drop, and with more.
func with(files []string, drop []string, more ...string) []string {
	var out []string
	for _, f := range files {
		kept := true
		for _, d := range drop {
			kept = kept && describe(f).Name != d
		}
		if kept {
			out = append(out, f)
		}
	}
	return append(out, more...)
}

// staticELF returns the headers of a program for a processor, static or, with interp,
// dynamic.
func staticELF(t testing.TB, machine elf.Machine, interp bool) []byte {
	t.Helper()
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	p := elf.Prog64{Type: uint32(elf.PT_LOAD)}
	if interp {
		p.Type = uint32(elf.PT_INTERP)
	}
	var b bytes.Buffer
	for _, part := range []any{h, p} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// builder returns a Builder for a tar of files, with directories of its own.
func builder(t testing.TB, files ...string) imagebuild.Builder {
	t.Helper()
	needs(t, "tar2sqfs", "squashfs-tools-ng")
	dir := t.TempDir()
	entries := make([]tarEntry, len(files))
	for i, f := range files {
		entries[i] = describe(f)
	}
	write(t, filepath.Join(dir, "root.tar"), tarOf(t, entries...))
	write(t, filepath.Join(dir, "init"), staticELF(t, elf.EM_X86_64, false))
	return imagebuild.Builder{
		Name: "test", Source: "tar:" + filepath.Join(dir, "root.tar"), Images: filepath.Join(dir, "images"),
		Init: filepath.Join(dir, "init"), Now: func() time.Time { return time.Unix(1_700_000_000, 0) },
	}
}

func build(t testing.TB, b imagebuild.Builder) imagebuild.Image {
	t.Helper()
	image, err := b.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zstandard(t testing.TB, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}

func xzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	// As the kernel's Makefile has it: xz --check=crc32 --lzma2=dict=1MiB.
	w, err := xz.WriterConfig{DictCap: 1 << 20, CheckSum: xz.CRC32}.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// layout is an OCI image layout under construction.
type layout struct {
	t     testing.TB
	files map[string][]byte
	index []any
}

func newLayout(t testing.TB) *layout {
	return &layout{t: t, files: map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`)}}
}

// blob stores content and returns its descriptor.
func (l *layout) blob(mediaType string, content []byte) map[string]any {
	sum := sha256.Sum256(content)
	l.files["blobs/sha256/"+hex.EncodeToString(sum[:])] = content
	return map[string]any{"mediaType": mediaType, "digest": "sha256:" + hex.EncodeToString(sum[:]), "size": len(content)}
}

func (l *layout) json(mediaType string, v any) map[string]any {
	b, err := json.Marshal(v)
	if err != nil {
		l.t.Fatal(err)
	}
	return l.blob(mediaType, b)
}

// image stores an image for an architecture and returns its descriptor.
func (l *layout) image(arch, created string, layers ...[]byte) map[string]any {
	descs, ids := []any{}, []string{}
	for _, b := range layers {
		descs = append(descs, l.blob("application/vnd.oci.image.layer.v1.tar", b))
		ids = append(ids, "sha256:of the plain layer")
	}
	config := map[string]any{"os": "linux", "architecture": arch, "rootfs": map[string]any{"type": "layers", "diff_ids": ids}}
	if created != "" {
		config["created"] = created
	}
	return l.json("application/vnd.oci.image.manifest.v1+json", map[string]any{
		"schemaVersion": 2, "config": l.json("application/vnd.oci.image.config.v1+json", config), "layers": descs})
}

// add lists a descriptor in index.json, tagged unless tag is empty.
func (l *layout) add(tag string, desc map[string]any) {
	if tag != "" {
		desc["annotations"] = map[string]string{"org.opencontainers.image.ref.name": tag}
	}
	l.index = append(l.index, desc)
}

// all returns the files of the layout.
func (l *layout) all() map[string][]byte {
	b, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": l.index})
	if err != nil {
		l.t.Fatal(err)
	}
	l.files["index.json"] = b
	return l.files
}

// dir writes the layout as a directory.
func (l *layout) dir() string {
	dir := l.t.TempDir()
	for name, content := range l.all() {
		write(l.t, filepath.Join(dir, name), content)
	}
	return dir
}

// archive writes the layout as a tar.
func (l *layout) archive() string {
	var entries []tarEntry
	for name, content := range l.all() {
		entries = append(entries, tarEntry{Header: tar.Header{Name: "./" + name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))}, content: string(content)})
	}
	path := filepath.Join(l.t.TempDir(), "image.tar")
	write(l.t, path, tarOf(l.t, entries...))
	return path
}
