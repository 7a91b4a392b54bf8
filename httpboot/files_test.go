package httpboot_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"drover/httpboot/script"
)

const imagePath = "/images/debian-12/" + generation + "/"

func TestImageFiles(t *testing.T) {
	root := contents["root.squashfs"]
	etag := `"` + digest(root) + `"`
	tests := []struct {
		name   string
		method string
		header []string
		status int
		body   []byte
		ranges string // Content-Range
	}{
		{name: "whole", status: 200, body: root},
		{name: "head", method: "HEAD", status: 200, body: nil},
		{name: "range", header: []string{"Range", "bytes=100-199"}, status: 206, body: root[100:200], ranges: "bytes 100-199/4900000"},
		{name: "resume", header: []string{"Range", "bytes=4899990-"}, status: 206, body: root[4899990:], ranges: "bytes 4899990-4899999/4900000"},
		{name: "last bytes", header: []string{"Range", "bytes=-7"}, status: 206, body: []byte("squash "), ranges: "bytes 4899993-4899999/4900000"},
		{name: "resume the same", header: []string{"Range", "bytes=10-19", "If-Range", etag}, status: 206, body: root[10:20], ranges: "bytes 10-19/4900000"},
		{name: "resume another", header: []string{"Range", "bytes=10-19", "If-Range", `"other"`}, status: 200, body: root},
		{name: "resume by date", header: []string{"Range", "bytes=10-19", "If-Range", "Mon, 01 Jan 2035 00:00:00 GMT"}, status: 200, body: root},
		{name: "cached", header: []string{"If-None-Match", etag}, status: 304},
		{name: "cached another", header: []string{"If-None-Match", `"other"`}, status: 200, body: root},
		{name: "behind the end", header: []string{"Range", "bytes=4900000-"}, status: 416, ranges: "bytes */4900000"},
	}
	w := newWorld(t, nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.method == "" {
				tt.method = "GET"
			}
			resp := w.do("127.0.0.1", tt.method, imagePath+"root.squashfs", "", tt.header...)
			if resp.Code != tt.status {
				t.Fatalf("got status %d, want %d", resp.Code, tt.status)
			}
			if got := resp.Header().Get("Content-Range"); got != tt.ranges {
				t.Errorf("got Content-Range %q, want %q", got, tt.ranges)
			}
			if tt.status == 416 {
				return
			}
			if !bytes.Equal(resp.Body.Bytes(), tt.body) {
				t.Errorf("got %d bytes, want %d others", resp.Body.Len(), len(tt.body))
			}
			if got := resp.Header().Get("ETag"); got != etag {
				t.Errorf("got ETag %s, want %s", got, etag)
			}
			if got, want := resp.Header().Get("Cache-Control"), "public, max-age=31536000, immutable"; got != want {
				t.Errorf("got Cache-Control %q, want %q", got, want)
			}
			if got := resp.Header().Get("Content-Length"); tt.method == "HEAD" && got != "4900000" {
				t.Errorf("got Content-Length %q, want 4900000", got)
			}
		})
	}
}

func TestPaths(t *testing.T) {
	loaders := t.TempDir()
	writeFile(t, filepath.Join(loaders, "snponly.efi"), []byte("loader"))
	writeFile(t, filepath.Join(loaders, "..hidden"), []byte("hidden"))
	if err := os.MkdirAll(filepath.Join(loaders, "sub", "sub.efi"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(loaders, "link.efi")); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(w *world) { w.Loaders = loaders })
	tests := []struct {
		method, path string
		status       int
	}{
		{"GET", imagePath + "kernel", 200},
		{"GET", "//images//debian-12///" + generation + "/kernel", 200},
		{"GET", "/%69mages/debian-12/" + generation + "/kernel", 200},
		{"GET", "/loaders/snponly.efi", 200},
		{"GET", "/loaders//snponly.efi", 200},
		{"HEAD", "//loaders/snponly.efi", 200},
		// Names on disk are not those of URLs.
		{"GET", imagePath + "file-kernel", 404},
		{"GET", imagePath + "manifest.json", 200},
		{"GET", imagePath + "Kernel", 404},
		{"GET", "/images/debian-12/none/kernel", 404},
		{"GET", "/images/debian-12/" + strings.Repeat("0", 64) + "/kernel", 404},
		{"GET", "/images/debian-12/sha256:" + generation + "/kernel", 404},
		{"GET", "/images/Debian-12/" + generation + "/kernel", 404},
		{"GET", "/images/debian-13/" + generation + "/kernel", 404},
		{"GET", "/images/debian-12/kernel", 404},
		// Directories.
		{"GET", "/", 404},
		{"GET", "/images", 404},
		{"GET", "/images/", 404},
		{"GET", "/images/debian-12", 404},
		{"GET", "/images/debian-12/", 404},
		{"GET", imagePath, 404},
		{"GET", "/loaders", 404},
		{"GET", "/loaders/", 404},
		{"GET", "/loaders/sub", 404},
		{"GET", "/loaders/sub/", 404},
		{"GET", "/loaders/sub%2Fsub.efi", 404},
		// Traversal.
		{"GET", "/loaders/../snponly.efi", 404},
		{"GET", "/loaders/./snponly.efi", 404},
		{"GET", "/loaders/%2e%2e/%2e%2e/etc/passwd", 404},
		{"GET", "/loaders/..%2F..%2Fetc%2Fpasswd", 404},
		{"GET", "/loaders/%2Fetc%2Fpasswd", 404},
		{"GET", "/loaders/%00", 404},
		{"GET", "/loaders/snponly.efi%00", 404},
		{"GET", "/loaders/..hidden", 404},
		{"GET", "/loaders/..%5Csnponly.efi", 404},
		{"GET", imagePath + "..%2Fkernel", 404},
		{"GET", "/images/..%2F..%2Fetc/x/kernel", 404},
		{"GET", "/images/debian-12/%2e%2e/kernel", 404},
		{"GET", "/loaders/link.efi", 500}, // leaves the directory: the operator's mistake
		// Methods.
		{"POST", imagePath + "kernel", 405},
		{"PUT", "/loaders/snponly.efi", 405},
		{"DELETE", "/boot/52-54-00-00-00-01", 405},
		{"GET", "/node/52-54-00-00-00-01/config", 405},
		{"OPTIONS", "/boot.ipxe", 405},
		{"GET", "/healthz", 404},
	}
	for _, tt := range tests {
		resp := w.do("127.0.0.1", tt.method, tt.path, "")
		if resp.Code != tt.status {
			t.Errorf("%s %s: got status %d, want %d", tt.method, tt.path, resp.Code, tt.status)
		}
		if tt.status == 405 && resp.Header().Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", tt.method, tt.path)
		}
		if body := resp.Body.String(); strings.Contains(body, "root:") || strings.Contains(body, loaders) {
			t.Errorf("%s %s: got %q", tt.method, tt.path, body)
		}
	}
}

