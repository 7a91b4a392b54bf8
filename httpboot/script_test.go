package httpboot_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/httpboot"
	"drover/pools"
	"drover/pools/boots"
)

func pathOf(escaped string) (string, error) { return url.PathUnescape(escaped) }

func TestScript(t *testing.T) {
	tests := []struct {
		name   string // of the golden file
		from   string
		path   string
		status int
		edit   func(*world)
		steps  []string
	}{
		{name: "bios.ipxe", from: "127.0.0.1", path: "/boot/52-54-00-00-00-01", status: 200, steps: []string{"script"}},
		{name: "uefi.ipxe", from: "127.0.0.2", path: "/boot/52-54-00-00-00-03", status: 200},
		{name: "catchall.ipxe", from: "127.0.0.3", path: "/boot/52-54-00-77-01-01", status: 200},
		{name: "finder.ipxe", from: "127.0.0.9", path: "/boot.ipxe", status: 200},
		{
			name: "no-image.ipxe", from: "127.0.0.1", path: "/boot/52-54-00-00-00-01", status: 200,
			edit:  func(w *world) { w.farm[macBIOS].Image = "debian-13" },
			steps: []string{`script!the server has no image "debian-13"`},
		},
		{
			name: "damaged-image.ipxe", from: "127.0.0.1", path: "/boot/52-54-00-00-00-01", status: 200,
			edit: func(w *world) { w.farm[macBIOS].Image = "damaged" },
		},
		{
			name: "no-record.ipxe", from: "127.0.0.1", path: "/boot/52-54-00-00-00-01", status: 200,
			edit: func(w *world) { w.boots.fail = errors.New("no space left on device") },
		},
		{name: "foreign-address.txt", from: "127.0.0.9", path: "/boot/52-54-00-00-00-01", status: 403, steps: []string{}},
		{name: "no-lease.txt", from: "127.0.0.3", path: "/boot/52-54-00-77-01-02", status: 403},
		{name: "unknown-mac.txt", from: "127.0.0.9", path: "/boot/52-54-00-99-99-99", status: 404},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.edit)
			resp := w.do(tt.from, "GET", tt.path, "")
			if resp.Code != tt.status {
				t.Errorf("got status %d, want %d", resp.Code, tt.status)
			}
			if got := resp.Header().Get("Cache-Control"); got != "no-store" {
				t.Errorf("got Cache-Control %q, want no-store", got)
			}
			fixture.Golden(t, "testdata/"+tt.name, resp.Body.String())
			if tt.steps != nil {
				if got := w.boots.seen(macBIOS); !slices.Equal(got, tt.steps) {
					t.Errorf("got steps %q, want %q", got, tt.steps)
				}
			}
			if strings.HasSuffix(tt.name, ".ipxe") {
				checkScript(t, resp.Body.String())
			}
		})
	}
}

// checkScript holds a script to what keeps iPXE from falling out of it: every
// command that can fail has its "||", each goto has its label, and the end of
// the script is not reached.
func checkScript(t testing.TB, text string) {
	t.Helper()
	if !strings.HasPrefix(text, "#!ipxe\n") {
		t.Errorf("no script: %q", text)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		word, _, _ := strings.Cut(line, " ")
		switch word {
		case "", "#!ipxe", "#", "echo", "set", "goto", "inc", "exit":
		case "menu", "item", "choose", "kernel", "initrd", "boot", "chain", "sleep", "imgfree", "isset", "iseq":
			if !strings.Contains(line+" ", " || ") {
				t.Errorf("line %d ends the script when it fails: %s", i+1, line)
			}
		default:
			if !strings.HasPrefix(word, ":") {
				t.Errorf("line %d has an unknown command: %s", i+1, line)
			}
		}
		for _, m := range regexp.MustCompile(`goto (\S+)`).FindAllStringSubmatch(line, -1) {
			if m[1] == "${choice}" {
				continue // what the menu's items are named
			}
			if !slices.Contains(lines, ":"+m[1]) {
				t.Errorf("line %d goes to %q, which is not there", i+1, m[1])
			}
		}
	}
	for _, m := range regexp.MustCompile(`item (\S+)`).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(lines, ":"+m[1]) {
			t.Errorf("the menu has %q, which is not there", m[1])
		}
	}
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "goto ") {
		t.Errorf("the script ends with %q, want goto", last)
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

// A problem that would cost the boot later must not open one.
func TestScriptProblemOpensNoBoot(t *testing.T) {
	tests := []struct {
		name string
		edit func(*pools.Plan)
		want string
	}{
		{"no image", func(p *pools.Plan) { p.Image = "x" }, `the server has no image "x"`},
		{"line feed", func(p *pools.Plan) { p.KernelArgs = []string{"a\nchain evil"} }, `kernel argument "a\nchain evil" cannot be passed on: only printable ASCII reaches the kernel`},
		{"tab", func(p *pools.Plan) { p.KernelArgs = []string{"a\tb"} }, `only printable ASCII`},
		{"umlaut", func(p *pools.Plan) { p.KernelArgs = []string{"a=ü"} }, `only printable ASCII`},
		{"setting", func(p *pools.Plan) { p.KernelArgs = []string{"a=${mac}"} }, `iPXE expands "$ {"`},
		{"comment", func(p *pools.Plan) { p.KernelArgs = []string{"a", "#b"} }, `"#" begins a comment`},
		{"or", func(p *pools.Plan) { p.KernelArgs = []string{"a || shell"} }, `it ends a command`},
		{"and", func(p *pools.Plan) { p.KernelArgs = []string{"&&"} }, `it ends a command`},
		{"semicolon", func(p *pools.Plan) { p.KernelArgs = []string{";"} }, `it ends a command`},
		{"two spaces", func(p *pools.Plan) { p.KernelArgs = []string{`a="b  c"`} }, `many spaces become one`},
		{"too long", func(p *pools.Plan) { p.KernelArgs = []string{strings.Repeat("a", 1900)} }, `bytes, Linux takes 2040: shorten kernelArgs`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			tt.edit(w.farm[macBIOS])
			body := w.do("127.0.0.1", "GET", "/boot/52-54-00-00-00-01", "").Body.String()
			if !strings.Contains(body, tt.want) {
				t.Errorf("got\n%s\nwant %q in it", body, tt.want)
			}
			if w.boots.n != 0 {
				t.Error("a boot was opened")
			}
			checkScript(t, body)
		})
	}
}

