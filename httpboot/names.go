package httpboot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/boots"
)

// File is what a [Names] opens.
type File interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Names opens what boot programs ask for by name, over TFTP or GRUB's HTTP. All
// of it is known by where it ends, since each program asks relative to where it
// came from:
//
//	grub/grub.cfg                        finds the script of the machine at the client's address
//	grub/node-52:54:00:12:34:56.cfg      GRUB's script of one boot
//	grub/rescue-52:54:00:12:34:56.cfg    the same for the rescue shell, when there is a menu
//	pxelinux.cfg/01-52-54-00-12-34-56    the script for pxelinux, extlinux, and U-Boot's pxe
//	pxelinux.cfg/0A1C0002, …/default     the same, for the machine at the client's address
//	boot.scr.uimg                        U-Boot's script: pxe get, pxe boot, again and again
//	images/NAME/GENERATION/kernel        and initrd, of the machine's own image
//	images/NAME/GENERATION/uImage        and uInitrd: with mkimage's header
//	FILE                                 a file of the loaders directory
//
// A client whose address is nobody's gets loaders alone: where another server
// gives addresses, there is no knowing. A machine that is to be ignored gets
// nothing.
type Names struct{ *scripter }

// Names returns what opens files by name. The server's fields must be set.
func (s *Server) Names() (*Names, error) {
	w, err := s.scripter()
	return &Names{w}, err
}

// NameError is a name that was refused. It wraps [fs.ErrNotExist] or
// [fs.ErrPermission], or what went wrong on this side.
type NameError struct {
	MAC  pools.MAC // of the client's machine; zero: nobody's
	Node string
	Told string // what the client is told
	Err  error
}

func (e *NameError) Error() string {
	text := e.Told
	if !errors.Is(e.Err, fs.ErrNotExist) && !errors.Is(e.Err, fs.ErrPermission) {
		text += ": " + e.Err.Error()
	}
	if e.MAC.IsZero() {
		return text
	}
	return fmt.Sprintf("%s (node %s, %s)", text, e.Node, e.MAC)
}

func (e *NameError) Unwrap() error { return e.Err }

// Tell returns what the client is told.
func (e *NameError) Tell() string { return e.Told }

// client is who asks for a name, and how.
type client struct {
	addr   netip.Addr
	plan   *pools.Plan // nil: the address is nobody's
	device string      // GRUB's name of where the files are
}

func (c *client) refuse(err error, format string, args ...any) error {
	e := &NameError{Told: fmt.Sprintf(format, args...), Err: err}
	if c.plan != nil {
		e.MAC, e.Node = c.plan.MAC, c.plan.Node
	}
	return e
}

// Open opens what a TFTP client asks for. The name is clean: no slash at its
// start, none twice, no dot segments.
func (n *Names) Open(addr netip.Addr, name string) (File, error) {
	return n.open(addr, name, "(tftp,"+n.host+")")
}

func (n *Names) open(addr netip.Addr, name, device string) (File, error) {
	c := &client{addr: addr.Unmap(), device: device}
	if mac, ok := n.Addresses.MACAt(c.addr); ok {
		c.plan = n.Farm.Resolve(pools.Query{MAC: mac, IPXE: true})
		if c.plan == nil {
			return nil, &NameError{MAC: mac, Told: fmt.Sprintf("%s is not to be booted", mac), Err: fs.ErrPermission}
		}
	}
	if rest, ok := below(name, "pxelinux.cfg"); ok {
		return n.pxelinux(c, rest)
	}
	if rest, ok := below(name, strings.Trim(pools.ImagePath, "/")); ok && strings.Count(rest, "/") == 2 {
		return n.image(c, rest)
	}
	if rest, ok := below(name, "grub"); ok && strings.HasSuffix(rest, ".cfg") && !strings.Contains(rest, "/") {
		return n.grub(c, rest)
	}
	if path.Base(name) == pools.UBootArm64.Loader() {
		return n.ubootScript(c)
	}
	return n.loader(c, name)
}

// below returns what follows the directory dir in a name.
func below(name, dir string) (string, bool) {
	if rest, ok := strings.CutPrefix(name, dir+"/"); ok {
		return rest, true
	}
	_, rest, ok := strings.Cut(name, "/"+dir+"/")
	return rest, ok
}

// machine returns the plan of a MAC, if the client is at its address.
func (n *Names) machine(c *client, mac pools.MAC) (*pools.Plan, error) {
	p := n.Farm.Resolve(pools.Query{MAC: mac, IPXE: true})
	if p == nil {
		return nil, c.refuse(fs.ErrPermission, "MAC address %s is not known here", mac)
	}
	if why := n.foreign(p, c.addr); why != "" {
		return nil, c.refuse(fs.ErrPermission, "%s", why)
	}
	return p, nil
}