func TestLoaderType(t *testing.T) {
	loaders := t.TempDir()
	for _, name := range []string{"a.efi", "a.iso", "a.img", "a.kpxe"} {
		writeFile(t, filepath.Join(loaders, name), []byte("<html>"))
	}
	w := newWorld(t, func(w *world) { w.Loaders = loaders })
	for name, want := range map[string]string{
		"a.efi": "application/efi", "a.iso": "application/vnd.efi-iso",
		"a.img": "application/vnd.efi-img", "a.kpxe": "application/octet-stream",
	} {
		if got := w.do("127.0.0.1", "HEAD", "/loaders/"+name, "").Header().Get("Content-Type"); got != want {
			t.Errorf("%s: got type %q, want %q", name, got, want)
		}
	}
}

func TestNoLoaders(t *testing.T) {
	w := newWorld(t, nil)
	if got := w.do("127.0.0.1", "GET", "/loaders/snponly.efi", "").Code; got != 404 {
		t.Errorf("got status %d, want 404", got)
	}
	w = newWorld(t, func(w *world) { w.Loaders = filepath.Join(t.TempDir(), "none") })
	if got := w.do("127.0.0.1", "GET", "/loaders/snponly.efi", "").Code; got != 404 {
		t.Errorf("no such directory: got status %d, want 404", got)
	}
}

// A file that is not what its manifest says is not served at all: a node would
// find out only after the whole download.
func TestDamagedImage(t *testing.T) {
	tests := []struct {
		name string
		edit func(t *testing.T, img *script.Image)
	}{
		{"short", func(t *testing.T, img *script.Image) {
			writeFile(t, filepath.Join(img.Dir, img.Kernel.Name), []byte("kern"))
		}},
		{"gone", func(t *testing.T, img *script.Image) { img.Kernel.Name = "none" }},
		{"outside", func(t *testing.T, img *script.Image) { img.Kernel.Name = "../../etc/passwd" }},
		{"a directory", func(t *testing.T, img *script.Image) { img.Kernel.Name = "." }},
		{"no directory", func(t *testing.T, img *script.Image) { img.Dir = filepath.Join(img.Dir, "none") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			img := w.images["debian-12@sha256:"+generation]
			tt.edit(t, &img)
			w.images["debian-12@sha256:"+generation] = img
			resp := w.do("127.0.0.1", "GET", imagePath+"kernel", "")
			if resp.Code != 500 || strings.Contains(resp.Body.String(), img.Dir) {
				t.Errorf("got status %d, %q; want 500 and no path", resp.Code, resp.Body)
			}
			if resp.Header().Get("ETag") != "" {
				t.Error("the error has the file's ETag")
			}
		})
	}
}

