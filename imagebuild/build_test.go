package imagebuild_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"drover/imagebuild"
)

// unsquash returns a list of a squashfs: mode, owner, name and link of each file.
func unsquash(t *testing.T, image imagebuild.Image) string {
	t.Helper()
	needs(t, "unsquashfs", "squashfs-tools")
	out, err := exec.Command("unsquashfs", "-lln", "-UTC", filepath.Join(image.Path, imagebuild.SquashfsFile)).CombinedOutput()
	if err != nil {
		t.Fatalf("unsquashfs: %v\n%s", err, out)
	}
	text := regexp.MustCompile(` +`).ReplaceAllString(string(out), " ")
	return strings.ReplaceAll(text, "squashfs-root", "")
}

// content returns the content of one file of a squashfs.
func content(t *testing.T, image imagebuild.Image, name string) string {
	t.Helper()
	needs(t, "unsquashfs", "squashfs-tools")
	out, err := exec.Command("unsquashfs", "-cat", filepath.Join(image.Path, imagebuild.SquashfsFile), name).Output()
	if err != nil {
		t.Fatalf("unsquashfs -cat %s: %v", name, err)
	}
	return string(out)
}

func TestBuild(t *testing.T) {
	b := builder(t, with(machine(), nil, "etc/shadow=secret", "etc/ssh/ssh_host_rsa_key=key", "usr/lib/systemd/systemd-resolved=x",
		"etc/resolv.conf=nameserver 10.0.2.3\n", "etc/hosts=", "etc/machine-id=0123", "vmlinuz@boot/vmlinuz-"+kver,
		"var/log/apt/", "var/log/apt/term.log=x", "home/user/file=kept")...)
	image := build(t, b)

	if got, want := image.Path, filepath.Join(b.Images, "test", image.ID); got != want {
		t.Errorf("path is %q, want %q", got, want)
	}
	if link, err := os.Readlink(filepath.Join(b.Images, "test", "current")); err != nil || link != image.ID {
		t.Errorf("current leads to %q, %v, want %q", link, err, image.ID)
	}
	if got, want := string(read(t, filepath.Join(image.Path, "kernel"))), "the kernel"; got != want {
		t.Errorf("kernel is %q, want %q", got, want)
	}
	if err := image.Verify(); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(image.Path)
	if err != nil || len(entries) != 4 {
		t.Errorf("the generation has %v, %v, want four files", entries, err)
	}

	got := unsquash(t, image)
	for _, want := range []string{
		"drwxr-xr-x 0/0 ", "lrwxrwxrwx 0/0 7 1970-01-01 00:16 /lib -> usr/lib\n",
		"-r--r--r-- 0/0 0 1970-01-01 00:00 /etc/machine-id\n",
		"/etc/resolv.conf -> ../run/systemd/resolve/stub-resolv.conf\n",
		"drwxrwxrwt 0/0 3 1970-01-01 00:00 /tmp\n", " /proc\n", " /var/log/apt\n", " /home/user/file\n", " /boot\n",
		" /usr/lib/modules/" + kver + "/config\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the squashfs has no %q", want)
		}
	}
	for _, not := range []string{"ssh_host", "term.log", "vmlinuz", "initrd.img", "/boot/"} {
		if strings.Contains(got, not) {
			t.Errorf("the squashfs has %q", not)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
	if got, want := content(t, image, "usr/lib/modules/"+kver+"/config"), "CONFIG_X=y"; got != want {
		t.Errorf("kernel config is %q, want %q", got, want)
	}
	if got := content(t, image, "etc/hosts"); !strings.Contains(got, "127.0.0.1\tlocalhost") {
		t.Errorf("etc/hosts is %q", got)
	}
}

func TestBuildManifest(t *testing.T) {
	noise := make([]byte, 2<<20) // does not compress: the squashfs has several chunks
	rand.NewChaCha8([32]byte{}).Read(noise)
	b := builder(t, append(machine(), "noise="+string(noise))...)
	b.Version = "v1.2.3"
	image := build(t, b)
	var m imagebuild.Manifest
	if err := json.Unmarshal(read(t, filepath.Join(image.Path, "manifest.json")), &m); err != nil {
		t.Fatal(err)
	}
	if m.Name != "test" || m.Source != b.Source || m.KernelVersion != kver || m.Platform != "linux/amd64" || m.Level != imagebuild.DefaultLevel ||
		!m.Created.Equal(b.Now()) || m.Tools["drover"] != "v1.2.3" || m.Tools["tar2sqfs"] == "" || len(m.Files) != 3 {
		t.Errorf("manifest is %+v", m)
	}
	if got := m.ID(); got != image.ID {
		t.Errorf("ID of the manifest is %s, want %s", got, image.ID)
	}
	var chunks []string
	for piece := range slices.Chunk(read(t, filepath.Join(image.Path, "root.squashfs")), 1<<20) {
		chunks = append(chunks, fmt.Sprintf("%x", sha256.Sum256(piece)))
	}
	if m.Chunks == nil || m.Chunks.Size != 1<<20 || !slices.Equal(m.Chunks.SHA256, chunks) || len(chunks) < 2 {
		t.Errorf("chunks are %+v, want %q", m.Chunks, chunks)
	}
	m.Name, m.Source, m.Created, m.Tools, m.Level = "other", "other", time.Time{}, nil, 9
	if got := m.ID(); got != image.ID {
		t.Error("the ID depends on more than the contents")
	}
	m.KernelVersion = "other"
	if got := m.ID(); got == image.ID {
		t.Error("the ID does not depend on the kernel's version")
	}
}

// TestBuildIsReproducible: the same files give the same bytes from every form of source.
func TestBuildIsReproducible(t *testing.T) {
	files := with(machine(), nil, "opt/a=1", "opt/b>opt/a", "opt/l@a")
	b := builder(t, files...)
	want := build(t, b)

	plain := read(t, strings.TrimPrefix(b.Source, "tar:"))
	dir := t.TempDir()
	write(t, filepath.Join(dir, "root.tar.gz"), gzipped(t, plain))
	write(t, filepath.Join(dir, "root.tar.zst"), zstandard(t, plain))
	var reversed []tarEntry
	for _, f := range files[:len(files)-2] { // the hard link after its target
		reversed = append([]tarEntry{describe(f)}, reversed...)
	}
	reversed = append(reversed, describe("opt/b>opt/a"), describe("opt/l@a"))
	write(t, filepath.Join(dir, "reversed.tar"), tarOf(t, reversed...))
	l := newLayout(t)
	l.add("", l.image("amd64", "", layerOf(t, files[:5]...), gzipped(t, layerOf(t, files[5:]...)), zstandard(t, layerOf(t, ".wh.nothing"))))

	for _, source := range []string{
		b.Source, "tar:" + dir + "/root.tar.gz", "tar:" + dir + "/root.tar.zst", "tar:" + dir + "/reversed.tar",
		"oci:" + l.dir(), "oci-archive:" + l.archive(),
	} {
		b.Source, b.Images = source, t.TempDir()
		got := build(t, b)
		if got.ID != want.ID {
			t.Errorf("%s: files %v, want %v", source, got.Files, want.Files)
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	b.Images = t.TempDir()
	if got := build(t, b); got.ID != want.ID {
		t.Errorf("on one processor: files %v, want %v", got.Files, want.Files)
	}
}

// TestBuildDirAsTar: a tree on disk and a tar of it give the same squashfs.
func TestBuildDirAsTar(t *testing.T) {
	needs(t, "tar", "tar")
	root := t.TempDir()
	for _, f := range machine() {
		e := describe(f)
		path := filepath.Join(root, e.Name)
		switch {
		case strings.HasSuffix(f, "/"):
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
		case e.Linkname != "":
			if err := os.Symlink(e.Linkname, path); err != nil {
				t.Fatal(err)
			}
		default:
			write(t, path, []byte(e.content))
		}
	}
	opt := filepath.Join(root, "opt")
	write(t, filepath.Join(opt, "a"), []byte("hi"))
	for _, err := range []error{
		os.Link(filepath.Join(opt, "a"), filepath.Join(opt, "b")),
		os.Chmod(filepath.Join(opt, "a"), 0o755|os.ModeSetuid),
		os.Mkdir(filepath.Join(opt, "sticky"), 0o755),
		os.Chmod(filepath.Join(opt, "sticky"), 0o777|os.ModeSticky),
		os.Symlink("/nowhere", filepath.Join(opt, "dangling")),
		syscall.Mkfifo(filepath.Join(opt, "fifo"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		for _, err := range []error{
			os.Chown(filepath.Join(opt, "sticky"), 1234, 4321),
			syscall.Mknod(filepath.Join(opt, "null"), syscall.S_IFCHR|0o666, 1<<8|3),
			syscall.Setxattr(filepath.Join(opt, "b"), "user.note", []byte("значение"), 0),
		} {
			if err != nil && !errors.Is(err, syscall.ENOTSUP) && !errors.Is(err, syscall.EPERM) {
				t.Fatal(err)
			}
		}
	}
	b := builder(t)
	file := filepath.Join(t.TempDir(), "gnu.tar")
	if out, err := exec.Command("tar", "-C", root, "--xattrs", "--xattrs-include=*", "-cf", file, ".").CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	b.Source = "dir:" + root
	fromDir := build(t, b)
	b.Source = "tar:" + file
	fromTar := build(t, b)
	if fromDir.ID != fromTar.ID {
		t.Errorf("dir: and tar: differ\ndir:\n%s\ntar:\n%s", unsquash(t, fromDir), unsquash(t, fromTar))
	}
	got := unsquash(t, fromDir)
	for _, want := range []string{"-rwsr-xr-x", "drwxrwxrwt", "prw-------", "/opt/dangling -> /nowhere"} {
		if !strings.Contains(got, want) {
			t.Errorf("the squashfs has no %q:\n%s", want, got)
		}
	}
}

func TestBuildClampsTimes(t *testing.T) {
	old, young := describe("opt/old=1"), describe("opt/young=1")
	young.ModTime = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var entries []tarEntry
	for _, f := range machine() {
		entries = append(entries, describe(f))
	}
	l := newLayout(t)
	l.add("", l.image("amd64", "2020-02-03T04:05:06Z", tarOf(t, append(entries, old, young)...)))
	b := builder(t)
	b.Source = "oci:" + l.dir()
	got := unsquash(t, build(t, b))
	for _, want := range []string{"1970-01-01 00:16 /opt/old\n", "2020-02-03 04:05 /opt/young\n", "2020-02-03 04:05 /etc/machine-id\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("image's own time: no %q in\n%s", want, got)
		}
	}
	b.Epoch = time.Date(2019, 1, 1, 0, 0, 0, 0, time.UTC)
	got = unsquash(t, build(t, b))
	for _, want := range []string{"1970-01-01 00:16 /opt/old\n", "2019-01-01 00:00 /opt/young\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("epoch: no %q in\n%s", want, got)
		}
	}
}

func TestBuildExcludes(t *testing.T) {
	b := builder(t, with(machine(), nil, "usr/share/doc/a/b=1", "usr/share/man/c=1", "srv/x.bak=1", "srv/x=1")...)
	b.Excludes = []string{"usr/share/doc", "**/*.bak", "usr/lib/modules/*/kernel/fs"}
	b.KeepBoot = true
	image := build(t, b)
	got := unsquash(t, image)
	for _, want := range []string{" /usr/share/man/c\n", " /srv/x\n", " /boot/vmlinuz-" + kver + "\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, not := range []string{"/usr/share/doc", "x.bak", "kernel/fs"} {
		if strings.Contains(got, not) {
			t.Errorf("%q in\n%s", not, got)
		}
	}
	// The initrd contains files that the root excludes.
	if out := unpack(t, image); string(out["usr/lib/modules/"+kver+"/kernel/fs/squashfs/squashfs.ko"]) != "squashfs" {
		t.Error("squashfs.ko is missing from the initrd, or empty")
	}
}

// nothingVisible checks that a build that went wrong left nothing behind.
func TestBuildWarnsOfOtherModules(t *testing.T) {
	b := builder(t, with(machine(), nil, "usr/lib/modules/5.10/kernel/x.ko=x")...)
	var log bytes.Buffer
	b.Log = slog.New(slog.NewTextHandler(&log, nil))
	build(t, b)
	if want := "directory=usr/lib/modules/5.10"; strings.Count(log.String(), "modules of a kernel") != 1 || !strings.Contains(log.String(), want) {
		t.Errorf("log is %q, want one warning with %q", log.String(), want)
	}
}

// TestBuildAgain: a build of the same contents keeps the generation.
func TestBuildAgain(t *testing.T) {
	b := builder(t, machine()...)
	first := build(t, b)
	before, err := os.Stat(first.Path)
	if err != nil {
		t.Fatal(err)
	}
	b.Now = time.Now
	if second := build(t, b); !second.Created.Equal(first.Created) {
		t.Error("a build of the same contents replaced the generation")
	}
	if after, err := os.Stat(first.Path); err != nil || !os.SameFile(before, after) {
		t.Error("a build of the same contents touched the generation's directory")
	}

	// A damaged generation is replaced.
	squashfs := filepath.Join(first.Path, imagebuild.SquashfsFile)
	damaged := bytes.Clone(read(t, squashfs))
	damaged[len(damaged)/2] ^= 1
	write(t, squashfs, damaged)
	if err := first.Verify(); err == nil {
		t.Fatal("Verify does not see a flipped bit")
	}
	third := build(t, b)
	if err := third.Verify(); err != nil {
		t.Error(err)
	}
	if third.ID != first.ID {
		t.Error("the ID changed")
	}
}
