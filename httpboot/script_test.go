package httpboot_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
)

func pathOf(escaped string) (string, error) { return url.PathUnescape(escaped) }

const node1GRUB = "grub/node-52:54:00:00:00:01.cfg"

// Each client gets its own script, or the reason why not.
func TestScript(t *testing.T) {
	tests := []struct {
		name   string // of the golden file; of package script for scripts
		from   string
		path   string
		status int
		edit   func(*world)
		steps  []string
	}{
		{name: "script/testdata/bios.ipxe", from: "127.0.0.1", path: "/boot/52-54-00-00-00-01", status: 200, steps: []string{"script"}},
		{name: "script/testdata/uefi.ipxe", from: "127.0.0.2", path: "/boot/52-54-00-00-00-03", status: 200},
		{name: "script/testdata/catchall.ipxe", from: "127.0.0.3", path: "/boot/52-54-00-77-01-01", status: 200},
		{name: "script/testdata/finder.ipxe", from: "127.0.0.9", path: "/boot.ipxe", status: 200},
		{
			name: "script/testdata/no-image.ipxe", from: "127.0.0.1", path: "/boot/52-54-00-00-00-01", status: 200,
			edit:  func(w *world) { w.farm[macBIOS].Image = "debian-13" },
			steps: []string{`script!the server has no image "debian-13"`},
		},
		{name: "testdata/foreign-address.txt", from: "127.0.0.9", path: "/boot/52-54-00-00-00-01", status: 403, steps: []string{}},
		{name: "testdata/no-lease.txt", from: "127.0.0.3", path: "/boot/52-54-00-77-01-02", status: 403},
		{name: "testdata/unknown-mac.txt", from: "127.0.0.9", path: "/boot/52-54-00-99-99-99", status: 404},
	}
	for _, tt := range tests {
		t.Run(filepath.Base(tt.name), func(t *testing.T) {
			w := newWorld(t, tt.edit)
			resp := w.do(tt.from, "GET", tt.path, "")
			if resp.Code != tt.status {
				t.Errorf("got status %d, want %d", resp.Code, tt.status)
			}
			if got := resp.Header().Get("Cache-Control"); got != "no-store" {
				t.Errorf("got Cache-Control %q, want no-store", got)
			}
			fixture.Golden(t, tt.name, resp.Body.String())
			if tt.steps != nil {
				if got := w.boots.seen(macBIOS); !slices.Equal(got, tt.steps) {
					t.Errorf("got steps %q, want %q", got, tt.steps)
				}
			}
		})
	}
}

func TestScriptIsOneBoot(t *testing.T) {
	w := newWorld(t, nil)
	const path = "/boot/52-54-00-00-00-01"
	first, second := w.do("127.0.0.1", "GET", path, ""), w.do("127.0.0.1", "GET", path, "")
	if first.Body.String() == second.Body.String() {
		t.Error("two boots have one nonce")
	}
	if resp := w.do("127.0.0.1", "HEAD", path, ""); resp.Code != http.StatusMethodNotAllowed || w.boots.n != 2 {
		t.Errorf("HEAD: got status %d and %d boots, want 405 and 2", resp.Code, w.boots.n)
	}
}

// A claim uses up the boot that was issued by TFTP: later requests are not from
// firmware.
func TestIssuedBootEndsWithTheClaim(t *testing.T) {
	w := newWorld(t, nil)
	w.do("127.0.0.1", "GET", "/"+node1GRUB, "")
	key, err := pools.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	if r := w.do("127.0.0.1", "POST", "/node/52-54-00-00-00-01/config", keyBody(key), pools.NonceHeader, fmt.Sprintf("%032x", 1), "Content-Type", "application/json"); r.Code != 200 {
		t.Fatalf("config: %d %s", r.Code, r.Body)
	}
	w.do("127.0.0.1", "GET", "/"+node1GRUB, "")
	if w.boots.n != 2 {
		t.Errorf("%d boots were opened, want 2", w.boots.n)
	}
}

// A GRUB that came by HTTP fetches the rest the same way.
func TestGRUBByHTTP(t *testing.T) {
	loaders := t.TempDir()
	if err := os.MkdirAll(filepath.Join(loaders, "grub", "x86_64-efi"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"grubx64.efi", "grub/x86_64-efi/tftp.mod"} {
		writeFile(t, filepath.Join(loaders, name), []byte("this is "+name))
	}
	w := newWorld(t, func(w *world) { w.Loaders = loaders })
	for _, tt := range []struct {
		from, path string
		status     int
		want       string
	}{
		{"127.0.0.1", "/grub/grub.cfg", 200, `source "(http,10.28.0.2)/grub/$1-52:54:00:00:00:01.cfg"`},
		{"127.0.0.1", "/" + node1GRUB, 200, "linux '(http,10.28.0.2)/images/debian-12/"},
		{"127.0.0.1", "/grub/x86_64-efi/tftp.mod", 200, "this is grub"},
		{"127.0.0.1", "/grub/x86_64-efi/none.mod", 404, "no loader"},
		{"127.0.0.2", "/" + node1GRUB, 403, "is not the address"},
		{"127.0.0.1", "//grubx64.efi", 200, "this is grubx64.efi"}, // shim's double slash
		{"127.0.0.1", "/loaders//grubx64.efi", 200, "this is grubx64.efi"},
	} {
		r := w.do(tt.from, "GET", tt.path, "")
		if r.Code != tt.status || !strings.Contains(r.Body.String(), tt.want) {
			t.Errorf("%s: got %d %s, want %d %s", tt.path, r.Code, r.Body, tt.status, tt.want)
		}
	}
	if r := w.do("127.0.0.1", "HEAD", "/grub/grub.cfg", ""); r.Code != 200 || r.Body.Len() != 0 {
		t.Errorf("HEAD: got %d, %d bytes", r.Code, r.Body.Len())
	}
}
