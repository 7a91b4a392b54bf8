package httpboot

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"text/template"

	"drover/pools"
)

//go:embed scripts/*.tmpl
var scriptFiles embed.FS

// iPXE's quirks that the templates mind:
//   - A script ends at the first command that fails, unless "||" follows it.
//     ROMs then boot the next device, so nothing may fail unheeded.
//   - There is no quoting. A line is cut at white space; a word that starts
//     with "#" begins a comment; the words "||", "&&" and ";" end a command;
//     "${" begins a setting wherever it stands.
//   - Settings outlive the script. That is what carries ${pause}, which grows,
//     from one try to the next.
//   - "sleep" fails when someone presses Ctrl-C.
func parseScripts() *template.Template {
	// The files are part of the program; a mistake in them fails every test.
	return template.Must(template.New("").
		Option("missingkey=error").
		Funcs(template.FuncMap{"say": say}).
		ParseFS(scriptFiles, "scripts/*.tmpl"))
}

// script is what the templates are filled in from.
type script struct {
	*pools.Plan
	Self    string // URL of the script itself, to ask again
	Kernel  string // URL
	Initrd  string // URL
	Args    string // kernel command line
	Problem string // why there is nothing to boot
	Reboot  bool   // asking again is of no use
}

// maxCommandLine is the longest command line that Linux reads on x86 and arm64,
// in bytes: COMMAND_LINE_SIZE less its NUL, and less the name of the kernel
// that iPXE puts first on UEFI. Linux cuts off the rest without a word.
const maxCommandLine = 2048 - len("\x00") - len("kernel ")

// Names of an image's files in URLs.
const (
	kernelFile   = "kernel"
	initrdFile   = "initrd"
	squashfsFile = "root.squashfs"
)

func (h *handler) refuseHead(rec *recorder, _ *http.Request) error {
	rec.Header().Set("Allow", http.MethodGet)
	return refuse(http.StatusMethodNotAllowed, "a boot script can only be fetched with GET: each is made for one boot")
}

// serveFinder serves the script that is the same for everybody.
func (h *handler) serveFinder(rec *recorder, _ *http.Request) error {
	return h.writeScript(rec, "finder.ipxe.tmpl", struct{ Base, ScriptPath string }{h.base, pools.ScriptPath})
}

// serveScript opens a boot and serves its script. A problem of this side is
// told by a script too.
func (h *handler) serveScript(rec *recorder, r *http.Request) error {
	plan, err := h.machine(rec, r)
	if err != nil {
		return err
	}
	s := script{Plan: plan, Self: h.base + pools.ScriptPath + plan.MAC.Dashed()}
	if err := h.fill(&s); err != nil {
		rec.err, rec.problem = err, true
		h.observe(plan.MAC, pools.Event{Step: pools.StepScript, Error: s.Problem})
		return h.writeScript(rec, "problem.ipxe.tmpl", s)
	}
	return h.writeScript(rec, "boot.ipxe.tmpl", s)
}

// fill adds the image and the command line of a new boot to s. When it returns
// an error, s.Problem says in words what is wrong.
func (h *handler) fill(s *script) error {
	img, err := h.Images.Image(s.Image)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.Problem = fmt.Sprintf("the server has no image %q", s.Image)
		return err
	case err != nil:
		s.Problem = fmt.Sprintf("the server cannot read its image %q, see its log", s.Image)
		return err
	}
	dir, err := img.urlPath()
	if err != nil {
		s.Problem = fmt.Sprintf("the server cannot serve its image %q, see its log", s.Image)
		return err
	}
	s.Kernel, s.Initrd = h.base+dir+kernelFile, h.base+dir+initrdFile
	// With a nonce of full length, to find out before a boot is opened.
	if _, err := commandLine(s.Plan, h.base, dir, img.Squashfs.SHA256, strings.Repeat("0", 64)); err != nil {
		s.Problem = err.Error()
		return err
	}
	nonce, err := h.Boots.Issue(s.Plan)
	if errors.Is(err, pools.ErrNotBooting) {
		s.Problem, s.Reboot = "the server has not seen this machine ask for an address; rebooting in 10 seconds", true
		return err
	}
	if err != nil {
		s.Problem = "the server cannot record a new boot, see its log"
		return fmt.Errorf("boot of %s: %w", s.MAC, err)
	}
	if s.Args, err = commandLine(s.Plan, h.base, dir, img.Squashfs.SHA256, nonce); err != nil {
		s.Problem = err.Error()
		return err
	}
	return nil
}

