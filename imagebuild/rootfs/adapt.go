package rootfs

import (
	"archive/tar"
	"io"
	"strings"
)

const hostsFile = `127.0.0.1	localhost
::1	localhost ip6-localhost ip6-loopback
ff02::1	ip6-allnodes
ff02::2	ip6-allrouters
`

// Adapt makes the tree of a container image one of a machine. Excluded files
// are already gone, boot/config-* is not: see KeepKernelConfig.
func (t *Tree) Adapt(mtime int64) {
	t.Root.Mtime = mtime
	for _, name := range []string{"dev", "proc", "run", "sys", "tmp"} {
		if t.Root.Children[name] == nil {
			dir := implicitDir()
			dir.Mtime = mtime
			if name == "tmp" {
				dir.Mode = 0o1777
			}
			t.Root.Children[name] = dir
		}
	}
	etc := t.Root.Children["etc"]
	if etc == nil || !etc.isDir() {
		return
	}
	// Empty, systemd makes a new one at every boot; missing, it takes that for
	// the first boot ever and enables units by preset.
	etc.Children["machine-id"] = &Node{File: bytesFile(nil, 0o444, mtime)}

	if h := etc.Children["hosts"]; h == nil || h.Kind == tar.TypeReg && blank(h.File) {
		etc.Children["hosts"] = &Node{File: bytesFile([]byte(hostsFile), 0o644, mtime)}
	}
	// A regular file is what the container engine bound over it during the
	// build: the resolver of the build host.
	resolv := etc.Children["resolv.conf"]
	if t.hasResolved() && (resolv == nil || resolv.Kind == tar.TypeReg) {
		etc.Children["resolv.conf"] = &Node{File: &File{Kind: tar.TypeSymlink, Mode: 0o777, Mtime: mtime,
			Target: "../run/systemd/resolve/stub-resolv.conf"}}
	}
}

func (t *Tree) hasResolved() bool {
	return t.Lookup("usr/lib/systemd/systemd-resolved") != nil || t.Lookup("lib/systemd/systemd-resolved") != nil
}

// blank reports whether a file holds nothing but white space.
func blank(f *File) bool {
	if f.Size > 4<<10 {
		return false
	}
	r, err := f.Reader()
	if err != nil {
		return false
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	return err == nil && strings.TrimSpace(string(b)) == ""
}

// KeepKernelConfig moves boot/config-VERSION to usr/lib/modules/VERSION/config:
// kubeadm's preflight check reads the kernel's configuration there, and fails
// with "modprobe configs not found" on an image without /boot.
func (t *Tree) KeepKernelConfig(version string) {
	config := t.Lookup("boot/config-" + version)
	modules := t.ModulesDir(version)
	if config == nil || config.Kind != tar.TypeReg || modules == nil {
		return
	}
	if modules.Children["config"] == nil {
		modules.Children["config"] = &Node{File: config.File}
	}
}

// Clamp brings all times down to at most sec.
func (t *Tree) Clamp(sec int64) error {
	return t.walk(func(_ string, n *Node) error {
		n.Mtime = min(n.Mtime, sec)
		return nil
	})
}
