package script

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"drover/internal/atomicfile"
	"drover/pools"
	"drover/pools/resolve"
)

//go:embed templates/*.tmpl
var templateFiles embed.FS

// Templates is the set of templates of boot scripts. There is one for each dialect and
// purpose, named PURPOSE.DIALECT.tmpl.
//
// iPXE's rules for its scripts:
//   - A script ends at the first command that fails, unless "||" follows it.
//     ROMs then boot the next device, so every failure must be handled.
//   - There is no quoting. A line is split at white space; a word that starts
//     with "#" begins a comment; the words "||", "&&" and ";" end a command;
//     "${" begins a setting anywhere.
//   - Settings outlive the script. So ${pause} can grow from one try to the next.
//   - "sleep" fails when someone presses Ctrl-C.
//
// GRUB sources its file in a loop, since a file that calls configfile for itself would
// nest. Its texts are in single quotes, variables outside of them. pxelinux has no loop;
// U-Boot's shell, which runs boot.scr.uimg, has one.
type Templates struct {
	all map[dialect]*template.Template
}

// ownTemplates returns drover's own templates. It panics on a mistake in them: the files
// are part of the program.
func ownTemplates() *Templates {
	t, err := LoadTemplates("")
	if err != nil {
		panic(err)
	}
	return t
}

// LoadTemplates reads drover's own templates, and tests the templates in dir: each replaces
// the one of that name. The error joins an error for each mistake, which begins with
// FILE:LINE. Without a dir there are only drover's own.
func LoadTemplates(dir string) (*Templates, error) {
	t := &Templates{all: map[dialect]*template.Template{}}
	for d, say := range map[dialect]func(string) string{ipxe: sayIPXE, grub: sayGRUB, pxelinux: sayPlain, uboot: sayUBoot, raspberryPi: sayPlain} {
		t.all[d] = template.Must(template.New("").Option("missingkey=error").
			Funcs(template.FuncMap{"say": say}).ParseFS(templateFiles, "templates/*."+string(d)+".tmpl"))
	}
	if dir == "" {
		return t, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("templates: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".tmpl") {
			errs = append(errs, t.replace(dir, e.Name()))
		}
	}
	return t, errors.Join(errs...)
}

// maxTemplate bounds a template, in bytes.
const maxTemplate = 1 << 20

// replace reads a template from dir.
func (t *Templates) replace(dir, name string) error {
	file := filepath.Join(dir, name)
	tmpl := t.of(name)
	if tmpl == nil || tmpl.Lookup(name) == nil || name == "retry.ipxe.tmpl" {
		return fmt.Errorf("%s:1: drover has no template of that name (%s)", file, strings.Join(t.names(), ", "))
	}
	text, err := atomicfile.Read(file, maxTemplate)
	if err != nil {
		return err
	}
	if _, err := tmpl.New(name).Parse(string(text)); err != nil {
		return withLine(file, err)
	}
	if err := t.try(name); err != nil {
		return withLine(file, err)
	}
	return nil
}

// of returns all templates in the dialect of the named one.
func (t *Templates) of(name string) *template.Template {
	parts := strings.Split(name, ".")
	if len(parts) != 3 {
		return nil
	}
	return t.all[dialect(parts[1])]
}

// names returns the names of all templates that can be replaced.
func (t *Templates) names() (out []string) {
	for _, set := range t.all {
		for _, tmpl := range set.Templates() {
			if strings.HasSuffix(tmpl.Name(), ".tmpl") && tmpl.Name() != "retry.ipxe.tmpl" {
				out = append(out, tmpl.Name())
			}
		}
	}
	slices.Sort(out)
	return out
}

func (t *Templates) execute(name string, data any) ([]byte, error) {
	var b bytes.Buffer
	err := t.of(name).ExecuteTemplate(&b, name, data)
	return b.Bytes(), err
}

// try executes a template for every kind of machine, so that a mistake shows before a
// machine needs the template.
func (t *Templates) try(name string) error {
	if name == "finder.ipxe.tmpl" {
		_, err := (&Renderer{Options: Options{Templates: t}}).Finder(netip.Addr{})
		return err
	}
	for _, s := range sampleScripts() {
		data := any(s)
		if s.Plan == nil || name == "grub.grub.tmpl" {
			data = newGRUBMenu(s.Plan, "(tftp,10.28.0.2)")
		}
		if s.Plan == nil && name != "grub.grub.tmpl" {
			continue
		}
		if _, err := t.execute(name, data); err != nil {
			return err
		}
	}
	return nil
}

func sampleScripts() []script {
	mac := pools.MAC{0x52, 0x54, 0, 0, 0, 1}
	full := resolve.Plan{Node: "node", MAC: mac, MACs: []pools.MAC{mac}, Pool: "pool", Cluster: "cluster", Image: "image"}
	full.MenuTimeout = 10
	out := []script{{}}
	for _, p := range []resolve.Plan{full, {Node: "node", MAC: mac, MACs: []pools.MAC{mac}, Pool: "pool", Image: "image"}} {
		for _, n := range []pools.NextBoot{"", pools.NextLocal, pools.NextRescue} {
			plan := p
			s := script{Plan: plan.WithNextBoot(n), Base: "http://10.28.0.2", Device: "(tftp,10.28.0.2)", Args: "args", RescueArgs: "args"}
			s.files = files{Self: "self", Kernel: "kernel", Initrd: "initrd"}
			s.Others = []files{s.files}
			problem := s
			problem.Problem, problem.Reboot = "problem", n == ""
			out = append(out, s, problem)
		}
	}
	return out
}

// templateError matches the line and the text in an error of text/template.
var templateError = regexp.MustCompile(`^template: [^:]*:(\d+)(?::\d+)?: (.*)$`)

// withLine returns an error of text/template that begins with FILE:LINE.
func withLine(file string, err error) error {
	m := templateError.FindStringSubmatch(err.Error())
	if m == nil {
		return fmt.Errorf("%s:1: %w", file, err)
	}
	return fmt.Errorf("%s:%s: %s", file, m[1], m[2])
}

// maxConsoleText limits a text on the console, in bytes.
const maxConsoleText = 300

// sayPlain returns a text as one line of ASCII.
func sayPlain(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return '?'
		}
		return r
	}, text[:min(len(text), maxConsoleText)])), " ")
}

// sayIPXE quotes a text for iPXE's echo, and keeps it readable.
func sayIPXE(text string) string {
	words := strings.Fields(strings.ReplaceAll(sayPlain(text), "${", "$ {"))
	for i, w := range words {
		if w[0] == '#' || w == "||" || w == "&&" || w == ";" {
			words[i] = "'" + w + "'"
		}
	}
	return strings.Join(words, " ")
}

// sayGRUB quotes a text for the single quotes of GRUB's shell.
func sayGRUB(text string) string { return strings.ReplaceAll(sayPlain(text), "'", `'\''`) }

// sayUBoot quotes a text for the single quotes of U-Boot's shell, which cannot quote a
// single quote.
func sayUBoot(text string) string { return strings.ReplaceAll(sayPlain(text), "'", `"`) }
