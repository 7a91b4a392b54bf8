package script_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/httpboot/script"
)

func TestTemplatesOfTheOperator(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "boot.grub.tmpl"), []byte("echo '{{say .Node}} of us'\nlinux '{{.Kernel}}' {{.Args}} ours\n"))
	writeFile(t, filepath.Join(dir, "problem.ipxe.tmpl"), []byte("#!ipxe\necho {{say .Problem}}\n{{template \"retry\" .}}\n"))
	writeFile(t, filepath.Join(dir, "README"), []byte("not a template {{"))
	templates, err := script.LoadTemplates(dir)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(w *world) { w.Templates = templates })
	// Those that are not there are drover's own.
	fixture.Golden(t, "testdata/bios.ipxe", w.ipxe(t, macBIOS))
	if got := w.mustOpen(t, "127.0.0.1", node1GRUB); !strings.HasPrefix(got, "echo 'node-1 of us'\nlinux '(tftp,") || !strings.HasSuffix(got, " ours\n") {
		t.Errorf("got\n%s", got)
	}
	w.farm[macBIOS].Image = "none"
	if got := w.ipxe(t, macBIOS); !strings.HasPrefix(got, "#!ipxe\necho the server has no image \"none\"\n:retry\n") {
		t.Errorf("got\n%s", got)
	}
}

// Every mistake is found before a machine meets it, with its place.
func TestBrokenTemplates(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"boot.ipxe.tmpl", "#!ipxe\n{{if}}\n", "boot.ipxe.tmpl:2: missing value for if"},
		{"boot.grub.tmpl", "a\nb\n{{.Kernal}}\n", "boot.grub.tmpl:3: executing"},
		{"problem.pxelinux.tmpl", "{{say}}", "problem.pxelinux.tmpl:1: executing"},
		{"local.pxelinux.tmpl", "{{quote .Node}}", `local.pxelinux.tmpl:1: function "quote" not defined`},
		{"grub.grub.tmpl", "{{.Device}}\n{{.Plan.Node}}", "grub.grub.tmpl:2: executing"}, // the machine may be unknown
		{"finder.ipxe.tmpl", "{{.Node}}", "finder.ipxe.tmpl:1: executing"},
		{"boot.uboot.tmpl", "{{.Node", "boot.uboot.tmpl:1: unclosed action"},
		{"boot.grub2.tmpl", "", "boot.grub2.tmpl:1: drover has no template of that name (boot.grub.tmpl, boot.ipxe.tmpl,"},
		{"menu.tmpl", "", "menu.tmpl:1: drover has no template of that name"},
	} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, tt.name), []byte(tt.text))
		_, err := script.LoadTemplates(dir)
		if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	if _, err := script.LoadTemplates(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no directory: got %v", err)
	}
}

// grubWords cuts a line of GRUB's shell, as grub-core/script/yylex.l does:
// single quotes hold everything, double quotes all but variables, a backslash
// one character. It also reports whether anything would be expanded.
func grubWords(t *testing.T, line string) (words []string, expands bool) {
	t.Helper()
	var word strings.Builder
	in, begun := byte(0), false
	end := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case in == '\'' && c == '\'', in == '"' && c == '"':
			in = 0
		case in == '\'':
			word.WriteByte(c)
		case in == 0 && (c == '\'' || c == '"'):
			in, begun = c, true
		case c == '\\' && i+1 < len(line):
			i++
			word.WriteByte(line[i])
			begun = true
		case c == '$':
			expands = true
		case in == '"':
			word.WriteByte(c)
		case c == ' ':
			end()
		case strings.IndexByte(";|&<>{}", c) >= 0:
			end()
			words = append(words, string(c))
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if in != 0 {
		t.Errorf("a quote is open at the end of %q", line)
	}
	end()
	return words, expands
}

