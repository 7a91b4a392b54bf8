package rootfs

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// Lack is a thing that nodes need and that an image does not have, or has broken.
type Lack struct {
	What   string
	Remedy string
}

// Processors returns the processors of ELF programs by the names of platforms.
func Processors() map[string]elf.Machine {
	return map[string]elf.Machine{
		"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "arm": elf.EM_ARM, "386": elf.EM_386, "riscv64": elf.EM_RISCV, "ppc64le": elf.EM_PPC64, "s390x": elf.EM_S390,
	}
}

// CheckArchitecture returns an error if systemd or the kernel is for another processor than arch, such
// as amd64. Of what is neither a program nor a kernel that it knows it says nothing: see [Tree.Lacks].
func (t *Tree) CheckArchitecture(arch string, kernel *File) error {
	remedy := "build the image for this platform, or choose the one that it has with --platform linux/ARCH"
	machine, is := machineOf(t.systemd())
	if want, known := Processors()[arch]; known && is && machine != want {
		return fmt.Errorf("systemd of the image is a program for %s, and the platform is %s: %s", machine, arch, remedy)
	}
	if other := kernelArch(kernel); other != "" && other != arch {
		return fmt.Errorf("the kernel of the image is one for %s, and the platform is %s: %s", other, arch, remedy)
	}
	return nil
}

// systemd returns the program, or nil.
func (t *Tree) systemd() *File {
	for _, name := range systemdPaths {
		if n := t.Lookup(name); n != nil && n.File.Kind == tar.TypeReg {
			return n.File
		}
	}
	return nil
}

// machineOf returns the processor of an ELF program; false for what is none.
func machineOf(f *File) (elf.Machine, bool) {
	b := f.head(20)
	if len(b) < 20 || !bytes.HasPrefix(b, []byte(elf.ELFMAG)) {
		return 0, false
	}
	if b[elf.EI_DATA] == byte(elf.ELFDATA2MSB) {
		return elf.Machine(uint16(b[18])<<8 | uint16(b[19])), true
	}
	return elf.Machine(uint16(b[19])<<8 | uint16(b[18])), true
}

// kernelArch returns the processor of a kernel by its magic number (Documentation/arch/x86/boot.rst and
// Documentation/arch/arm64/booting.rst); empty for another file.
func kernelArch(f *File) string {
	b := f.head(0x206)
	switch {
	case len(b) >= 0x206 && string(b[0x202:0x206]) == "HdrS":
		return "amd64"
	case len(b) >= 60 && string(b[56:60]) == "ARM\x64":
		return "arm64"
	}
	return ""
}

// head returns the first bytes of a regular file, as many as it has; none of one that cannot be read.
func (f *File) head(n int64) []byte {
	if f == nil || f.Open == nil {
		return nil
	}
	r, err := f.Open()
	if err != nil {
		return nil
	}
	defer r.Close()
	b, _ := io.ReadAll(io.LimitReader(r, min(n, f.Size)))
	return b
}

// Lacks returns what nodes need and the image does not have, with the remedy: what does not keep every
// image from being built, since some nodes do without it.
func (t *Tree) Lacks(arch string, kernel *File) (all []Lack) {
	lack := func(what, remedy string) { all = append(all, Lack{what, remedy}) }
	if _, ok := machineOf(t.systemd()); !ok {
		lack("systemd is not a program for Linux", "unpack the root file system as a whole: the file seems to be cut off")
	}
	if kernelArch(kernel) == "" && arch == "amd64" {
		lack("the kernel has no boot header of x86", "install the kernel of the distribution again: the file seems to be cut off")
	}
	if id, _ := t.Distribution(); id == "" || !t.goodRelease() {
		lack("etc/os-release is missing or broken", "install the distribution's package of it, such as base-files: firmware packages are named by it")
	}
	if !t.hasNetwork() {
		lack("no network service is enabled: nodes hang after switch-root", "systemctl enable systemd-networkd in the image")
	}
	return append(all, t.lacksKubernetes()...)
}

// goodRelease reports whether each line of os-release is a variable, a comment or empty.
func (t *Tree) goodRelease() bool {
	n := t.Lookup("etc/os-release")
	if n == nil {
		n = t.Lookup("usr/lib/os-release")
	}
	b := n.fileHead(64 << 10)
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") && !strings.Contains(line, "=") {
			return false
		}
	}
	return len(b) > 0
}

func (n *Node) fileHead(size int64) []byte {
	if n == nil {
		return nil
	}
	return n.File.head(size)
}

// hasNetwork reports whether a service that configures network cards is enabled.
func (t *Tree) hasNetwork() bool {
	return slices.ContainsFunc([]string{"systemd-networkd", "NetworkManager", "networking", "wicked", "wickedd", "dhcpcd", "connman", "network"}, func(name string) bool {
		return t.enabled(name + ".service")
	})
}

// enabled reports whether a unit of systemd exists, is not masked, and is wanted by a target.
func (t *Tree) enabled(unit string) bool {
	if own, err := t.dir(split("etc/systemd/system"), false, followAll); err == nil {
		if n := own.Children[unit]; n != nil && n.File.Kind == tar.TypeSymlink && n.File.Target == "/dev/null" {
			return false
		}
	}
	for _, dir := range []string{"etc/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"} {
		n := t.Lookup(dir)
		if n == nil {
			continue
		}
		for name := range n.Children {
			if ext := path.Ext(name); ext != ".wants" && ext != ".requires" {
				continue
			}
			if t.Lookup(path.Join(dir, name, unit)) != nil {
				return true
			}
		}
	}
	return false
}

// lacksKubernetes returns what a pool with a cluster needs and the image does not have.
func (t *Tree) lacksKubernetes() (all []Lack) {
	var missing []string
	for _, name := range []string{"kubelet", "kubeadm", "containerd", "runc"} {
		if !t.hasProgram(name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 4 {
		return []Lack{{"it has no kubelet and no containerd: its nodes cannot join a cluster", "install containerd, runc, kubelet and kubeadm, or name the image in pools without a cluster alone"}}
	}
	if len(missing) > 0 {
		all = append(all, Lack{"programs that a node of a cluster needs are missing: " + strings.Join(missing, ", "), "install them in the image"})
	}
	for _, unit := range []string{"containerd.service", "kubelet.service"} {
		if name := strings.TrimSuffix(unit, ".service"); !slices.Contains(missing, name) && !t.enabled(unit) {
			all = append(all, Lack{unit + " is not enabled", "systemctl enable " + name + " in the image"})
		}
	}
	if !slices.Contains(missing, "containerd") && !t.enabled("var-lib-containerd.mount") && !bytes.Contains(t.Lookup("etc/fstab").fileHead(64<<10), []byte("/var/lib/containerd")) {
		all = append(all, Lack{"/var/lib/containerd is not on a file system of its own: containerd cannot stack its overlays on that of the root", "enable a var-lib-containerd.mount with a tmpfs, as Dockerfile.image does, or mount a disk of the node there"})
	}
	return all
}

// hasProgram reports whether a program is in one of the usual directories.
func (t *Tree) hasProgram(name string) bool {
	return slices.ContainsFunc([]string{"usr/bin", "usr/sbin", "usr/local/bin", "usr/local/sbin", "bin", "sbin", "opt/bin"}, func(dir string) bool {
		n := t.Lookup(dir + "/" + name)
		return n != nil && n.File.Kind == tar.TypeReg && n.File.Size > 0
	})
}
