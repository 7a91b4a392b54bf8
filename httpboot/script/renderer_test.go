package script_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/httpboot/script"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
)

func TestScript(t *testing.T) {
	tests := []struct {
		name  string // of the golden file
		mac   pools.MAC
		edit  func(*world)
		steps []string
	}{
		{name: "bios.ipxe", mac: macBIOS, steps: []string{"script"}},
		{name: "uefi.ipxe", mac: macUEFI},
		{name: "catchall.ipxe", mac: macUnknown},
		{name: "two-servers.ipxe", mac: macUEFI, edit: func(w *world) {
			twoServers(w)
			w.SecureURL, w.Pin = "https://10.28.0.2:8444", "sha256:0"
		}},
		{name: "two-servers-menu.ipxe", mac: macUEFI, edit: func(w *world) { twoServers(w); w.farm[macUEFI].MenuTimeout = 5 }},
		{
			name: "no-image.ipxe", mac: macBIOS,
			edit:  func(w *world) { w.farm[macBIOS].Image = "debian-13" },
			steps: []string{`script!the server has no image "debian-13"`},
		},
		{
			name: "damaged-image.ipxe", mac: macBIOS,
			edit: func(w *world) { w.farm[macBIOS].Image = "damaged" },
		},
		{
			name: "no-record.ipxe", mac: macBIOS,
			edit: func(w *world) { w.boots.fail = errors.New("no space left on device") },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.edit)
			text := w.ipxe(t, tt.mac)
			fixture.Golden(t, "testdata/"+tt.name, text)
			if tt.steps != nil {
				if got := w.boots.seen(macBIOS); !slices.Equal(got, tt.steps) {
					t.Errorf("got steps %q, want %q", got, tt.steps)
				}
			}
			checkScript(t, text)
		})
	}
}

// twoServers adds other servers: one at another port, this one, and one of the other family.
func twoServers(w *world) {
	w.Also = func() (all []netip.AddrPort) {
		for _, text := range []string{"10.28.0.3:8080", "10.28.0.2:80", "[fd00:28::3]:80"} {
			all = append(all, netip.MustParseAddrPort(text))
		}
		return all
	}
}

func TestFinder(t *testing.T) {
	text, err := newWorld(t, nil).r.Finder(netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	fixture.Golden(t, "testdata/finder.ipxe", string(text))
	checkScript(t, string(text))
}

// A request gets a Plan only from the address of its machine.
func TestMachine(t *testing.T) {
	w := newWorld(t, nil)
	for _, tt := range []struct {
		mac  pools.MAC
		from string
		node string // of the Plan
		want string // in the error
	}{
		{macBIOS, "127.0.0.1", "node-1", ""},
		{macUnknown, "127.0.0.3", "node-525400770101", ""},
		{macBIOS, "127.0.0.9", "node-1", "127.0.0.9 is not the address of 52:54:00:00:00:01"},
		{macNoLease, "127.0.0.3", "node-525400770102", "52:54:00:77:01:02 has no address from here; you are 127.0.0.3"},
		{macForeign, "127.0.0.9", "", "MAC address 52:54:00:99:99:99 is not known here"},
	} {
		p, err := w.r.Machine(tt.mac, netip.MustParseAddr(tt.from))
		if p == nil && tt.node != "" || p != nil && p.Node != tt.node {
			t.Errorf("%s: got Plan %v, want that of %q", tt.mac, p, tt.node)
		}
		if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, fs.ErrPermission) || err.Error() != tt.want) {
			t.Errorf("%s from %s: got error %v, want %q", tt.mac, tt.from, err, tt.want)
		}
	}
}