// commandLine writes the kernel command line of a boot. The operator's words
// come first, since of words given twice the last counts; but what follows
// "--" is not read by drover-init.
func commandLine(p *pools.Plan, base, imageDir, digest, nonce string) (string, error) {
	if !isHex(nonce, 16, 256) {
		return "", errors.New("the nonce of the boot is not made of hex digits")
	}
	if !isHex(digest, 64, 64) {
		return "", fmt.Errorf("the digest of image %q is not a sha256", p.Image)
	}
	var words []string
	for _, arg := range p.KernelArgs {
		if err := checkArg(arg); err != nil {
			return "", err
		}
		words = append(words, strings.Split(arg, " ")...)
	}
	own := []string{
		"initrd=initrd", // UEFI's Linux loads the initrd that its command line names
		"BOOTIF=01-" + p.MAC.Dashed(),
		"drover.url=" + base,
		"drover.mac=" + p.MAC.String(),
		"drover.nonce=" + nonce,
		"drover.image=sha256:" + digest,
		"drover.root=" + imageDir + squashfsFile,
	}
	end := slices.Index(words, "--")
	if end < 0 {
		end = len(words)
	}
	line := strings.Join(slices.Insert(words, end, own...), " ")
	if len(line) > maxCommandLine {
		return "", fmt.Errorf("the kernel command line has %d bytes, Linux takes %d: shorten kernelArgs", len(line), maxCommandLine)
	}
	return line, nil
}

// checkArg refuses what iPXE would not hand to the kernel as it is written.
// Quoted words may hold single spaces: iPXE cuts them and puts them together
// again.
func checkArg(arg string) error {
	for word := range strings.SplitSeq(arg, " ") {
		var why string
		switch {
		case word == "":
			why = "iPXE makes many spaces one"
		case !printable(word):
			why = "only printable ASCII reaches the kernel"
		case strings.Contains(word, "${"):
			why = `iPXE expands "${"`
		case word[0] == '#':
			why = `"#" begins a comment in iPXE`
		case word == "||", word == "&&", word == ";":
			why = "it ends a command in iPXE"
		default:
			continue
		}
		return fmt.Errorf("kernel argument %q cannot be passed on: %s", arg, why)
	}
	return nil
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// maxSaid bounds a text on the console, in bytes.
const maxSaid = 300

// say makes a text harmless after iPXE's echo, and readable as it was.
func say(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return '?'
		}
		return r
	}, cut(text, maxSaid))
	words := strings.Fields(strings.ReplaceAll(text, "${", "$ {"))
	for i, w := range words {
		if w[0] == '#' || w == "||" || w == "&&" || w == ";" {
			words[i] = "'" + w + "'"
		}
	}
	return strings.Join(words, " ")
}

func (h *handler) writeScript(rec *recorder, name string, data any) error {
	var b bytes.Buffer
	if err := h.scripts.ExecuteTemplate(&b, name, data); err != nil {
		return broken(err, "the script cannot be written")
	}
	rec.Header().Set("Content-Type", "text/plain; charset=utf-8")
	rec.Header().Set("Cache-Control", "no-store")
	_, err := rec.Write(b.Bytes())
	return err
}

// isHex tells whether s is least to most digits of lower-case hex.
func isHex(s string, least, most int) bool {
	if len(s) < least || len(s) > most {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
