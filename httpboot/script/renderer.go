package script

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/machines"
	"drover/pools/resolve"
)

// Machines finds the machine that sends a request.
type Machines interface {
	// Of returns the machine of a MAC.
	Of(mac pools.MAC) machines.Machine
	// Of6 returns the machine of a MAC that asks over IPv6.
	Of6(mac pools.MAC) machines.Machine
	// At returns the machine that has an address; false if no machine has it.
	At(addr netip.Addr) (machines.Machine, bool)
}

// Boots begins boots and records their timelines.
type Boots interface {
	// Issue begins a boot, with the step script, and returns its nonce, in hex, once
	// that is durable. The plan has the generation of the image. It voids earlier nonces of the machine. The error is
	// [boots.ErrNotBooting] for a machine that is not booting.
	Issue(p *resolve.Plan) (nonce string, err error)
	// IssueUnproved is Issue for a client that may have forged its address. It voids no
	// nonce.
	IssueUnproved(p *resolve.Plan) (nonce string, err error)
	// Step records a step of the machine's current boot. The nonce is empty:
	// the server itself observed the step.
	Step(mac pools.MAC, nonce string, e boots.Event) error
}

// Images finds images.
type Images interface {
	// Image returns the image with the reference NAME, in the current generation, or
	// NAME@sha256:GENERATION. The error names the image, and wraps
	// [io/fs.ErrNotExist] if there is none.
	Image(ref string) (Image, error)
}

// Options configure a [Renderer]. The interfaces, URL and Log must be set.
type Options struct {
	Machines Machines
	Boots    Boots
	Images   Images

	// Advertised returns what a client at an address is told about this server, before it
	// is known which machine it is. It may be nil.
	Advertised func(client netip.Addr) *resolve.Advertised
	URL        string // of the node-facing HTTP listener, such as http://10.28.0.2:80, where neither Plan nor Advertised has one
	SecureURL  string // likewise of the HTTPS listener; empty: there is none
	Pin        string // of the HTTPS listener's key, sha256:...; empty: there is none

	// Also returns the other servers of the farm, which go on with a boot when this one does not
	// answer; nil: there is none.
	Also func() []netip.AddrPort

	// FallBack returns the image that a machine boots in place of one that has failed on it, else that
	// one. nil: none falls back.
	FallBack func(p *resolve.Plan, image Image) Image

	Loaders   string     // directory of boot loaders; empty: there are none
	Templates *Templates // texts of the scripts; nil: drover's own

	// TakeNextBoot records, durably, that the next boot that an operator set for a
	// node got its script. It may be nil.
	TakeNextBoot func(node string) error

	Log *slog.Logger
}

// Renderer writes boot scripts: it translates a Plan to the language of a boot program.
type Renderer struct {
	Options
	issued    issuedBoots
	checksums checksums
}

// New returns a renderer. The error is for a URL that nodes cannot use.
func New(o Options) (*Renderer, error) {
	if o.Templates == nil {
		o.Templates = ownTemplates()
	}
	if o.URL == "" && o.Advertised != nil {
		return &Renderer{Options: o}, nil
	}
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, fmt.Errorf("node-facing URL: %w", err)
	}
	if u.Scheme != "http" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("node-facing URL %q: want http://ADDRESS or http://ADDRESS:PORT", o.URL)
	}
	o.URL = "http://" + strings.TrimSuffix(u.Host, ":80")
	return &Renderer{Options: o}, nil
}

// advertised returns what the machine of a plan is told about this server; without a plan,
// what a client at an address is told.
func (r *Renderer) advertised(p *resolve.Plan, client netip.Addr) *resolve.Advertised {
	switch {
	case p != nil && p.Advertised != nil && p.Advertised.URL != "":
		return p.Advertised
	case p == nil && r.Advertised != nil:
		return r.Advertised(client)
	}
	return &resolve.Advertised{URL: r.URL, SecureURL: r.SecureURL}
}

// Machine returns the Plan of the machine with this MAC. If the machine does not have the
// address from, it also returns an [*Error] that wraps [fs.ErrPermission]. The Plan is
// nil only for an unknown machine.
func (r *Renderer) Machine(mac pools.MAC, from netip.Addr) (*resolve.Plan, error) {
	m := r.Machines.Of(mac)
	if from.Is6() {
		m = r.Machines.Of6(mac)
	}
	switch {
	case m.Plan == nil:
		return nil, forbidden("MAC address %s is not known here", mac)
	case !m.Address.IsValid():
		return m.Plan, forbidden("%s has no address from here; you are %s", mac, from)
	case from != m.Address.Unmap():
		return m.Plan, forbidden("%s is not the address of %s", from, mac)
	}
	return m.Plan, nil
}