// booted refuses a client whose address is nobody's.
func (c *client) booted() error {
	if c.plan == nil {
		return c.refuse(fs.ErrPermission, "%s is the address of no machine that boots from here", c.addr)
	}
	return nil
}

// script writes the script of a boot. What is wrong on this side is told by the
// script, and logged.
func (n *Names) script(p *pools.Plan, d dialect, c *client, rescue bool) (File, error) {
	s, err := n.write(p, d, c.device)
	if err != nil {
		n.Log.Warn("a machine cannot boot yet", "mac", p.MAC.String(), "node", p.Node, "pool", p.Pool, "problem", s.Problem, "err", err.Error())
	}
	if rescue && s.Problem == "" {
		s.Args = s.RescueArgs
	}
	return n.render(s.template(d), s)
}

func (n *Names) render(template string, data any) (File, error) {
	var b bytes.Buffer
	if err := n.texts.execute(&b, template, data); err != nil {
		return nil, &NameError{Told: "the script cannot be written, see the server's log", Err: err}
	}
	return text{bytes.NewReader(b.Bytes())}, nil
}

// text is a file that is in memory.
type text struct{ *bytes.Reader }

func (text) Close() error { return nil }

// grubMenu is what grub.grub.tmpl is filled in from. It is the same for all
// boots of a machine.
type grubMenu struct {
	*pools.Plan        // nil: GRUB has to tell who it is
	Device      string // (tftp,10.28.0.2)
	Who         string // MAC as GRUB's files have it
	Menu        bool
	MemtestEFI  string
}

func newGRUBMenu(p *pools.Plan, device string) grubMenu {
	m := grubMenu{Plan: p, Device: device, Who: "$net_default_mac"}
	if p != nil {
		m.Who = p.MAC.String()
		m.Menu = script{Plan: p}.Menu()
	}
	return m
}

// grub opens one of GRUB's own files.
func (n *Names) grub(c *client, name string) (File, error) {
	if name == "grub.cfg" {
		m := newGRUBMenu(c.plan, c.device)
		if m.Menu {
			m.MemtestEFI = n.loaderThere("memtest.efi")
		}
		return n.render("grub.grub.tmpl", m)
	}
	what, who, _ := strings.Cut(strings.TrimSuffix(name, ".cfg"), "-")
	mac, err := pools.ParseMAC(who)
	if err != nil || what != "node" && what != "rescue" {
		return n.loader(c, "grub/"+name)
	}
	p, err := n.machine(c, mac)
	if err != nil {
		return nil, err
	}
	rescue := what == "rescue"
	if rescue && !(script{Plan: p}).Menu() {
		return nil, c.refuse(fs.ErrPermission, "there is no rescue shell without a boot menu")
	}
	return n.script(p, grub, c, rescue)
}

// pxelinux opens a file of pxelinux.cfg. pxelinux and U-Boot ask by UUID, by MAC
// (01 is Ethernet), by the address in hex, which they shorten digit by digit,
// and for default.
func (n *Names) pxelinux(c *client, name string) (File, error) {
	if who, ok := strings.CutPrefix(name, "01-"); ok {
		mac, err := pools.ParseMAC(who)
		if err != nil {
			return nil, c.refuse(fs.ErrNotExist, "%v", err)
		}
		p, err := n.machine(c, mac)
		if err != nil {
			return nil, err
		}
		return n.script(p, pxelinux, c, false)
	}
	own := c.addr.Is4() && strings.EqualFold(name, fmt.Sprintf("%X", c.addr.AsSlice()))
	if !own && name != "default" {
		return nil, optional{c.refuse(fs.ErrNotExist, "there is nothing for %q", name)}
	}
	if err := c.booted(); err != nil {
		return nil, err
	}
	return n.script(c.plan, pxelinux, c, false)
}

