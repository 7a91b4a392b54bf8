package script

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path"
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/machines"
	"drover/pools/resolve"
)

// File is an open file of [Files].
type File struct {
	content
	machines.Machine // of the client; zero if unknown

	// Begins is the boot that the file begins; zero for a file that begins none.
	Begins Begun
}

type content interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Disk returns the file on disk that has all of the content; nil if there is none.
func (f *File) Disk() *os.File {
	if w, ok := f.content.(*wrapped); ok && len(w.head) == 0 {
		return w.File
	}
	return nil
}

// Files opens the files that boot programs fetch by name. A program requests names in the
// directory that it was loaded from, so only the end of a name counts:
//
//	grub/grub.cfg                        finds the script of the machine at the client's address
//	grub/node-52:54:00:12:34:56.cfg      GRUB's script of one boot
//	grub/rescue-52:54:00:12:34:56.cfg    the same for the rescue shell, when there is a menu
//	pxelinux.cfg/01-52-54-00-12-34-56    the script for pxelinux, extlinux, and U-Boot's pxe
//	pxelinux.cfg/0A1C0002, …/default     the same, for the machine at the client's address
//	boot.scr.uimg                        U-Boot's script: pxe get and pxe boot in a loop
//	images/NAME/GENERATION/kernel        and initrd, of the machine's own image
//	images/NAME/GENERATION/root.squashfs likewise, by TFTP only
//	images/NAME/GENERATION/uImage        and uInitrd: with mkimage's header
//	SERIAL/config.txt, SERIAL/cmdline.txt, SERIAL/…  of a Raspberry Pi, see raspberryPi
//	FILE                                 a file of the loaders directory
//
// A client whose address belongs to no machine gets only loaders: another DHCP server may
// have given it the address. A machine that the config ignores gets nothing.
type Files struct {
	r        *Renderer
	scheme   string // of GRUB's name of the server: tftp or http
	squashfs bool   // has root images, too: by HTTP they have a queue
}

// TFTP returns the files for TFTP clients.
func (r *Renderer) TFTP() *Files { return &Files{r, "tftp", true} }

// HTTP returns the files for a GRUB that was fetched by HTTP.
func (r *Renderer) HTTP() *Files { return &Files{r, "http", false} }

// device returns GRUB's name of the server for a machine, or without one for a client:
// (tftp,10.28.0.2) or (http,10.28.0.2:8080).
func (f *Files) device(p *resolve.Plan, client netip.Addr) string {
	host := strings.TrimPrefix(f.r.advertised(p, client).URL, "http://")
	if name, _, err := net.SplitHostPort(host); err == nil && f.scheme == "tftp" {
		if host = name; strings.Contains(name, ":") {
			host = "[" + name + "]"
		}
	}
	return "(" + f.scheme + "," + host + ")"
}

// Error is a refused request for a file or a script. It wraps [fs.ErrNotExist]
// or [fs.ErrPermission]; any other error is a fault of the server.
type Error struct {
	MAC  pools.MAC // of the client's machine; zero if unknown
	Node string    // likewise
	Msg  string    // for the client
	Err  error
}

func (e *Error) Error() string {
	text := e.Msg
	if !errors.Is(e.Err, fs.ErrNotExist) && !errors.Is(e.Err, fs.ErrPermission) {
		text += ": " + e.Err.Error()
	}
	if e.MAC.IsZero() {
		return text
	}
	return fmt.Sprintf("%s (node %s, %s)", text, e.Node, e.MAC)
}

func (e *Error) Unwrap() error { return e.Err }

// ClientText returns the text for the client.
func (e *Error) ClientText() string { return e.Msg }

func notFound(format string, args ...any) error {
	return &Error{Msg: fmt.Sprintf(format, args...), Err: fs.ErrNotExist}
}

func forbidden(format string, args ...any) error {
	return &Error{Msg: fmt.Sprintf(format, args...), Err: fs.ErrPermission}
}

// client is the sender of a request.
type client struct {
	machines.Machine // its Plan is nil if the address belongs to no machine
	addr             netip.Addr
}

// Open opens a file for the client with an address. The name is clean: no slash at its
// start, no repeated slashes, no dot segments. The error is an [*Error]. For a file that
// boot programs do not need, it has a method Optional that returns true.
func (f *Files) Open(addr netip.Addr, name string) (*File, error) {
	addr = addr.Unmap()
	m, ok := f.r.At(addr)
	if ok && m.Plan == nil {
		return nil, &Error{MAC: m.MAC, Msg: fmt.Sprintf("%s is not to be booted", m.MAC), Err: fs.ErrPermission}
	}
	opened, err := f.open(&client{m, addr}, name)
	if err == nil {
		s, _ := opened.(bootScript)
		return &File{opened, m, s.begins}, nil
	}
	if e, isError := errors.AsType[*Error](err); isError && ok {
		e.MAC, e.Node = m.MAC, m.Plan.Node
	}
	return nil, err
}

