package httpboot_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// withFiles puts files into the directory of loaders, each above the 2 KiB up to which
// net/http finds the length by itself.
func withFiles(t testing.TB, names ...string) func(*world) {
	return func(w *world) {
		w.Loaders = t.TempDir()
		for _, name := range names {
			file := filepath.Join(w.Loaders, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			writeFile(t, file, bytes.Repeat([]byte(name+"\n"), 5000/len(name)))
		}
	}
}

const linuxModule = "grub/x86_64-efi/linux.mod"

// TestLengths holds that each file of a boot has a length before its content, and that
// HEAD has the header of GET: GRUB has no room for a file without a length (W2). A script
// without one, above 2 KiB, was the same mistake.
func TestLengths(t *testing.T) {
	w := newWorld(t, func(w *world) {
		withFiles(t, "snponly.efi", "sb/snponly.efi", linuxModule, "grub/fonts/unicode.pf2")(w)
		w.farm[macBIOS].KernelArgs = []string{strings.Repeat("x", 1500)}
		w.farm[macBIOS].MenuTimeout = 5
	})
	base := w.serve(t, nil)
	for _, tt := range []struct {
		path         string
		ranges, head bool
	}{
		{"/boot.ipxe", false, true},
		{"/boot/" + macBIOS.Dashed(), false, false}, // each GET begins a boot
		{"/snponly.efi", true, true},
		{"/loaders/snponly.efi", true, true},
		{"/loaders/sb/snponly.efi", true, true},
		{"/" + linuxModule, true, true},
		{"/loaders/" + linuxModule, true, true},
		{"/grub/fonts/unicode.pf2", true, true},
		{"/grub/grub.cfg", true, true},
		{"/grub/node-" + macBIOS.String() + ".cfg", true, true},
		{"/grub" + imagePath + "kernel", true, true},
		{imagePath + "kernel", true, true},
		{imagePath + "initrd", true, true},
		{imagePath + "root.squashfs", true, true},
	} {
		t.Run(tt.path, func(t *testing.T) {
			resp, body := fetch(t, "GET", base+tt.path, "")
			if resp.StatusCode != 200 || resp.ContentLength != int64(len(body)) || resp.TransferEncoding != nil {
				t.Fatalf("GET: got status %d, length %d of %d, transfer encoding %q", resp.StatusCode, resp.ContentLength, len(body), resp.TransferEncoding)
			}
			if tt.head {
				head, _ := fetch(t, "HEAD", base+tt.path, "")
				if got, want := headerText(head), headerText(resp); got != want {
					t.Errorf("HEAD: got\n%s\nwant that of GET\n%s", got, want)
				}
			}
			if tt.ranges {
				part, got := fetch(t, "GET", base+tt.path, "bytes=10-19")
				if part.StatusCode != 206 || !bytes.Equal(got, body[10:20]) || part.ContentLength != 10 {
					t.Errorf("range: got status %d, %q, want 206, %q", part.StatusCode, got, body[10:20])
				}
			}
		})
	}
}

// fetch sends a request from 127.0.0.1, on a connection of its own.
func fetch(t testing.TB, method, url, ranges string) (*http.Response, []byte) {
	t.Helper()
	if ranges == "" {
		return exchange(t, method, url)
	}
	return exchange(t, method, url, "Range", ranges)
}

// headerText returns status and header of an answer as text, without its date.
func headerText(r *http.Response) string {
	r.Header.Del("Date")
	var b strings.Builder
	fmt.Fprintln(&b, r.Status, r.ContentLength)
	_ = r.Header.Write(&b) // to memory: no error
	return b.String()
}

// TestRanges holds how the header Range is read: W15, RFC 9110 sections 14.1 and 14.2.
func TestRanges(t *testing.T) {
	w := newWorld(t, func(w *world) {
		withFiles(t, "a.efi")(w)
		writeFile(t, filepath.Join(w.Loaders, "empty.efi"), nil)
	})
	base := w.serve(t, nil)
	whole, file := 5000/len("a.efi")*len("a.efi\n"), "/loaders/a.efi"
	for _, tt := range []struct {
		method, path, ranges string
		status, bytes        int
	}{
		{"GET", file, "bytes=0-9", 206, 10},
		{"GET", file, "BYTES=0-9", 206, 10},
		{"GET", file, "Bytes= 0 - 9 ", 206, 10},
		{"GET", file, "bytes=,0-9,", 206, 10},
		{"GET", file, "bytes=-7", 206, 7},
		{"GET", file, "bytes=-99999999999999999999", 206, whole},
		{"GET", file, "bytes=5000-99999999999999999999", 206, whole - 5000},
		{"GET", file, "bytes=-0", 416, -1},
		{"GET", file, "bytes=-00", 416, -1},
		{"GET", file, "bytes=-0,-0", 416, -1},
		{"GET", file, "bytes=99999999999999999999-", 416, -1},
		{"GET", file, "bytes=-0,0-9", 206, 10},
		{"GET", file, "bytes=0-9,-0", 206, 10},
		{"GET", file, "bytes=9-5", 416, -1},
		{"GET", file, "bytes=x", 416, -1},
		{"GET", file, "bytes=--1", 416, -1},
		{"GET", file, "bytes=", 200, whole},
		{"GET", file, "bytes", 200, whole},
		{"GET", file, "lines=0-9", 200, whole},
		{"GET", file, "lines=-0", 200, whole},
		{"GET", file, "bytesx=0-9", 200, whole},
		{"GET", file, "0-9", 200, whole},
		{"HEAD", file, "bytes=0-9", 200, 0},
		{"HEAD", file, "bytes=-0", 200, 0},
		{"HEAD", file, "bytes=99999-", 200, 0},
		{"GET", "/loaders/empty.efi", "bytes=-5", 200, 0},
		{"GET", "/loaders/empty.efi", "bytes=0-", 200, 0},
		{"GET", "/loaders/empty.efi", "bytes=-0", 200, 0},
		{"GET", imagePath + "root.squashfs", "bytes=-0", 416, -1},
		{"HEAD", imagePath + "root.squashfs", "bytes=0-9", 200, 0},
		{"GET", imagePath + "kernel", "none=0-9", 200, len(contents["kernel"])},
	} {
		resp, body := fetch(t, tt.method, base+tt.path, tt.ranges)
		if resp.StatusCode != tt.status || tt.bytes >= 0 && len(body) != tt.bytes {
			t.Errorf("%s %s, %s: got status %d, %d bytes; want %d, %d", tt.method, tt.path, tt.ranges, resp.StatusCode, len(body), tt.status, tt.bytes)
		}
		if got, want := resp.Header.Get("Content-Range"), tt.status == 206; (got != "") != want && tt.status != 416 {
			t.Errorf("%s %s, %s: got Content-Range %q with status %d", tt.method, tt.path, tt.ranges, got, resp.StatusCode)
		}
		if tt.method == "HEAD" && resp.ContentLength < 1000 {
			t.Errorf("HEAD %s, %s: got length %d, want that of the file", tt.path, tt.ranges, resp.ContentLength)
		}
	}
}

// TestSubdirectories holds that loaders in subdirectories have the same names by HTTP as
// by TFTP (W3), and that nothing outside of the directory has one.
func TestSubdirectories(t *testing.T) {
	w := newWorld(t, func(w *world) {
		withFiles(t, "grubx64.efi", "sb/snponly.efi", "sb/deep/er/shimx64.efi", "a+b/c.efi", linuxModule)(w)
		for from, to := range map[string]string{"sb/out.efi": "/etc/passwd", "sb/up.efi": "../../secret", "in.efi": "sb/snponly.efi", "dir": "sb"} {
			if err := os.Symlink(to, filepath.Join(w.Loaders, from)); err != nil {
				t.Fatal(err)
			}
		}
		writeFile(t, filepath.Join(w.Loaders, "sb", ".hidden"), []byte("hidden"))
		writeFile(t, filepath.Join(filepath.Dir(w.Loaders), "secret"), []byte("secret"))
	})
	for _, tt := range []struct {
		path   string
		status int
	}{
		{"/loaders/sb/snponly.efi", 200},
		{"//loaders//sb///snponly.efi", 200},
		{"/loaders/sb/deep/er/shimx64.efi", 200},
		{"/loaders/sb%2Fsnponly.efi", 200},
		{"/loaders/a+b/c.efi", 200},
		{"/loaders/" + linuxModule, 200},
		{"/loaders/sb/grubx64.efi", 200}, // shim asks in its own directory
		{"/loaders/in.efi", 200},
		{"/loaders/dir/snponly.efi", 200},
		{"/loaders/sb", 404},
		{"/loaders/sb/", 404},
		{"/loaders/sb/deep", 404},
		{"/loaders/sb/none.efi", 404},
		{"/loaders/sb/snponly.efi/", 404},
		{"/loaders/sb/snponly.efi/x", 404},
		{"/loaders/sb/.hidden", 404},
		{"/loaders/sb/%2Ehidden", 404},
		{"/loaders/sb/../snponly.efi", 404},
		{"/loaders/sb/./snponly.efi", 404},
		{"/loaders/sb/%2e%2e/grubx64.efi", 404},
		{"/loaders/sb%2F..%2Fgrubx64.efi", 404},
		{"/loaders/%2e%2e%2fsecret", 404},
		{"/loaders/sb/..%2f..%2fsecret", 404},
		{"/loaders/sb/%252e%252e/grubx64.efi", 404},
		{"/loaders/sb%2F%2Fsnponly.efi", 404},
		{"/loaders/%2Fetc%2Fpasswd", 404},
		{"/loaders/sb%5Csnponly.efi", 404},
		{`/loaders/sb\snponly.efi`, 404},
		{"/loaders/sb/snponly.efi%00", 404},
		{"/loaders/sb/snponly.efi%20", 404},
		{"/loaders/sb/out.efi", 500}, // the operator's mistake
		{"/loaders/sb/up.efi", 500},
	} {
		resp := w.do("127.0.0.1", "GET", tt.path, "")
		if resp.Code != tt.status {
			t.Errorf("%s: got status %d, want %d", tt.path, resp.Code, tt.status)
		}
		if body := resp.Body.String(); tt.status == 200 && !strings.Contains(body, ".efi\n") && !strings.Contains(body, ".mod\n") ||
			strings.Contains(body, "root:") || strings.Contains(body, "secret") || strings.Contains(body, w.Loaders) {
			t.Errorf("%s: got %.100q", tt.path, body)
		}
	}
	if got := w.boots.seen(macBIOS); len(got) == 0 || got[0] != "loader" {
		t.Errorf("got steps %q, want loader first", got)
	}
}