func TestRefusedURL(t *testing.T) {
	for _, url := range []string{"", "10.28.0.2", "https://10.28.0.2", "http://", "http://h/path", "http://u@h", "http://h?q", "http://h\n"} {
		if _, err := script.New(script.Options{URL: url}); err == nil {
			t.Errorf("URL %q: got no error", url)
		}
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

// A problem that would cost the boot later must not open one.
func TestScriptProblemOpensNoBoot(t *testing.T) {
	tests := []struct {
		name string
		edit func(*resolve.Plan)
		want string
	}{
		{"no image", func(p *resolve.Plan) { p.Image = "x" }, `the server has no image "x"`},
		{"line feed", func(p *resolve.Plan) { p.KernelArgs = []string{"a\nchain evil"} }, `kernel argument "a\nchain evil" cannot be passed on: only printable ASCII reaches the kernel`},
		{"tab", func(p *resolve.Plan) { p.KernelArgs = []string{"a\tb"} }, `only printable ASCII`},
		{"umlaut", func(p *resolve.Plan) { p.KernelArgs = []string{"a=ü"} }, `only printable ASCII`},
		{"setting", func(p *resolve.Plan) { p.KernelArgs = []string{"a=${mac}"} }, `iPXE expands "$ {"`},
		{"comment", func(p *resolve.Plan) { p.KernelArgs = []string{"a", "#b"} }, `"#" begins a comment`},
		{"or", func(p *resolve.Plan) { p.KernelArgs = []string{"a || shell"} }, `it ends a command`},
		{"and", func(p *resolve.Plan) { p.KernelArgs = []string{"&&"} }, `it ends a command`},
		{"semicolon", func(p *resolve.Plan) { p.KernelArgs = []string{";"} }, `it ends a command`},
		{"two spaces", func(p *resolve.Plan) { p.KernelArgs = []string{`a="b  c"`} }, `many spaces become one`},
		{"too long", func(p *resolve.Plan) { p.KernelArgs = []string{strings.Repeat("a", 1900)} }, `bytes, Linux takes 2040: shorten kernelArgs`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			tt.edit(w.farm[macBIOS])
			body := w.ipxe(t, macBIOS)
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
	body := w.ipxe(t, macBIOS)
	if !strings.Contains(body, "\nreboot\n") || strings.Contains(body, "drover.nonce=") || strings.Contains(body, "retry") {
		t.Errorf("got\n%s\nwant a script that reboots", body)
	}
}

func TestKernelArgsAfterDashes(t *testing.T) {
	w := newWorld(t, nil)
	w.farm[macBIOS].KernelArgs = []string{"quiet", "--", "single"}
	body := w.ipxe(t, macBIOS)
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
		body := w.ipxe(t, macBIOS)
		if want := `the server cannot serve its image "debian-12", see its log`; !strings.Contains(body, want) {
			t.Errorf("image %q: got\n%s\nwant %q in it", name, body, want)
		}
	}
	w := newWorld(t, nil)
	img := w.images["debian-12"]
	img.Generation = "latest"
	w.images["debian-12"] = img
	if w.ipxe(t, macBIOS); w.boots.n != 0 {
		t.Error("a boot was opened with a generation that has no URL")
	}
}

func TestNonceThatIsNone(t *testing.T) {
	w := newWorld(t, func(w *world) { w.Boots = badNonce{} })
	body := w.ipxe(t, macBIOS)
	if strings.Contains(body, "evil") || !strings.Contains(body, "cannot boot yet") {
		t.Errorf("got\n%s", body)
	}
}

type badNonce struct{ script.Boots }

func (badNonce) Issue(*resolve.Plan) (string, error)       { return "a\nchain evil", nil }
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
	boot := template(w.ipxe(f, macBIOS))
	w.farm[macBIOS].Image = "none"
	problem := template(w.ipxe(f, macBIOS))
	base := *w.farm[macBIOS]
	img := w.images["debian-12"]
	f.Fuzz(func(t *testing.T, node, pool, cluster, image, arg string) {
		p := base
		p.Node, p.Pool, p.Cluster, p.Image, p.KernelArgs = node, pool, cluster, image, []string{arg}
		w := w.with(t, &p, img)
		text := w.ipxe(t, macBIOS)
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

// with returns a world of one machine and one image.
func (w *world) with(t testing.TB, p *resolve.Plan, img script.Image) *world {
	farm := farm{p.MAC: p}
	one := &world{farm: farm, boots: &fakeBoots{}, Options: w.Options}
	one.Machines, one.Boots, one.Images = directory{farm, w.at}, one.boots, anyImage(img)
	one.render(t)
	return one
}

type anyImage script.Image

func (i anyImage) Image(string) (script.Image, error) { return script.Image(i), nil }