func (f *Files) open(c *client, name string) (content, error) {
	if rest, ok := below(name, "pxelinux.cfg"); ok {
		return f.pxelinux(c, rest)
	}
	if rest, ok := below(name, strings.Trim(pools.ImagePath, "/")); ok && strings.Count(rest, "/") == 2 {
		return f.image(c, rest)
	}
	if rest, ok := below(name, "grub"); ok && strings.HasSuffix(rest, ".cfg") && !strings.Contains(rest, "/") {
		return f.grub(c, rest)
	}
	if path.Base(name) == pools.UBootArm64.Loader() {
		return f.ubootScript(c)
	}
	opened, err := f.loader(name)
	if errors.Is(err, fs.ErrNotExist) {
		if pi, ok, err := f.raspberryPi(c, name); ok {
			return pi, err
		}
	}
	return opened, err
}

// below returns the part of a name after the directory dir.
func below(name, dir string) (string, bool) {
	if rest, ok := strings.CutPrefix(name, dir+"/"); ok {
		return rest, true
	}
	_, rest, ok := strings.Cut(name, "/"+dir+"/")
	return rest, ok
}

// known returns an error for a client whose address belongs to no machine.
func (c *client) known() error {
	if c.Plan == nil {
		return forbidden("%s is the address of no machine that boots from here", c.addr)
	}
	return nil
}

// machine returns the Plan of the machine with this MAC, if the client is that
// machine.
func (f *Files) machine(c *client, mac pools.MAC) (*resolve.Plan, error) {
	if c.MAC == mac && c.Address == c.addr {
		return c.Plan, nil
	}
	return f.r.Machine(mac, c.addr) // it may be another card of the node
}

// script returns the script of a boot. A problem of the server is logged, and the script
// shows it.
func (f *Files) script(p *resolve.Plan, d dialect, rescue bool) (content, error) {
	s := f.begin(p)
	if err := f.r.write(s, d); err != nil {
		f.r.Log.Warn("a machine cannot boot yet", "mac", p.MAC.String(), "node", p.Node, "pool", p.Pool, "problem", s.Problem, "err", err.Error())
	}
	if rescue && s.Problem == "" {
		s.Args = s.RescueArgs
	}
	opened, err := f.r.file(s.template(d), s)
	if err != nil {
		return nil, err
	}
	return bootScript{opened, s.begins()}, nil
}

// text is a file in memory.
type text struct{ *bytes.Reader }

func (text) Close() error { return nil }

// grubMenu is the data of grub.grub.tmpl. It is the same for all boots of a
// machine.
type grubMenu struct {
	*resolve.Plan        // nil if the machine is unknown
	Device        string // (tftp,10.28.0.2)
	Who           string // MAC as GRUB's files have it
	Menu          bool
	MemtestEFI    string
}

func newGRUBMenu(p *resolve.Plan, device string) grubMenu {
	m := grubMenu{Plan: p, Device: device, Who: "$net_default_mac"}
	if p != nil {
		m.Who = p.MAC.String()
		m.Menu = script{Plan: p}.Menu()
	}
	return m
}

// grub opens one of GRUB's own files.
func (f *Files) grub(c *client, name string) (content, error) {
	if name == "grub.cfg" {
		m := newGRUBMenu(c.Plan, f.device(c.Plan, c.addr))
		if m.Menu {
			m.MemtestEFI = f.r.existingLoader("memtest.efi")
		}
		return f.r.file("grub.grub.tmpl", m)
	}
	purpose, machine, _ := strings.Cut(strings.TrimSuffix(name, ".cfg"), "-")
	mac, err := pools.ParseMAC(machine)
	if err != nil || purpose != "node" && purpose != "rescue" {
		return f.loader("grub/" + name)
	}
	p, err := f.machine(c, mac)
	if err != nil {
		return nil, err
	}
	rescue := purpose == "rescue"
	if rescue && !(script{Plan: p}).Menu() {
		return nil, forbidden("there is no rescue shell without a boot menu")
	}
	return f.script(p, grub, rescue)
}

