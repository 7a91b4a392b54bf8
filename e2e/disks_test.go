package e2e_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"drover/e2e/buildcache"
	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/node/gpt"
	"drover/pools/boots"
)

// TestDisks boots a machine with an empty NVMe disk twice: containerd's directory is on it,
// and the second boot finds the file of the first. Disks with the data of others, and one
// that is missing, have a tmpfs in their place and a reported reason; nothing is written
// to them.
func TestDisks(t *testing.T) {
	b := buildTiny(t, t.TempDir())
	disksImage(t, b)
	dir := t.TempDir()
	var disks []lab.Disk
	sums := map[string][32]byte{}
	for _, d := range []struct {
		serial string
		size   int
		at     map[int]string
	}{
		{"EMPTY", 128 << 20, nil},
		{"EXT4", 32 << 20, map[int]string{1080: "\x53\xef"}},
		{"TABLE", 32 << 20, map[int]string{0: foreignTable(t, 32<<20)}},
		{"LVM", 32 << 20, map[int]string{512: "LABELONE"}},
		{"RAID", 32 << 20, map[int]string{32<<20 - 8192: "\xfc\x4e\x2b\xa9"}},
		{"BYTES", 32 << 20, map[int]string{1<<20 - 1: "x"}},
	} {
		content := make([]byte, d.size)
		for at, text := range d.at {
			copy(content[at:], text)
		}
		file := filepath.Join(dir, d.serial)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		disks, sums[file] = append(disks, lab.Disk{File: file, Serial: d.serial}), sha256.Sum256(content)
	}
	delete(sums, disks[0].File)

	s := open(t, b, site.Config{Name: "drover-e2e-disks", Farm: "testdata/disks.yaml"})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	for boot, want := range []struct{ did, marker string }{{"formatted", "none"}, {"mounted", "1"}} {
		g, err := s.PowerOn(lab.Machine{Name: fmt.Sprintf("n1-%d", boot), NICs: card("52:54:00:77:04:01"), Disks: disks})
		if err != nil {
			t.Fatal(err)
		}
		bootWithDisks(ctx, t, s, g, want.did, want.marker)
		if err := g.PowerOff(); err != nil {
			t.Error(err)
		}
	}
	reportsHardware(ctx, t, s, disks[0])
	for file, sum := range sums {
		if got := sha256.Sum256([]byte(read(t, file))); got != sum {
			t.Errorf("disk %s was written to", filepath.Base(file))
		}
	}
}

// bootWithDisks checks one boot.
func bootWithDisks(ctx context.Context, t *testing.T, s *site.Site, g *lab.Guest, did, marker string) {
	t.Helper()
	defer story(t, s, g)
	for _, want := range []string{
		"disks: zram: swap of [0-9]+ MB",
		"disks: data is /dev/nvme0n1, " + did,
		"tiny: mount /var/lib/containerd ext4 /dev/nvme0n1p2 with marker " + marker,
		"tiny: mount /var/lib/kubelet ext4 /dev/nvme0n1p3 with marker " + marker,
		"tiny: mount /srv/ext4 tmpfs drover-tmpfs",
		"tiny: mount /srv/gone tmpfs drover-tmpfs",
		"tiny: swap /dev/nvme0n1p1",
		"tiny: swap /dev/zram0",
		"tiny: done",
	} {
		says(ctx, t, g, want)
	}
	record := logBoot(ctx, t, s, "52:54:00:77:04:01")
	if !reached(record, boots.StepOnline) {
		t.Error("the node is not online")
	}
	var reported strings.Builder
	for _, e := range record.Steps {
		reported.WriteString(e.Error + "\n")
	}
	all := reported.String() + read(t, g.Console)
	for name, why := range map[string]string{
		"ext4": "an ext2, ext3 or ext4 file system", "table": `partition table that is not drover's, with "theirs"`, "lvm": "an LVM physical volume",
		"raid": "a RAID member \\(md\\)", "bytes": "unknown data at byte 1048575", "gone": "none of [0-9]+ disks is it",
	} {
		if !regexp.MustCompile(`disk "` + name + `": .*` + why + `.*going on without: a tmpfs is at /srv/` + name).MatchString(all) {
			t.Errorf("disk %s: no reason %q", name, why)
		}
	}
	fixture.WantText(t, "reported", reported.String(), "going on without: a tmpfs is at /srv/")
}

// foreignTable returns the begin of a disk with a partition table of another system.
func foreignTable(t *testing.T, size int64) string {
	t.Helper()
	p, err := gpt.New(size, 512, []gpt.Want{{Name: "theirs", Type: gpt.Linux}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "table"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := p.Write(f, size, 512); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// disksImage builds an image that has the tiny system, the modules of disks, and this
// host's mkfs.ext4.
func disksImage(t *testing.T, b *site.Built) {
	t.Helper()
	root := tinyTree(t, "nvme", "virtio_blk", "virtio_scsi", "sd_mod", "ext4", "crc32c_generic", "zram", "lzo_rle", "lzo")
	mkfs, err := exec.LookPath("mkfs.ext4")
	if err != nil {
		fixture.Missing(t, "mkfs.ext4 (package e2fsprogs)")
	}
	libraries, err := exec.CommandContext(t.Context(), "ldd", mkfs).Output()
	if err != nil {
		t.Fatal(err)
	}
	install(t, root, "/usr/sbin/mkfs.ext4", mkfs)
	for word := range bytes.FieldsSeq(libraries) {
		if path := string(word); filepath.IsAbs(path) {
			install(t, root, path, path)
		}
	}
	out, err := exec.CommandContext(t.Context(), b.Drover, "image", "build", "--images", b.Images, "--name", "disks",
		"--init", filepath.Join(b.Root, "bin", "drover-init"), "dir:"+root).CombinedOutput()
	if err != nil {
		t.Fatalf("drover image build: %v\n%s", err, out)
	}
}

// tinyTree makes a root file system that has the tiny system, Debian's kernel, and the modules
// of QEMU's machine and more.
func tinyTree(t *testing.T, modules ...string) string {
	t.Helper()
	kernel, err := buildcache.Kernel(t.Context(), t.Output(), "amd64")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	layout{kernel: "boot/vmlinuz-%s"}.write(t, root, kernel, modules...)
	tiny, err := site.TinyRoot(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tiny)
	install(t, root, "/init", filepath.Join(tiny, "init"))
	if err := os.MkdirAll(filepath.Join(root, "usr/sbin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"sbin": "usr/sbin", "usr/sbin/init": "/init"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// install copies a program into a root file system.
func install(t *testing.T, root, to, from string) {
	t.Helper()
	to = filepath.Join(root, to)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, []byte(read(t, from)), 0o755); err != nil {
		t.Fatal(err)
	}
}
