package imagebuild_test

import (
	"bytes"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"drover/imagebuild"
)

// TestLostAttributes: what squashfs cannot store is named.
func TestLostAttributes(t *testing.T) {
	entry := func(name string, records map[string]string) tarEntry {
		e := describe(name)
		e.PAXRecords = records
		return e
	}
	entries := []tarEntry{
		entry("srv/a=1", map[string]string{"SCHILY.acl.access": "user::rw-\nuser:daemon:r--\ngroup::r--\nmask::r--\nother::---\n"}),
		entry("srv/b=1", map[string]string{"SCHILY.xattr.system.posix_acl_access": "\x02\x00", "SCHILY.xattr.user.kept": "x"}),
		entry("srv/c=1", map[string]string{"SCHILY.xattr.trusted.overlay.opaque": "y", "SCHILY.xattr.security.capability": "x"}),
		entry("srv/d=1", map[string]string{"SCHILY.xattr.com.apple.quarantine": "x"}),
		entry("tmp/e=1", map[string]string{"SCHILY.acl.default": "user::rw-"}), // is left out anyway
	}
	for _, f := range machine() {
		entries = append(entries, describe(f))
	}
	b := builder(t)
	b.Source = "tar:" + filepath.Join(t.TempDir(), "root.tar")
	write(t, strings.TrimPrefix(b.Source, "tar:"), tarOf(t, entries...))
	var log bytes.Buffer
	b.Log = slog.New(slog.NewTextHandler(&log, nil))
	build(t, b)
	for _, want := range []string{`attribute=system.posix_acl_access files=2 first="srv/a, srv/b"`, "attribute=com.apple.quarantine files=1 first=srv/d"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log has no %q:\n%s", want, log.String())
		}
	}
	if n := strings.Count(log.String(), "cannot store"); n != 2 {
		t.Errorf("log has %d warnings, want 2:\n%s", n, log.String())
	}
}

// TestSocketsAreNamed: a directory's sockets are left out with a warning.
func TestSocketsAreNamed(t *testing.T) {
	b := builder(t)
	root := rootDir(t)
	socket, err := net.Listen("unix", filepath.Join(root, "opt.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	b.Source = "dir:" + root
	var log bytes.Buffer
	b.Log = slog.New(slog.NewTextHandler(&log, nil))
	if got := unsquash(t, build(t, b)); strings.Contains(got, "opt.sock") {
		t.Error("the squashfs has the socket")
	}
	if want := "files=1 first=opt.sock"; !strings.Contains(log.String(), want) {
		t.Errorf("log is %q, want %q", log.String(), want)
	}
}

// rootDir returns a directory with the files of machine.
func rootDir(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	for _, f := range with(machine(), []string{"lib", "usr/", "usr/lib/", "etc/"}) {
		write(t, filepath.Join(root, describe(f).Name), []byte(describe(f).content))
	}
	if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestPublishedFilesAreReadable: the umask of the builder does not matter.
func TestPublishedFilesAreReadable(t *testing.T) {
	b := builder(t, machine()...)
	b.Images = filepath.Join(filepath.Dir(b.Images), "srv", "images")
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	image := build(t, b)
	err := filepath.WalkDir(filepath.Join(filepath.Dir(b.Images)), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() == ".lock" || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o044 != 0o044 || d.IsDir() && info.Mode().Perm()&0o011 != 0o011 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := (imagebuild.File{}); image.Files[imagebuild.SquashfsFile] == want {
		t.Error("the manifest has no squashfs")
	}
}

// TestDirHoldsImages: the directory that a build writes to may lie in its source, as in
// "drover image build dir:/" inside a container.
func TestDirHoldsImages(t *testing.T) {
	b := builder(t)
	root := rootDir(t)
	b.Source, b.Images = "dir:"+root, filepath.Join(root, "var/lib/drover/images")
	first := build(t, b)
	if got := unsquash(t, first); strings.Contains(got, "images") || !strings.Contains(got, " /var/lib/drover\n") {
		t.Errorf("the squashfs has the images, or not their parent:\n%s", got)
	}
	if second := build(t, b); second.ID != first.ID {
		t.Error("a second build has another ID")
	}
}