// At returns the machine at an address; false if there is none. A machine that leases the
// address, but has another one by its Plan, is not taken for the client: another host may
// have asked for the lease in its name.
func (r *Renderer) At(addr netip.Addr) (machines.Machine, bool) {
	m, ok := r.Machines.At(addr)
	if !ok || m.Plan != nil && m.Address.Unmap() != addr {
		return machines.Machine{}, false
	}
	return m, true
}

// IPXE begins a boot and returns its script for iPXE. With an error, which is the reason
// why the machine cannot boot, it returns a script that shows the reason and tries again.
// The script is nil only if the template fails.
func (r *Renderer) IPXE(p *resolve.Plan) (text []byte, err error) {
	r.Forget(p.MAC)
	s := &script{Plan: p}
	err = r.write(s, ipxe)
	s.self(p.MAC)
	text, failed := r.Templates.execute(s.template(ipxe), s)
	if failed != nil {
		return nil, failed
	}
	return text, err
}

// Preview returns the script for iPXE that [Renderer.IPXE] would return now, with zeros for
// the nonce. It begins no boot. With an error, the script shows it.
func (r *Renderer) Preview(p *resolve.Plan) (text []byte, err error) {
	if p == nil {
		return nil, errors.New("the machine gets no script")
	}
	s := script{Plan: p}
	r.servers(&s)
	s.self(p.MAC)
	if _, err = r.try(&s, ipxe); err != nil && s.Problem == "" {
		s.Problem = err.Error()
	}
	text, failed := r.Templates.execute(s.template(ipxe), s)
	if failed != nil {
		return nil, failed
	}
	return text, err
}

// Finder returns the iPXE script for all machines. It loads the script of a machine by
// its MAC, from the address that this server has for a client.
func (r *Renderer) Finder(client netip.Addr) ([]byte, error) {
	base := r.advertised(nil, client).URL
	return r.Templates.execute("finder.ipxe.tmpl", struct{ Base, ScriptPath string }{base, pools.ScriptPath})
}

// script is the data of the templates.
type script struct {
	*resolve.Plan
	Base       string  // of drover's URLs, without a slash at its end
	Device     string  // GRUB: the server of its files, (tftp,10.28.0.2)
	files              // of this server
	Others     []files // the same at the other servers
	FDT        string  // U-Boot: path of a device tree; empty for none
	Args       string  // kernel command line, quoted for the boot program
	RescueArgs string  // the same for the rescue shell
	MemtestEFI string  // path below Base, or of TFTP; empty for none
	MemtestBin string  // likewise, for BIOS
	Problem    string  // the reason why the machine cannot boot
	Reboot     bool    // the machine has to reboot: trying again does not help

	nonce    string // of the boot, once it was issued
	unproved bool   // the client may have forged its address
}

// files are what a machine loads from one server.
type files struct {
	Self   string // iPXE: URL of the script itself, to try again
	Kernel string // URL, or path
	Initrd string // URL, or path

	base string // of the server's URLs
}

// Menu reports whether the machine gets a menu.
func (s script) Menu() bool { return s.MenuTimeout > 0 && s.NextBoot == "" }

// Local reports whether this boot is from the machine's own disk.
func (s script) Local() bool { return s.NextBoot == pools.NextLocal }

// Pause returns the timeout of U-Boot's menu, in tenths of a second.
func (s script) Pause() int { return 10 * int(s.MenuTimeout) }

// template returns the name of the template for a script.
func (s script) template(d dialect) string {
	purpose := "boot"
	switch {
	case s.Problem != "":
		purpose = "problem"
	case s.Local():
		purpose = "local"
	}
	return purpose + "." + string(d) + ".tmpl"
}

// write begins a boot, or reuses the one that was issued, and fills in its script. The
// script is valid even with an error: s.Problem then describes the error for the
// console, and write adds it to the boot's timeline.
func (r *Renderer) write(s *script, d dialect) error {
	r.servers(s)
	err := r.fill(s, d)
	if err == nil {
		return nil
	}
	if s.Problem == "" {
		s.Problem = err.Error()
	}
	if err := r.Boots.Step(s.MAC, "", boots.Event{Step: boots.StepScript, Error: s.Problem}); err != nil {
		r.Log.Warn("boot step not recorded", "mac", s.MAC.String(), "step", string(boots.StepScript), "err", err.Error())
	}
	return err
}