// FuzzGRUBScript: whatever stands in a Plan, GRUB reads the commands of the
// template, expands nothing, and hands the operator's words to the kernel as the
// kernel would read them from the config.
func FuzzGRUBScript(f *testing.F) {
	f.Add("node-1", "compute", "tenant-a", "debian-12", "console=tty1")
	f.Add("a'b", "`reboot`", `\'; reboot; '`, "$(x)", `dyndbg="file a +p"`)
	f.Add("x\ny", "';", `\`, "${prefix}", `a="b" c='d'`)
	f.Add("it's", "''", `"`, "'\\''", `"key=a b" -- single`)
	w := newWorld(f, nil)
	commands := func(t *testing.T, text string) (first []string) {
		for line := range strings.Lines(text) {
			if words, _ := grubWords(t, strings.TrimSpace(line)); len(words) > 0 && words[0] != "#" {
				first = append(first, words[0])
			}
		}
		return first
	}
	base := *w.farm[macBIOS]
	img := w.images["debian-12"]
	booting := []string{"echo", "echo", "if", "if", "boot", "echo", "else", "echo", "fi", "else", "echo", "fi"}
	problem := []string{"echo", "echo"}
	f.Fuzz(func(t *testing.T, node, pool, cluster, image, arg string) {
		p := base
		p.Node, p.Pool, p.Cluster, p.Image, p.KernelArgs = node, pool, cluster, image, strings.Fields(arg)
		w := w.with(t, &p, img)
		text := w.mustOpen(t, "127.0.0.1", node1GRUB)
		if got := commands(t, text); !slices.Equal(got, booting) && !slices.Equal(got, problem) {
			t.Errorf("got commands %q from\n%s", got, text)
		}
		for line := range strings.Lines(text) {
			words, expands := grubWords(t, strings.TrimRight(line, "\n"))
			if expands {
				t.Errorf("GRUB would expand %q", line)
			}
			if len(words) > 2 && words[0] == "if" && words[1] == "linux" {
				checkKernelWords(t, strings.Fields(arg), words[3:])
			}
		}
	})
}

// checkKernelWords compares the command line that GRUB passes on with that of
// the config. Both are split as by the kernel (lib/cmdline.c).
func checkKernelWords(t *testing.T, args, words []string) {
	t.Helper()
	end := len(words) - 1
	for end >= 0 && words[end] != "BOOTIF=01-52-54-00-00-00-01" {
		end--
	}
	if end < 0 {
		t.Fatalf("no BOOTIF among %q", words)
	}
	var line strings.Builder // grub-core/lib/cmdline.c
	for _, w := range words[:end] {
		if strings.ContainsAny(w, `\'"`) {
			t.Errorf("GRUB would put a backslash into %q", w)
		}
		if strings.Contains(w, " ") {
			w = `"` + w + `"`
		}
		line.WriteString(w + " ")
	}
	before := args
	if i := slices.Index(args, "--"); i >= 0 {
		before = args[:i]
	}
	if got, want := kernelWords(line.String()), kernelWords(strings.Join(before, " ")); !slices.Equal(got, want) {
		t.Errorf("the kernel reads %q, the config says %q", got, want)
	}
}

// kernelWords cuts a command line as the kernel does, without the quotes.
func kernelWords(s string) (words []string) {
	var word strings.Builder
	quoted := false
	end := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
		}
		word.Reset()
	}
	for i := range len(s) {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == ' ' && !quoted:
			end()
		default:
			word.WriteByte(s[i])
		}
	}
	end()
	return words
}

// TestLongestLineOfPXELINUX: PXELINUX puts the name of the kernel before the
// command line, and Linux cuts off the end of a line that is too long. That end
// must not be drover.root.
func TestLongestLineOfPXELINUX(t *testing.T) {
	w := newWorld(t, nil)
	var line string
	for n := 1400; n < 2100; n++ {
		w.farm[macBIOS].KernelArgs = []string{strings.Repeat("a", n)}
		text := w.mustOpen(t, "127.0.0.1", node1PXE)
		if strings.Contains(text, "shorten kernelArgs") {
			break
		}
		_, rest, _ := strings.Cut(text, "  KERNEL ")
		kernel, rest, _ := strings.Cut(rest, "\n")
		_, rest, _ = strings.Cut(rest, "  APPEND ")
		args, _, _ := strings.Cut(rest, "\n")
		line = "BOOT_IMAGE=" + kernel + " " + args
	}
	_, rest, _ := strings.Cut(line, "drover.nonce=")
	nonce, _, _ := strings.Cut(rest, " ")
	if got := len(line) + 64 - len(nonce); got != 2047 { // a nonce may have 64 digits
		t.Errorf("the longest line has %d bytes, want 2047", got)
	}
}

// FuzzNames: whatever is asked for, nothing outside of the loaders is opened, no
// boot but one's own is begun, and there are words for every refusal.
func FuzzNames(f *testing.F) {
	for _, name := range []string{node1GRUB, node1PXE, "grub/grub.cfg", "boot.scr.uimg", "pxelinux.cfg/default", "images/debian-12/" + generation + "/uImage",
		"../etc/passwd", "images/../../x", "grub/node-52:54:00:00:00:03.cfg", "a/grub/rescue-525400000001.cfg", "images/debian-12//kernel", "\x00", ""} {
		f.Add(name)
	}
	w := newWorld(f, nil)
	f.Fuzz(func(t *testing.T, name string) {
		_, err := w.open(t, "127.0.0.1", name)
		for _, s := range w.boots.seen(macUEFI) {
			t.Errorf("%q begins a boot of another machine: %s", name, s)
		}
		var words interface{ ClientText() string }
		if err != nil && !errors.As(err, &words) {
			t.Errorf("%q: no words for %v", name, err)
		}
	})
}
