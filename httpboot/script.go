package httpboot

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"drover/pools"
	"drover/pools/boots"
)

// scripter writes boot scripts: one Plan, in the language of each loader.
type scripter struct {
	*Server
	base  string // of URLs, without a slash at its end
	host  string // of base, for loaders that name a server without a URL
	texts *Templates

	secure []string // what the kernel command line says of the HTTPS listener
}

func (s *Server) scripter() (*scripter, error) {
	base, err := baseURL(s.URL)
	if err != nil {
		return nil, err
	}
	texts := s.Templates
	if texts == nil {
		texts = ownTemplates()
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	secure, err := s.Secure.args()
	return &scripter{Server: s, base: base, host: u.Hostname(), texts: texts, secure: secure}, err
}

// script is what the templates are filled in from.
type script struct {
	*pools.Plan
	Base       string // of drover's URLs, without a slash at its end
	Self       string // iPXE: URL of the script itself, to ask again
	secure     []string
	Device     string // GRUB: (tftp,10.28.0.2), where its files are
	Kernel     string // URL, or path
	Initrd     string // URL, or path
	FDT        string // U-Boot: path of a device tree; empty for none
	Args       string // kernel command line, quoted as the loader wants it
	RescueArgs string // the same for the rescue shell
	MemtestEFI string // path below Base, or of TFTP; empty for none
	MemtestBin string // likewise, for BIOS
	Problem    string // why there is nothing to boot
	Reboot     bool   // asking again is of no use
}

// Menu tells whether the machine gets a menu.
func (s script) Menu() bool { return s.MenuTimeout > 0 && s.NextBoot == "" }

// Local tells whether it boots from its own disk this once.
func (s script) Local() bool { return s.NextBoot == pools.NextLocal }

// Pause is how long U-Boot waits in its menu, in tenths of a second.
func (s script) Pause() int { return 10 * int(s.MenuTimeout) }

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
	h.orders.forget(plan.MAC)
	s, err := h.write(plan, ipxe, "")
	s.Self = h.base + pools.ScriptPath + plan.MAC.Dashed()
	if err != nil {
		rec.err, rec.problem = err, true
	}
	return h.writeScript(rec, s.template(ipxe), s)
}

// template is the name of the template for a script.
func (s script) template(d dialect) string {
	what := "boot"
	switch {
	case s.Problem != "":
		what = "problem"
	case s.Local():
		what = "local"
	}
	return what + "." + string(d) + ".tmpl"
}

// write opens a boot, or goes on with the one that is open, and fills in its
// script. The script is good in any case: with an error, s.Problem says in
// words what is wrong, and the boot's timeline has it too.
func (s *scripter) write(p *pools.Plan, d dialect, device string) (script, error) {
	out := script{Plan: p, Base: s.base, Device: device, secure: s.secure}
	if err := s.fill(&out, d); err != nil {
		if out.Problem == "" {
			out.Problem = err.Error()
		}
		s.observe(p.MAC, boots.Event{Step: boots.StepScript, Error: out.Problem})
		return out, err
	}
	return out, nil
}

// fill adds the image and the command line of a boot to out. When it returns
// an error, out.Problem may have better words for it.
func (s *scripter) fill(out *script, d dialect) error {
	p := out.Plan
	img, err := s.image(out)
	if err != nil {
		return err
	}
	dir, err := img.urlPath()
	if err != nil {
		out.Problem = fmt.Sprintf("the server cannot serve its image %q, see its log", p.Image)
		return err
	}
	o := order{image: img, dir: dir}
	// With a nonce of full length, to find out before a boot is opened.
	o.nonce = strings.Repeat("0", 64)
	if err := s.lines(out, d, o); err != nil {
		return err
	}
	if d == ipxe {
		o, err = s.open(p, o)
	} else {
		o, err = s.orders.get(p, func() (order, error) { return s.open(p, o) })
	}
	if errors.Is(err, boots.ErrNotBooting) {
		out.Problem, out.Reboot = "the server has not seen this machine ask for an address; rebooting in 10 seconds", true
		return err
	}
	if err != nil {
		out.Problem = "the server cannot record a new boot, see its log"
		return fmt.Errorf("boot of %s: %w", p.MAC, err)
	}
	return s.lines(out, d, o)
}

func (s *scripter) image(out *script) (Image, error) {
	img, err := s.Images.Image(out.Image)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		out.Problem = fmt.Sprintf("the server has no image %q", out.Image)
	case err != nil:
		out.Problem = fmt.Sprintf("the server cannot read its image %q, see its log", out.Image)
	}
	return img, err
}

// open opens a boot.
func (s *scripter) open(p *pools.Plan, o order) (order, error) {
	nonce, err := s.Boots.Issue(p)
	if err != nil {
		return o, err
	}
	o.nonce = nonce
	if p.NextBoot != "" && s.TakeNextBoot != nil {
		if err := s.TakeNextBoot(p.Node); err != nil {
			return o, err
		}
	}
	return o, nil
}

// maxUBootName is the longest name that U-Boot's TFTP client asks for, in bytes;
// it cuts off the rest without a word (net/tftp.c, MAX_LEN).
const maxUBootName = 127

// lines fills in what the loader is to load, and the command lines.
func (s *scripter) lines(out *script, d dialect, o order) (err error) {
	s.paths(out, d, o)
	if n := max(len(out.Kernel), len(out.Initrd)); d == pxelinux && n > maxUBootName {
		return fmt.Errorf("U-Boot cannot ask for a name of %d bytes, only %d: give image %q a shorter one", n, maxUBootName, out.Image)
	}
	if out.Args, err = commandLine(out, d, s.base, o, out.NextBoot == pools.NextRescue); err != nil {
		return err
	}
	if out.Menu() {
		out.RescueArgs, err = commandLine(out, d, s.base, o, true)
	}
	return err
}

// paths fills in where the files of the image are for the loader.
func (s *scripter) paths(out *script, d dialect, o order) {
	kernel, initrd := kernelFile, initrdFile
	from := s.base + o.dir
	switch d {
	case grub:
		from = out.Device + o.dir
	case pxelinux:
		from = strings.TrimPrefix(o.dir, "/") // relative to the directory of the loader
		if out.UBoot.Wrapped() {
			kernel, initrd = wrappedKernel, wrappedInitrd
		}
		out.FDT = out.UBoot.FDT
	}
	out.Kernel, out.Initrd = from+kernel, from+initrd
	if out.Menu() {
		out.MemtestEFI, out.MemtestBin = s.loaderThere("memtest.efi"), s.loaderThere("memtest.bin")
	}
}

// loaderThere returns the name of a loader if there is one.
func (s *scripter) loaderThere(name string) string {
	f, _, err := openIn(s.Loaders, name)
	if err != nil {
		return ""
	}
	f.Close()
	return name
}

func (s *scripter) observe(mac pools.MAC, e boots.Event) {
	if err := s.Boots.Step(mac, "", e); err != nil {
		s.Log.Warn("a step of a boot is not recorded", "mac", mac.String(), "step", string(e.Step), "err", err.Error())
	}
}

func (h *handler) writeScript(rec *recorder, name string, data any) error {
	var b bytes.Buffer
	if err := h.texts.execute(&b, name, data); err != nil {
		return broken(err, "the script cannot be written")
	}
	rec.Header().Set("Content-Type", "text/plain; charset=utf-8")
	rec.Header().Set("Cache-Control", "no-store")
	_, err := rec.Write(b.Bytes())
	return err
}
