package imagebuild

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

// adapt makes the tree of a container image one of a machine. What is excluded
// is already gone, boot/config-* is not: see keepKernelConfig.
func (t *tree) adapt(mtime int64) {
	t.root.mtime = mtime
	for _, name := range []string{"dev", "proc", "run", "sys", "tmp"} {
		if t.root.children[name] == nil {
			dir := implicitDir()
			dir.mtime = mtime
			if name == "tmp" {
				dir.mode = 0o1777
			}
			t.root.children[name] = dir
		}
	}
	etc := t.root.children["etc"]
	if etc == nil || !etc.isDir() {
		return
	}
	// Empty, systemd makes a new one at every boot; missing, it takes that for
	// the first boot ever and enables units by preset.
	etc.children["machine-id"] = &node{file: bytesFile(nil, 0o444, mtime)}

	if h := etc.children["hosts"]; h == nil || h.kind == tar.TypeReg && blank(h.file) {
		etc.children["hosts"] = &node{file: bytesFile([]byte(hostsFile), 0o644, mtime)}
	}
	// A regular file is what the container engine bound over it during the
	// build: the resolver of the build host.
	resolv := etc.children["resolv.conf"]
	if t.hasResolved() && (resolv == nil || resolv.kind == tar.TypeReg) {
		etc.children["resolv.conf"] = &node{file: &file{kind: tar.TypeSymlink, mode: 0o777, mtime: mtime,
			target: "../run/systemd/resolve/stub-resolv.conf"}}
	}
}

func (t *tree) hasResolved() bool {
	return t.lookup("usr/lib/systemd/systemd-resolved") != nil || t.lookup("lib/systemd/systemd-resolved") != nil
}

// blank tells whether a file holds nothing but white space.
func blank(f *file) bool {
	if f.size > 4<<10 {
		return false
	}
	r, err := f.reader()
	if err != nil {
		return false
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	return err == nil && strings.TrimSpace(string(b)) == ""
}

// keepKernelConfig moves boot/config-VERSION to usr/lib/modules/VERSION/config:
// kubeadm's preflight check reads the kernel's configuration there, and fails
// with "modprobe configs not found" on an image without /boot.
func (t *tree) keepKernelConfig(version string) {
	config := t.lookup("boot/config-" + version)
	modules := t.modulesDir(version)
	if config == nil || config.kind != tar.TypeReg || modules == nil {
		return
	}
	if modules.children["config"] == nil {
		modules.children["config"] = &node{file: config.file}
	}
}

// clamp brings all times down to at most sec.
func (t *tree) clamp(sec int64) error {
	return t.walk(func(_ string, n *node) error {
		n.mtime = min(n.mtime, sec)
		return nil
	})
}