func TestFileSteps(t *testing.T) {
	loaders := t.TempDir()
	writeFile(t, filepath.Join(loaders, "snponly.efi"), []byte("loader"))
	w := newWorld(t, func(w *world) { w.Loaders = loaders })
	w.do("127.0.0.1", "HEAD", "/loaders/snponly.efi", "")
	w.do("127.0.0.1", "GET", "/loaders/snponly.efi", "")
	w.do("127.0.0.9", "GET", imagePath+"kernel", "") // an unknown client
	w.do("127.0.0.1", "GET", imagePath+"kernel", "", "Range", "bytes=0-9")
	w.do("127.0.0.1", "GET", imagePath+"kernel", "")
	w.do("127.0.0.1", "GET", imagePath+"initrd", "")
	w.do("127.0.0.1", "GET", imagePath+"root.squashfs", "") // the node reports it
	if got, want := w.boots.seen(macBIOS), []string{"loader", "kernel", "initrd"}; !slices.Equal(got, want) {
		t.Errorf("got steps %q, want %q", got, want)
	}
	if got, want := w.boots.steps[1].Detail, "kernel, 0.0 MB in "; !strings.HasPrefix(got, want) {
		t.Errorf("got detail %q, want %q and seconds", got, want)
	}
	if len(w.boots.steps) != 3 {
		t.Errorf("got steps %v of others", w.boots.steps)
	}
}

func TestFilesAreClosed(t *testing.T) {
	w := newWorld(t, nil)
	img := w.images["debian-12"]
	w.Loaders = img.Dir
	for _, file := range []string{imagePath + "kernel", "/loaders/manifest.json", imagePath + "none", "/loaders/none"} {
		w.do("127.0.0.1", "GET", file, "")
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if name, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.HasPrefix(name, img.Dir) {
			t.Errorf("%s is still open", name)
		}
	}
}

// spyListener notes how its connections send.
type spyListener struct {
	net.Listener
	mu  sync.Mutex
	got []string
}

func (l *spyListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &spyConn{c.(*net.TCPConn), l}, nil
}

func (l *spyListener) note(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got = append(l.got, what)
}

type spyConn struct {
	*net.TCPConn
	l *spyListener
}

func (c *spyConn) ReadFrom(r io.Reader) (int64, error) {
	c.l.note("copy")
	return c.TCPConn.ReadFrom(r)
}

func (c *spyConn) SyscallConn() (syscall.RawConn, error) {
	raw, err := c.TCPConn.SyscallConn()
	return &spyRaw{raw, c.l}, err
}

type spyRaw struct {
	syscall.RawConn
	l *spyListener
}

func (r *spyRaw) Write(f func(fd uintptr) bool) error {
	r.l.note("sendfile")
	return r.RawConn.Write(f)
}

// The bytes of files do not pass through user space.
func TestSendfile(t *testing.T) {
	w := newWorld(t, nil)
	spy := &spyListener{}
	base := w.serve(t, func(l net.Listener) net.Listener { spy.Listener = l; return spy })
	_, body := get(t, base+imagePath+"root.squashfs")
	if !bytes.Equal(body, contents["root.squashfs"]) {
		t.Fatalf("got %d bytes, want %d", len(body), len(contents["root.squashfs"]))
	}
	spy.mu.Lock()
	defer spy.mu.Unlock()
	want := slices.Repeat([]string{"sendfile"}, 5) // 4.9 MB in chunks of 1 MiB
	if !slices.Equal(spy.got, want) {
		t.Errorf("the connection was used by %q, want %q", spy.got, want)
	}
}

// A client that reads in fits gets each byte: the room in the socket's buffer that the server
// waits for always comes.
func TestReaderInFits(t *testing.T) {
	w := newWorld(t, nil)
	base := w.serve(t, nil)
	want := contents["root.squashfs"]
	for i := range int64(16) {
		resp, err := http.Get(base + imagePath + "root.squashfs")
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		for n := int64(1); err == nil; n = n*7%(1<<20) + i + 1 {
			_, err = io.CopyN(&got, resp.Body, n)
			runtime.Gosched()
		}
		resp.Body.Close()
		if !errors.Is(err, io.EOF) || !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("round %d: %d, %d of %d bytes: %v", i, resp.StatusCode, got.Len(), len(want), err)
		}
	}
}

func BenchmarkImage(b *testing.B) {
	w := newWorld(b, nil)
	base := w.serve(b, nil)
	size := int64(len(contents["root.squashfs"]))
	b.SetBytes(size)
	for b.Loop() {
		resp, err := http.Get(base + imagePath + "root.squashfs")
		if err != nil {
			b.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, resp.Body); n != size || err != nil {
			b.Fatal(n, err)
		}
		resp.Body.Close()
	}
}

// A small file on a kept connection shows the cost of a request besides its bytes.
func BenchmarkSmallFile(b *testing.B) {
	w := newWorld(b, nil)
	base := w.serve(b, nil)
	b.ReportAllocs()
	for b.Loop() {
		resp, err := http.Get(base + imagePath + "kernel")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
	}
}

func BenchmarkScript(b *testing.B) {
	w := newWorld(b, nil)
	for b.Loop() {
		if got := w.do("127.0.0.1", "GET", "/boot/52-54-00-00-00-01", "").Code; got != 200 {
			b.Fatal(got)
		}
	}
}
