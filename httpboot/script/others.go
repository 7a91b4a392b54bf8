package script

import (
	"net/netip"
	"net/url"
	"strings"

	"drover/pools"
)

// servers sets the URLs of this server and of the others that a machine can reach: those of the
// family of this one's address.
func (r *Renderer) servers(s *script) {
	s.Base, s.Others = r.advertised(s.Plan, netip.Addr{}).URL, nil
	if u, err := url.Parse(s.Base); err == nil && r.Also != nil {
		own, _ := netip.ParseAddr(u.Hostname())
		for _, a := range r.Also() {
			if a.Addr() != own && a.Addr().Is4() == own.Is4() {
				s.Others = append(s.Others, files{base: "http://" + pools.ServerText(a)})
			}
		}
	}
}

// self sets the URLs of the script of a machine.
func (s *script) self(mac pools.MAC) {
	path := pools.ScriptPath + mac.Dashed()
	s.Self = s.Base + path
	for i := range s.Others {
		s.Others[i].Self = s.Others[i].base + path
	}
}

// also returns the other servers as drover-init reads them.
func (s *script) also() string {
	var all []string
	for _, o := range s.Others {
		all = append(all, strings.TrimPrefix(o.base, "http://"))
	}
	return strings.Join(all, ",")
}

// deviceOf returns GRUB's name of the server with a base URL, which it reaches as it reaches the
// one of a device.
func deviceOf(device, base string) string {
	scheme, _, _ := strings.Cut(device, ",")
	host := strings.TrimPrefix(base, "http://")
	if u, err := url.Parse(base); err == nil && scheme == "(tftp" {
		host = strings.TrimSuffix(host, ":"+u.Port())
	}
	return scheme + "," + host + ")"
}

// paths sets the names under which the boot program loads the files of the image.
func (r *Renderer) paths(s *script, d dialect, boot issuedBoot) {
	kernel, initrd := kernelFile, initrdFile
	from := s.Base + boot.dir
	switch d {
	case grub:
		from = s.Device + boot.dir
	case pxelinux:
		from = strings.TrimPrefix(boot.dir, "/") // relative to the directory of the boot program
		if s.UBoot.Wrapped() {
			kernel, initrd = wrappedKernel, wrappedInitrd
		}
		s.FDT = s.UBoot.FDT
	}
	s.Kernel, s.Initrd = from+kernel, from+initrd
	for i := range s.Others {
		o := &s.Others[i]
		from := o.base + boot.dir
		if d == grub {
			from = deviceOf(s.Device, o.base) + boot.dir
		}
		o.Kernel, o.Initrd = from+kernel, from+initrd
	}
	if s.Menu() {
		s.MemtestEFI, s.MemtestBin = r.existingLoader("memtest.efi"), r.existingLoader("memtest.bin")
	}
}

// existingLoader returns name if a loader of that name exists, else "".
func (r *Renderer) existingLoader(name string) string {
	f, _, err := openIn(r.Loaders, name)
	if err != nil {
		return ""
	}
	f.Close()
	return name
}