// fill adds the image and the command line of a boot to s. With an error, it may set
// s.Problem to a text for the console.
func (r *Renderer) fill(s *script, d dialect) error {
	boot, err := r.try(s, d) // to fail before a boot begins
	if err != nil {
		return err
	}
	issue := func() (issuedBoot, error) { return r.issue(s, boot) }
	if d == ipxe {
		boot, err = issue()
	} else {
		boot, err = r.issued.get(s, issue)
	}
	if errors.Is(err, boots.ErrNotBooting) {
		s.Problem, s.Reboot = "the server has not seen this machine ask for an address; rebooting in 10 seconds", true
		return err
	}
	if err != nil {
		s.Problem = "the server cannot record a new boot, see its log"
		return fmt.Errorf("boot of %s: %w", s.MAC, err)
	}
	if err = r.fillLines(s, d, boot); err == nil {
		s.nonce = boot.nonce
	}
	return err
}

// try fills in the script of a boot with a nonce of zeros, and returns that boot.
func (r *Renderer) try(s *script, d dialect) (boot issuedBoot, err error) {
	if s.Base == "" {
		return boot, errors.New("the server has no address on the network of this machine")
	}
	if boot, err = r.image(s); err != nil {
		return boot, err
	}
	boot.nonce = strings.Repeat("0", 64)
	return boot, r.fillLines(s, d, boot)
}

// imageOf returns the image that a machine boots now, in one generation.
func (r *Renderer) imageOf(p *resolve.Plan) (Image, error) {
	image, err := r.Images.Image(p.Image)
	if err == nil && r.FallBack != nil {
		image = r.FallBack(p, image)
	}
	return image, err
}

// image returns a boot with the machine's image, and without a nonce.
func (r *Renderer) image(s *script) (boot issuedBoot, err error) {
	boot.image, err = r.imageOf(s.Plan)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.Problem = fmt.Sprintf("the server has no image %q", s.Image)
		return boot, err
	case err != nil:
		s.Problem = fmt.Sprintf("the server cannot read its image %q, see its log", s.Image)
		return boot, err
	}
	if boot.dir, err = boot.image.urlPath(); err != nil {
		s.Problem = fmt.Sprintf("the server cannot serve its image %q, see its log", s.Image)
	}
	return boot, err
}

// issue issues a boot: it returns the boot with a nonce.
func (r *Renderer) issue(s *script, boot issuedBoot) (_ issuedBoot, err error) {
	issue := r.Boots.Issue
	if s.unproved {
		issue = r.Boots.IssueUnproved
	}
	p := *s.Plan // others share it
	p.Generation = boot.image.Generation
	if boot.nonce, err = issue(&p); err != nil {
		return boot, err
	}
	if s.NextBoot != "" && r.TakeNextBoot != nil {
		err = r.TakeNextBoot(s.Node)
	}
	return boot, err
}

// maxUBootName is the longest name that U-Boot's TFTP client can request, in bytes. It
// cuts off the rest silently (net/tftp.c, MAX_LEN).
const maxUBootName = 127

// fillLines sets the files that the boot program loads, and the command lines.
func (r *Renderer) fillLines(s *script, d dialect, boot issuedBoot) (err error) {
	r.paths(s, d, boot)
	if n := max(len(s.Kernel), len(s.Initrd)); d == pxelinux && n > maxUBootName {
		return fmt.Errorf("U-Boot cannot ask for a name of %d bytes, only %d: give image %q a shorter one", n, maxUBootName, s.Image)
	}
	if s.Args, err = r.commandLine(s, d, boot, s.NextBoot == pools.NextRescue); err != nil {
		return err
	}
	if s.Menu() {
		s.RescueArgs, err = r.commandLine(s, d, boot, true)
	}
	return err
}

// file returns a script as a file.
func (r *Renderer) file(template string, data any) (content, error) {
	b, err := r.Templates.execute(template, data)
	if err != nil {
		return nil, &Error{Msg: "the script cannot be written, see the server's log", Err: err}
	}
	return text{bytes.NewReader(b)}, nil
}
