package httpboot

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"drover/pools"
)

//go:embed scripts/*.tmpl
var scriptFiles embed.FS

// Templates are the texts that boot scripts are made from. There is one for
// each dialect and purpose, named PURPOSE.DIALECT.tmpl.
//
// What the templates of iPXE mind:
//   - A script ends at the first command that fails, unless "||" follows it.
//     ROMs then boot the next device, so nothing may fail unheeded.
//   - There is no quoting. A line is cut at white space; a word that starts
//     with "#" begins a comment; the words "||", "&&" and ";" end a command;
//     "${" begins a setting wherever it stands.
//   - Settings outlive the script. That is what carries ${pause}, which grows,
//     from one try to the next.
//   - "sleep" fails when someone presses Ctrl-C.
//
// Those of GRUB: a file that is sourced from a loop, not by configfile from
// itself, which nests; text in single quotes; the names of variables outside of
// them. Those of pxelinux: no loop; U-Boot's shell, in which boot.scr.uimg is
// written, has one.
type Templates struct {
	all map[dialect]*template.Template
}

// ownTemplates are drover's own. The files are part of the program; a mistake in
// them fails every test.
func ownTemplates() *Templates {
	t, errs := readTemplates("")
	if len(errs) > 0 {
		panic(errors.Join(errs...))
	}
	return t
}

// LoadTemplates reads the templates in dir; each takes the place of drover's own
// of that name. The error joins one error for each mistake, that begins with
// FILE:LINE.
func LoadTemplates(dir string) (*Templates, error) {
	t, errs := readTemplates(dir)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return t, nil
}

// readTemplates reads drover's own templates, then those of dir over them, and
// tries each of those out.
func readTemplates(dir string) (*Templates, []error) {
	t := &Templates{all: map[dialect]*template.Template{}}
	for d, say := range map[dialect]func(string) string{ipxe: say, grub: sayGRUB, pxelinux: sayPlain, uboot: sayUBoot} {
		t.all[d] = template.Must(template.New("").Option("missingkey=error").
			Funcs(template.FuncMap{"say": say}).ParseFS(scriptFiles, "scripts/*."+string(d)+".tmpl"))
	}
	if dir == "" {
		return t, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, []error{fmt.Errorf("templates: %w", err)}
	}
	var errs []error
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".tmpl") {
			continue
		}
		errs = append(errs, t.replace(dir, e.Name())...)
	}
	return t, errs
}

// replace takes a template from dir.
func (t *Templates) replace(dir, name string) []error {
	file := filepath.Join(dir, name)
	tmpl := t.of(name)
	if tmpl == nil || tmpl.Lookup(name) == nil || name == "retry.ipxe.tmpl" {
		return []error{fmt.Errorf("%s:1: drover has no template of that name (%s)", file, strings.Join(t.names(), ", "))}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return []error{err}
	}
	if _, err := tmpl.New(name).Parse(string(text)); err != nil {
		return []error{placed(file, err)}
	}
	if err := t.try(name); err != nil {
		return []error{placed(file, err)}
	}
	return nil
}

// of returns the templates of the dialect that a template is in.
func (t *Templates) of(name string) *template.Template {
	parts := strings.Split(name, ".")
	if len(parts) != 3 {
		return nil
	}
	return t.all[dialect(parts[1])]
}

// names are those of all templates that can be replaced.
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

func (t *Templates) execute(w io.Writer, name string, data any) error {
	return t.of(name).ExecuteTemplate(w, name, data)
}

// try fills a template in with every kind of machine, so that a mistake shows
// before a machine meets it.
func (t *Templates) try(name string) error {
	if name == "finder.ipxe.tmpl" {
		return t.execute(io.Discard, name, struct{ Base, ScriptPath string }{"http://10.28.0.2", pools.ScriptPath})
	}
	for _, s := range sampleScripts() {
		data := any(s)
		if s.Plan == nil || name == "grub.grub.tmpl" {
			data = newGRUBMenu(s.Plan, "(tftp,10.28.0.2)")
		}
		if s.Plan == nil && name != "grub.grub.tmpl" {
			continue
		}
		if err := t.execute(io.Discard, name, data); err != nil {
			return err
		}
	}
	return nil
}

func sampleScripts() []script {
	mac := pools.MAC{0x52, 0x54, 0, 0, 0, 1}
	full := pools.Plan{Node: "node", MAC: mac, MACs: []pools.MAC{mac}, Pool: "pool", Cluster: "cluster", Image: "image"}
	full.MenuTimeout = 10
	out := []script{{}}
	for _, p := range []pools.Plan{full, {Node: "node", MAC: mac, MACs: []pools.MAC{mac}, Pool: "pool", Image: "image"}} {
		for _, n := range []pools.NextBoot{"", pools.NextLocal, pools.NextRescue} {
			plan := p
			s := script{Plan: plan.WithNextBoot(n), Base: "http://10.28.0.2", Self: "self", Device: "(tftp,10.28.0.2)", Kernel: "kernel",
				Initrd: "initrd", Args: "args", RescueArgs: "args"}
			problem := s
			problem.Problem, problem.Reboot = "problem", n == ""
			out = append(out, s, problem)
		}
	}
	return out
}

// placeOf finds the line in an error of text/template.
var placeOf = regexp.MustCompile(`^template: [^:]*:(\d+)(?::\d+)?: (.*)$`)

// placed writes an error of text/template the way drover writes places.
func placed(file string, err error) error {
	m := placeOf.FindStringSubmatch(err.Error())
	if m == nil {
		return fmt.Errorf("%s:1: %w", file, err)
	}
	return fmt.Errorf("%s:%s: %s", file, m[1], m[2])
}

// maxSaid bounds a text on the console, in bytes.
const maxSaid = 300

// sayPlain makes a text one line of ASCII.
func sayPlain(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return '?'
		}
		return r
	}, cut(text, maxSaid))), " ")
}

// say makes a text harmless after iPXE's echo, and readable as it was.
func say(text string) string {
	words := strings.Fields(strings.ReplaceAll(sayPlain(text), "${", "$ {"))
	for i, w := range words {
		if w[0] == '#' || w == "||" || w == "&&" || w == ";" {
			words[i] = "'" + w + "'"
		}
	}
	return strings.Join(words, " ")
}

// sayGRUB makes a text harmless between the single quotes of GRUB's shell.
func sayGRUB(text string) string { return strings.ReplaceAll(sayPlain(text), "'", `'\''`) }

// sayUBoot makes a text harmless between the single quotes of U-Boot's shell,
// which has no way to write one.
func sayUBoot(text string) string { return strings.ReplaceAll(sayPlain(text), "'", `"`) }
