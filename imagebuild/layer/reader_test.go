package layer_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"drover/imagebuild/layer"
	"drover/imagebuild/rootfs"
)

// archive returns a tar of files. A name that ends with "/" is a directory, "NAME=CONTENT" a
// file, "NAME@TARGET" a symbolic link and "NAME>TARGET" a hard link.
func archive(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h, content := &tar.Header{Name: f, Mode: 0o644, Typeflag: tar.TypeReg}, ""
		if name, text, ok := strings.Cut(f, "="); ok {
			h.Name, content = name, text
		} else if i := strings.IndexAny(f, "@>"); i >= 0 {
			h.Name, h.Linkname, h.Typeflag = f[:i], f[i+1:], map[byte]byte{'@': tar.TypeSymlink, '>': tar.TypeLink}[f[i]]
		} else if strings.HasSuffix(f, "/") {
			h.Typeflag = tar.TypeDir
		}
		h.Size = int64(len(content))
		if err := w.WriteHeader(h); err != nil {
			t.Fatalf("%q: %v", f, err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatalf("%q: %v", f, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func newSpool(t testing.TB, limit int64) *layer.Spool {
	t.Helper()
	spool, err := layer.NewSpool(t.TempDir(), limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = spool.Close() })
	return spool
}

// shown describes entries as archive does, with "-" before what a whiteout hides and "-*"
// before a directory whose content it hides.
func shown(t testing.TB, list []rootfs.Entry) string {
	t.Helper()
	var all []string
	for _, e := range list {
		name := strings.Join(e.Path, "/")
		switch {
		case e.Hide == rootfs.HideFile:
			name = "-" + name
		case e.Hide == rootfs.HideChildren:
			name = "-*" + name
		case e.Link != nil:
			name += ">" + strings.Join(e.Link, "/")
		case e.File == nil: // bookkeeping
			name = "?" + name
		case e.File.Kind == tar.TypeSymlink:
			name += "@" + e.File.Target
		case e.File.Kind == tar.TypeDir:
			name += "/"
		case e.File.Size > 0:
			content, err := e.File.Content()
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			name += "=" + string(content)
		}
		all = append(all, name)
	}
	return strings.Join(all, " ")
}

func ignore(int64) {}

// TestStream: the entries of a stream, in its order and with its contents.
func TestStream(t *testing.T) {
	for _, tt := range []struct {
		name   string
		files  []string
		layer  string // as a layer of an OCI image
		rootfs string // as a root file system; empty: the same
	}{
		{"contents in any order", []string{"b=2", "d/", "a=1", "d/c=3"}, "b=2 d/ a=1 d/c=3", ""},
		{"a name twice", []string{"a=1", "a=2"}, "a=1 a=2", ""},
		{"leading slash and dots", []string{"/a=1", "./b=2", ".//c=3", "d/./e=4", "./"}, "a=1 b=2 c=3 d/e=4 /", ""},
		{"names that only look like ..", []string{"..a=1", "...=2", "a/..b=3"}, "..a=1 ...=2 a/..b=3", ""},
		{"whiteout", []string{".wh.a", "d/.wh.b", "c=1"}, "-a -d/b c=1", ".wh.a d/.wh.b c=1"},
		{"opaque directory", []string{"d/", "d/.wh..wh..opq", ".wh..wh..opq"}, "d/ -*d -*", "d/ d/.wh..wh..opq .wh..wh..opq"},
		{"bookkeeping of AUFS", []string{".wh..wh.plnk/", ".wh..wh.plnk/1.2=x", ".wh..wh.aufs"}, "?.wh..wh.plnk ?.wh..wh.plnk/1.2 ?.wh..wh.aufs", ".wh..wh.plnk/ .wh..wh.plnk/1.2=x .wh..wh.aufs"},
		{"directory whose name is a mark", []string{".wh.d/x=1"}, ".wh.d/x=1", ""},
		{"whiteout that is a link hides, and links nothing", []string{".wh.a@/etc/shadow", ".wh.b>c"}, "-a -b", ".wh.a@/etc/shadow .wh.b>c"},
		{"symbolic links that lead outside stay text", []string{"a@../../etc/shadow", "b@/etc/shadow"}, "a@../../etc/shadow b@/etc/shadow", ""},
		{"hard links", []string{"a=1", "b>a", "c>./a"}, "a=1 b>a c>a", ""},
		{"nothing", nil, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := archive(t, tt.files...)
			for _, whiteouts := range []bool{true, false} {
				want := tt.layer
				if !whiteouts && tt.rootfs != "" {
					want = tt.rootfs
				}
				list, err := (&layer.Reader{Spool: newSpool(t, 1<<20), Whiteouts: whiteouts}).Stream(t.Context(), bytes.NewReader(b), ignore)
				if err != nil {
					t.Fatal(err)
				}
				if got := shown(t, list); got != want {
					t.Errorf("whiteouts %t: got %s, want %s", whiteouts, got, want)
				}
			}
		})
	}
}

// TestStreamRefuses: names that lead out of the root, damage, and what no image has.
func TestStreamRefuses(t *testing.T) {
	deep := strings.Repeat("a/", 300) + "b"
	damaged := gzipped(t, archive(t, "a=content"))
	damaged[len(damaged)-6]++ // of its checksum
	for _, tt := range []struct {
		name string
		tar  []byte
		want string
	}{
		{"name with ..", archive(t, "../etc/passwd=x"), `entry "../etc/passwd": name holds ".."`},
		{".. in the middle", archive(t, "a/../../b=x"), `name holds ".."`},
		{"absolute name with ..", archive(t, "/../b=x"), `name holds ".."`},
		{"whiteout of a name with ..", archive(t, "../.wh.b"), `name holds ".."`},
		{"symbolic link at a name with ..", archive(t, "../a@b"), `name holds ".."`},
		{"hard link that leads outside", archive(t, "a>../../etc/shadow"), `hard link to "../../etc/shadow": name holds ".."`},
		{"deep name", archive(t, deep+"=x"), "more than 256 elements"},
		{"deep hard link", archive(t, "a>"+deep), "more than 256 elements"},
		{"long element", archive(t, strings.Repeat("x", 256)+"=y"), "longer than 255"},
		{"cut short in a file", archive(t, "a=content")[:515], "unexpected EOF"},
		{"cut short in a header", archive(t, "a=content")[:100], "unexpected EOF"},
		{"cut short, compressed", gzipped(t, archive(t, "a=content"))[:40], "unexpected EOF"},
		{"damaged, compressed", damaged, "invalid checksum"},
		{"no tar", bytes.Repeat([]byte("no tar "), 100), "invalid tar header"},
		{"xz", []byte("\xfd7zXZ\x00 and more"), "compressed with xz, which is not supported: use zstd or gzip"},
		{"bzip2", []byte("BZh91AY and more"), "compressed with bzip2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list, err := (&layer.Reader{Spool: newSpool(t, 1<<20), Whiteouts: true}).Stream(t.Context(), bytes.NewReader(tt.tar), ignore)
			if err == nil || !strings.Contains(err.Error(), tt.want) || list != nil {
				t.Errorf("got %d entries and error %v, want one with %q", len(list), err, tt.want)
			}
		})
	}
}

// TestStreamTo: whatever the compression, the plain stream is passed on for its digest, and all
// of the stored one is read, also what follows the tar.
func TestStreamTo(t *testing.T) {
	plain := append(archive(t, "a=1"), make([]byte, 9000)...)
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, stored := range map[string][]byte{
		"plain": plain, "gzip": gzipped(t, plain), "zstd": w.EncodeAll(plain, nil), "gzip in two parts": append(gzipped(t, plain[:700]), gzipped(t, plain[700:])...),
	} {
		var got bytes.Buffer
		var progress int64
		list, err := (&layer.Reader{Spool: newSpool(t, 1<<20)}).StreamTo(t.Context(), &got, bytes.NewReader(stored), func(n int64) { progress += n })
		if err != nil || shown(t, list) != "a=1" {
			t.Errorf("%s: got %s, %v", name, shown(t, list), err)
		}
		if !bytes.Equal(got.Bytes(), plain) || progress != int64(len(stored)) {
			t.Errorf("%s: %d bytes of %d were passed on, %d of %d read", name, got.Len(), len(plain), progress, len(stored))
		}
	}
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }

// TestStreamBounds: a small stream cannot make the reader unpack without end, or take a window
// of memory that the stream chooses.
func TestStreamBounds(t *testing.T) {
	bomb := gzipped(t, append(archive(t, "a=1"), make([]byte, 64<<20)...))
	var plain counter
	if _, err := (&layer.Reader{Spool: newSpool(t, 1<<20)}).StreamTo(t.Context(), &plain, bytes.NewReader(bomb), ignore); err != nil || plain > 17<<20 {
		t.Errorf("zeros after the tar: %d MiB were unpacked, %v", plain>>20, err)
	}
	// A zstd frame whose header claims a window of 2 GiB (RFC 8878, section 3.1.1.1.2).
	window := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, (31 - 10) << 3, 0x01, 0x00, 0x00}
	if _, err := (&layer.Reader{Spool: newSpool(t, 1<<20)}).Stream(t.Context(), bytes.NewReader(window), ignore); !errors.Is(err, zstd.ErrWindowSizeExceeded) {
		t.Errorf("a window of 2 GiB: got error %v, want %v", err, zstd.ErrWindowSizeExceeded)
	}
}