// pxelinux opens a file of pxelinux.cfg. pxelinux and U-Boot request names made from the
// UUID, the MAC (after 01 for Ethernet), the address in hex, which they shorten digit by
// digit, and the name default.
func (f *Files) pxelinux(c *client, name string) (content, error) {
	if machine, ok := strings.CutPrefix(name, "01-"); ok {
		mac, err := pools.ParseMAC(machine)
		if err != nil {
			return nil, notFound("%v", err)
		}
		p, err := f.machine(c, mac)
		if err != nil {
			return nil, err
		}
		return f.script(p, pxelinux, false)
	}
	own := c.addr.Is4() && strings.EqualFold(name, fmt.Sprintf("%X", c.addr.AsSlice()))
	if !own && name != "default" {
		return nil, optional{notFound("there is nothing for %q", name)}
	}
	if err := c.known(); err != nil {
		return nil, err
	}
	return f.script(c.Plan, pxelinux, false)
}

// ubootScript opens the script that U-Boot's own boot command requests. It contains no
// nonce: U-Boot then fetches the script of the boot by MAC.
func (f *Files) ubootScript(c *client) (content, error) {
	if err := c.known(); err != nil {
		return nil, err
	}
	b, err := f.r.Templates.execute("boot.uboot.tmpl", script{Plan: c.Plan, Base: f.r.advertised(c.Plan, c.addr).URL})
	if err != nil {
		return nil, &Error{Msg: "the script cannot be written, see the server's log", Err: err}
	}
	return text{bytes.NewReader(scriptImage("drover "+c.Plan.Node, string(b)))}, nil
}

// Names of an image's files with mkimage's header.
const (
	wrappedKernel = "uImage"
	wrappedInitrd = "uInitrd"
)

// image opens a file of an image: NAME/GENERATION/FILE.
func (f *Files) image(c *client, rest string) (content, error) {
	if err := c.known(); err != nil {
		return nil, err
	}
	part := strings.Split(rest, "/")
	name, generation, file := part[0], part[1], part[2]
	if !isImage(name, generation) {
		return nil, notFound("no such image")
	}
	if own := pools.ImageName(c.Plan.Image); name != own {
		return nil, forbidden("image %q is not for this machine, which has %q", name, own)
	}
	img, err := f.r.Image(name, generation)
	if err != nil {
		return nil, err
	}
	plain := map[string]string{wrappedKernel: kernelFile, wrappedInitrd: initrdFile, kernelFile: kernelFile, initrdFile: initrdFile}[file]
	if file == SquashfsFile && f.squashfs {
		plain = file
	}
	if plain == "" {
		return nil, notFound("an image has %s and %s here, no %q", kernelFile, initrdFile, file)
	}
	opened, info, err := img.Open(plain)
	if err != nil || plain == file {
		return diskFile(opened, info.Size, err)
	}
	return f.wrap(c, opened, file, name, info)
}

// diskFile returns an open file as a content.
func diskFile(f *os.File, size int64, err error) (content, error) {
	if err != nil {
		return nil, err
	}
	return &wrapped{nil, f, size}, nil
}

// wrap puts mkimage's header before a kernel or an initrd.
func (f *Files) wrap(c *client, opened *os.File, file, image string, info FileInfo) (content, error) {
	u := uImage{kind: uImageRamdisk, name: image, size: uint32(info.Size)}
	gzip, err := false, error(nil)
	if file == wrappedKernel {
		u.kind = uImageKernel
		u.load, u.entry = c.Plan.UBoot.Addresses()
		gzip, err = isGzip(opened)
	}
	if gzip {
		u.compression = uImageGzip
	}
	if err == nil {
		u.sum, err = f.r.checksums.of(opened, info.Size, info.SHA256)
	}
	if err != nil {
		opened.Close()
		return nil, &Error{Msg: fmt.Sprintf("%s of image %q cannot be read", file, image), Err: err}
	}
	return &wrapped{u.header(), opened, info.Size}, nil
}

// StepOf returns the step of a boot that is reached by fetching a file; "" for none. The
// node itself reports that it has the squashfs.
func StepOf(name string) boots.Step {
	base := path.Base(name)
	_, ofGRUB := below(name, "grub") // its modules and fonts
	switch {
	case base == kernelFile || base == wrappedKernel:
		return boots.StepKernel
	case base == initrdFile || base == wrappedInitrd:
		return boots.StepInitrd
	case ofGRUB, base == SquashfsFile, base == manifestFile, strings.Contains(name, "pxelinux.cfg/"):
		return ""
	case slices.Contains([]string{".cfg", ".lst", ".txt", ".dtb", ".dtbo"}, path.Ext(base)):
		return ""
	}
	return boots.StepLoader
}