// A machine that is up gets no nonce; one whose DISCOVER was lost gets on by
// booting again.
func TestScriptForAMachineThatDoesNotBoot(t *testing.T) {
	w := newWorld(t, nil)
	w.boots.fail = fmt.Errorf("x: %w", boots.ErrNotBooting)
	body := w.do("127.0.0.1", "GET", "/boot/52-54-00-00-00-01", "").Body.String()
	if !strings.Contains(body, "\nreboot\n") || strings.Contains(body, "drover.nonce=") || strings.Contains(body, "retry") {
		t.Errorf("got\n%s\nwant a script that reboots", body)
	}
}

func TestKernelArgsAfterDashes(t *testing.T) {
	w := newWorld(t, nil)
	w.farm[macBIOS].KernelArgs = []string{"quiet", "--", "single"}
	body := w.do("127.0.0.1", "GET", "/boot/52-54-00-00-00-01", "").Body.String()
	if want := "/root.squashfs -- single || goto"; !strings.Contains(body, want) {
		t.Errorf("got\n%s\nwant %q in it: drover-init reads nothing after --", body, want)
	}
}

func TestImageThatFitsNoURL(t *testing.T) {
	for _, name := range []string{"a b", "../x", "a/b", "a${b}", "ä", "", ".hidden"} {
		w := newWorld(t, nil)
		img := w.images["debian-12"]
		img.Name = name
		w.images["debian-12"] = img
		body := w.do("127.0.0.1", "GET", "/boot/52-54-00-00-00-01", "").Body.String()
		if want := `the server cannot serve its image "debian-12", see its log`; !strings.Contains(body, want) {
			t.Errorf("image %q: got\n%s\nwant %q in it", name, body, want)
		}
	}
	w := newWorld(t, nil)
	img := w.images["debian-12"]
	img.Generation = "latest"
	w.images["debian-12"] = img
	if w.do("127.0.0.1", "GET", "/boot/52-54-00-00-00-01", ""); w.boots.n != 0 {
		t.Error("a boot was opened with a generation that has no URL")
	}
}

func TestNonceThatIsNone(t *testing.T) {
	w := newWorld(t, func(w *world) { w.Boots = badNonce{} })
	body := w.do("127.0.0.1", "GET", "/boot/52-54-00-00-00-01", "").Body.String()
	if strings.Contains(body, "evil") || !strings.Contains(body, "cannot boot yet") {
		t.Errorf("got\n%s", body)
	}
}

type badNonce struct{ httpboot.Boots }

func (badNonce) Issue(*pools.Plan) (string, error)         { return "a\nchain evil", nil }
func (badNonce) Step(pools.MAC, string, boots.Event) error { return nil }

// FuzzScript: whatever stands in a Plan, a script has the lines of its
// template, expands nothing but its own settings, and does not end.
func FuzzScript(f *testing.F) {
	f.Add("node-1", "compute", "tenant-a", "debian-12", "console=tty1")
	f.Add("a\nb", "#!ipxe", "||", "${mac}", "x\r\nshell")
	f.Add("a || shell", "; reboot", "&& exit", "img\x00", "a=\"b c\"")
	f.Add("$${{mac}}", "$", "{", "}", "$\x01{mac}")
	w := newWorld(f, nil)
	template := func(text string) []string {
		var first []string
		for line := range strings.Lines(text) {
			word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			first = append(first, word)
		}
		return first
	}
	const path = "/boot/52-54-00-00-00-01"
	boot := template(w.do("127.0.0.1", "GET", path, "").Body.String())
	w.farm[macBIOS].Image = "none"
	problem := template(w.do("127.0.0.1", "GET", path, "").Body.String())
	base := *w.farm[macBIOS]
	img := w.images["debian-12"]
	f.Fuzz(func(t *testing.T, node, pool, cluster, image, arg string) {
		p := base
		p.Node, p.Pool, p.Cluster, p.Image, p.KernelArgs = node, pool, cluster, image, []string{arg}
		farm := farm{macBIOS: &p}
		w := &world{Server: &httpboot.Server{
			Farm: farm, Addresses: w.Addresses, Boots: &fakeBoots{}, Images: anyImage(img), URL: w.URL, Log: w.Log,
		}}
		w.h = w.Handler()
		text := w.do("127.0.0.1", "GET", path, "").Body.String()
		checkScript(t, text)
		if got := template(text); !slices.Equal(got, boot) && !slices.Equal(got, problem) {
			t.Errorf("got lines %q, want those of a template", got)
		}
		for _, m := range regexp.MustCompile(`\$\{[^}]*`).FindAllString(text, -1) {
			if m != "${pause" {
				t.Errorf("iPXE would expand %q", m)
			}
		}
		for i := range len(text) {
			if c := text[i]; c != '\n' && (c < 0x20 || c > 0x7e) {
				t.Errorf("byte %#x in the script", c)
			}
		}
	})
}

type anyImage httpboot.Image

func (i anyImage) Image(string) (httpboot.Image, error) { return httpboot.Image(i), nil }