// TestStreamCancelled: a stream without end ends with its context.
func TestStreamCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	defer r.Close()
	go func() {
		tw := tar.NewWriter(w)
		for i := 0; ; i++ {
			if i == 10 {
				cancel()
			}
			if tw.WriteHeader(&tar.Header{Name: fmt.Sprint(i % 10), Typeflag: tar.TypeReg}) != nil {
				return
			}
		}
	}()
	if _, err := (&layer.Reader{Spool: newSpool(t, 1<<20)}).Stream(ctx, r, ignore); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
}

// TestOpenTar: a tar is a whole root file system. One that was cut between two files is not
// taken for a smaller one, and what is no file is not opened: a pipe would block.
func TestOpenTar(t *testing.T) {
	path := filepath.Join(t.TempDir(), "root.tar")
	read := func(b []byte) (string, error) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		source, err := layer.OpenTar(path)
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		if l := source.Layers[0]; len(source.Layers) != 1 || l.Size != int64(len(b)) || l.Name != path {
			t.Errorf("got layers %+v", source.Layers)
		}
		list, err := source.Layers[0].Read(t.Context(), &layer.Reader{Spool: newSpool(t, 1<<20), Whiteouts: true}, ignore)
		return shown(t, list), err
	}
	whole := archive(t, "a=1", ".wh.b=2")
	if got, err := read(whole); err != nil || got != "a=1 .wh.b=2" {
		t.Errorf("got %s, %v", got, err)
	}
	for name, b := range map[string][]byte{"after a file": whole[:1024], "after the padding of the last": whole[:2048], "of nothing": nil} {
		if got, err := read(b); err == nil || !strings.Contains(err.Error(), "cut short") {
			t.Errorf("cut %s: got %s, %v", name, got, err)
		}
	}
	for _, path := range []string{t.TempDir(), "/dev/zero", filepath.Join(t.TempDir(), "none")} {
		if _, err := layer.OpenTar(path); err == nil {
			t.Errorf("%s was opened", path)
		}
	}
}