// ubootScript opens the script that U-Boot's own boot command looks for. There
// is no nonce in it: what it boots it asks for by MAC.
func (n *Names) ubootScript(c *client) (File, error) {
	if err := c.booted(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := n.texts.execute(&b, "boot.uboot.tmpl", script{Plan: c.plan, Base: n.base}); err != nil {
		return nil, c.refuse(err, "the script cannot be written, see the server's log")
	}
	return text{bytes.NewReader(scriptImage("drover "+c.plan.Node, b.String()))}, nil
}

// Names of an image's files with mkimage's header.
const (
	wrappedKernel = "uImage"
	wrappedInitrd = "uInitrd"
)

// image opens a kernel or an initrd: NAME/GENERATION/FILE.
func (n *Names) image(c *client, rest string) (File, error) {
	if err := c.booted(); err != nil {
		return nil, err
	}
	part := strings.Split(rest, "/")
	name, generation, file := part[0], part[1], part[2]
	if !isImageName(name) || !isHex(generation, 64, 64) {
		return nil, c.refuse(fs.ErrNotExist, "no such image")
	}
	if own := pools.ImageName(c.plan.Image); name != own {
		return nil, c.refuse(fs.ErrPermission, "image %q is not for this machine, which has %q", name, own)
	}
	img, err := n.Images.Image(name + "@sha256:" + generation)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, c.refuse(fs.ErrNotExist, "no image %q of generation %.12s", name, generation)
	case err != nil:
		return nil, c.refuse(err, "image %q cannot be read", name)
	}
	plain := map[string]string{wrappedKernel: kernelFile, wrappedInitrd: initrdFile, kernelFile: kernelFile, initrdFile: initrdFile}[file]
	if plain == "" {
		return nil, c.refuse(fs.ErrNotExist, "an image has %s and %s here, no %q", kernelFile, initrdFile, file)
	}
	info, _, _ := img.file(plain)
	f, fi, err := openIn(img.Dir, info.Name)
	if err == nil && fi.Size() != info.Size {
		f.Close()
		err = fmt.Errorf("it has %d bytes, its manifest says %d", fi.Size(), info.Size)
	}
	if err != nil {
		return nil, c.refuse(errors.New(err.Error()), "%s of image %q is damaged", file, name)
	}
	if plain == file {
		return &wrapped{nil, f, info.Size}, nil
	}
	return n.wrap(c, f, file, name, info)
}

// wrap puts mkimage's header before a kernel or an initrd.
func (n *Names) wrap(c *client, f *os.File, file, image string, info FileInfo) (File, error) {
	u := uImage{kind: uImageRamdisk, name: image, size: uint32(info.Size)}
	gzip, err := false, error(nil)
	if file == wrappedKernel {
		u.kind = uImageKernel
		u.load, u.entry = c.plan.UBoot.Addresses()
		gzip, err = isGzip(f)
	}
	if gzip {
		u.compression = uImageGzip
	}
	if err == nil {
		u.sum, err = n.sums.of(f, info.Size, info.SHA256)
	}
	if err != nil {
		f.Close()
		return nil, c.refuse(err, "%s of image %q cannot be read", file, image)
	}
	return &wrapped{u.header(), f, info.Size}, nil
}

// loader opens a file of the loaders directory. A UEFI program that is not in
// the subdirectory that it is asked for in may be in the directory itself: shim
// asks for GRUB where it came from.
func (n *Names) loader(c *client, name string) (File, error) {
	if !isLoaderPath(name) {
		return nil, c.refuse(fs.ErrNotExist, "no loader %q", name)
	}
	f, fi, err := openIn(n.Loaders, name)
	if base := path.Base(name); errors.Is(err, fs.ErrNotExist) && base != name && path.Ext(base) == ".efi" {
		f, fi, err = openIn(n.Loaders, base)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && isOptional(name):
		return nil, optional{c.refuse(fs.ErrNotExist, "no loader %q", name)}
	case errors.Is(err, fs.ErrNotExist):
		return nil, c.refuse(fs.ErrNotExist, "no loader %q: see drover loaders on the server", name)
	case err != nil:
		return nil, c.refuse(err, "loader %q cannot be read", name)
	}
	return &wrapped{nil, f, fi.Size()}, nil
}

// isLoaderPath tells whether a name can be that of a loader: no part of it
// begins with a dot.
func isLoaderPath(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if !isFileName(strings.ReplaceAll(part, "+", "-")) {
			return false
		}
	}
	return true
}

// optional is an error about what a boot program asks for in passing.
type optional struct{ error }

func (o optional) Unwrap() error { return o.error }

// Optional tells that nothing is wrong.
func (o optional) Optional() bool { return true }

// isOptional tells whether boot programs ask for a name and do without: shim for
// revocations and certificates, GRUB for the lists of its modules.
func isOptional(name string) bool {
	base := path.Base(name)
	return slices.Contains([]string{"revocations_sku.efi", "revocations_sbat.efi"}, base) ||
		strings.HasPrefix(base, "shim_certificate_") || path.Ext(base) == ".lst"
}

// StepOf returns the step of a boot that fetching a name is; "" for none.
func StepOf(name string) boots.Step {
	base := path.Base(name)
	switch {
	case base == kernelFile || base == wrappedKernel:
		return boots.StepKernel
	case base == initrdFile || base == wrappedInitrd:
		return boots.StepInitrd
	case path.Ext(base) == ".cfg", strings.Contains(name, "pxelinux.cfg/"), path.Ext(base) == ".lst":
		return ""
	}
	return boots.StepLoader
}
