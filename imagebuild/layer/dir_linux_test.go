package layer_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"drover/e2e/fixture"
	"drover/imagebuild/layer"
	"drover/imagebuild/rootfs"
)

// readDir returns the entries of a tree on disk, which can be read until the test ends.
func readDir(t *testing.T, root, without string, reader *layer.Reader) ([]rootfs.Entry, error) {
	t.Helper()
	source, err := layer.OpenDir(root, without)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close() })
	return source.Layers[0].Read(t.Context(), reader, ignore)
}

// TestOpenDir: links are stored and not followed, sockets are named and left out, and so is the
// directory that the image is written to.
func TestOpenDir(t *testing.T) {
	outside := fixture.Tree(t, map[string]string{"secret": "of the host"})
	root := fixture.Tree(t, map[string]string{
		"a": "1", ".wh.b": "2", "d/c": "3", "link": "->" + outside, "d/up": "->../../secret", "var/images/x/root": "4", "var/lib": "5",
	})
	if err := os.Link(root+"/a", root+"/z"); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", root+"/d/socket")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	reader := &layer.Reader{Spool: newSpool(t, 1<<20), Whiteouts: true}
	list, err := readDir(t, root, root+"/var/images", reader)
	if err != nil {
		t.Fatal(err)
	}
	want := "/ .wh.b=2 a=1 d/ d/c=3 d/up@../../secret link@" + outside + " var/ var/lib=5 z>a"
	if got := shown(t, list); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := strings.Join(reader.Sockets, " "); got != "d/socket" {
		t.Errorf("got sockets %q, want d/socket", got)
	}
}

// TestOpenDirChanged: a file that has changed since it was found gives an error, and never the
// content of a file outside of the tree.
func TestOpenDirChanged(t *testing.T) {
	for name, change := range map[string]func(root, outside string) error{
		"longer":       func(root, _ string) error { return os.WriteFile(root+"/d/f", []byte("12345"), 0o600) },
		"gone":         func(root, _ string) error { return os.Remove(root + "/d/f") },
		"another file": func(root, _ string) error { return os.Rename(root+"/d/other", root+"/d/f") },
		"a directory":  func(root, _ string) error { return errors.Join(os.Remove(root+"/d/f"), os.Mkdir(root+"/d/f", 0o700)) },
		"a pipe": func(root, _ string) error {
			return errors.Join(os.Remove(root+"/d/f"), unix.Mkfifo(root+"/d/f", 0o600))
		},
		"a link": func(root, outside string) error {
			return errors.Join(os.Remove(root+"/d/f"), os.Symlink(outside+"/f", root+"/d/f"))
		},
		"directory a link": func(root, outside string) error {
			return errors.Join(os.Rename(root+"/d", root+"/e"), os.Symlink(outside, root+"/d"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			outside := fixture.Tree(t, map[string]string{"f": "host"})
			root := fixture.Tree(t, map[string]string{"d/f": "1234", "d/other": "5678", "z/last": ""})
			list, err := readDir(t, root, "", &layer.Reader{Spool: newSpool(t, 1<<20)})
			if err != nil {
				t.Fatal(err)
			}
			if err := change(root, outside); err != nil {
				t.Fatal(err)
			}
			for _, e := range list {
				if strings.Join(e.Path, "/") == "d/f" {
					if content, err := e.File.Content(); err == nil {
						t.Errorf("got %q, want an error", content)
					}
				}
			}
		})
	}
}

// TestOpenDirBounds: the limits of an image hold for a tree, too.
func TestOpenDirBounds(t *testing.T) {
	root := fixture.Tree(t, map[string]string{"a": "12345", "sparse": ""})
	if err := os.Truncate(root+"/sparse", 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, err := readDir(t, root, "", &layer.Reader{Spool: newSpool(t, 1<<20)}); err == nil || !strings.Contains(err.Error(), "the tree is larger than 1048576 bytes") {
		t.Errorf("a file of 1 TiB: got error %v", err)
	}
	deep := t.TempDir()
	if err := os.MkdirAll(filepath.Join(deep, strings.Repeat("a/", 300)), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := readDir(t, deep, "", &layer.Reader{Spool: newSpool(t, 1<<20)}); err == nil || !strings.Contains(err.Error(), "more than 256 elements") {
		t.Errorf("a deep tree: got error %v", err)
	}
	source, err := layer.OpenDir(root, "")
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := source.Layers[0].Read(ctx, &layer.Reader{Spool: newSpool(t, 1<<20)}, ignore); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got error %v, want %v", err, context.Canceled)
	}
	for _, path := range []string{root + "/a", root + "/none"} {
		if _, err := layer.OpenDir(path, ""); err == nil {
			t.Errorf("%s was opened", path)
		}
	}
}

// TestDirInContainer: files that a container engine mounted are not the image's.
func TestDirInContainer(t *testing.T) {
	fixture.Root(t) // to mount files
	root := fixture.Tree(t, map[string]string{"etc/hosts": "of the image", "etc/hostname": "of the image", "etc/resolv.conf": "of the image", "etc/motd": "of the image"})
	host := filepath.Join(fixture.Tree(t, map[string]string{"host": "10.0.2.3 of the build host\n"}), "host")
	mounted := []string{"etc/hosts", "etc/hostname", "etc/resolv.conf"}
	// This thread alone sees the mounts; it ends with its goroutine.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(mounted, "etc/motd") {
		target := filepath.Join(root, name)
		if err := unix.Mount(host, target, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Unmount(target, unix.MNT_DETACH) }()
	}
	list, err := readDir(t, root, "", &layer.Reader{Spool: newSpool(t, 1<<30)})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		name := strings.Join(e.Path, "/")
		if want := map[string]int64{"etc/hosts": 0, "etc/hostname": 0, "etc/resolv.conf": 0, "etc/motd": 27}; strings.HasPrefix(name, "etc/") && e.File.Size != want[name] {
			t.Errorf("%s has %d bytes, want %d", name, e.File.Size, want[name])
		}
	}
}
