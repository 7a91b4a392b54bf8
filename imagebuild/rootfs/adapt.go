package rootfs

import (
	"archive/tar"
	"strings"
	"time"
)

const hostsFile = `127.0.0.1	localhost
::1	localhost ip6-localhost ip6-loopback
ff02::1	ip6-allnodes
ff02::2	ip6-allrouters
`

// Adapt turns the root of a container into the root of a machine. No file is younger
// than epoch afterwards, unless epoch is zero. Call KeepKernelConfig and Prune before.
func (t *Tree) Adapt(epoch time.Time) {
	mtime := int64(0)
	if !epoch.IsZero() {
		mtime = clampTime(epoch.Unix())
		for _, n := range t.all() {
			n.File.Mtime = min(n.File.Mtime, mtime)
		}
	}
	t.Root.File.Mtime = mtime
	for _, name := range []string{"dev", "proc", "run", "sys", "tmp"} {
		if t.Root.Children[name] == nil {
			dir := implicitDir()
			dir.File.Mtime = mtime
			if name == "tmp" {
				dir.File.Mode = 0o1777
			}
			t.Root.Children[name] = dir
		}
	}
	etc := t.Root.Children["etc"]
	if etc == nil || !etc.isDir() {
		return
	}
	// When the file is empty, systemd makes a new machine-id at every boot. When it is
	// missing, systemd assumes the first boot ever and enables units by preset.
	etc.Children["machine-id"] = &Node{File: newFile(nil, 0o444, mtime)}

	if h := etc.Children["hosts"]; h == nil || h.File.Kind == tar.TypeReg && blank(h.File) {
		etc.Children["hosts"] = &Node{File: newFile([]byte(hostsFile), 0o644, mtime)}
	}
	// The container engine mounts a regular file here during the build. It names the
	// resolver of the build host.
	resolv := etc.Children["resolv.conf"]
	if t.hasResolved() && (resolv == nil || resolv.File.Kind == tar.TypeReg) {
		etc.Children["resolv.conf"] = &Node{File: &File{Kind: tar.TypeSymlink, Mode: 0o777, Mtime: mtime,
			Target: "../run/systemd/resolve/stub-resolv.conf"}}
	}
}

// hasResolved reports whether the image has systemd-resolved.
func (t *Tree) hasResolved() bool {
	return t.Lookup("usr/lib/systemd/systemd-resolved") != nil || t.Lookup("lib/systemd/systemd-resolved") != nil
}

// blank reports whether a file contains nothing but white space.
func blank(f *File) bool {
	if f.Size > 4<<10 {
		return false
	}
	b, err := f.Content()
	return err == nil && strings.TrimSpace(string(b)) == ""
}

// KeepKernelConfig moves boot/config-VERSION to usr/lib/modules/VERSION/config.
// kubeadm's preflight check reads the kernel's configuration there. On an image
// without /boot it fails otherwise, with "modprobe configs not found".
func (t *Tree) KeepKernelConfig(version string) {
	config := t.Lookup("boot/config-" + version)
	modules := t.ModulesDir(version)
	if config == nil || config.File.Kind != tar.TypeReg || modules == nil {
		return
	}
	if modules.Children["config"] == nil {
		modules.Children["config"] = &Node{File: config.File}
	}
}
