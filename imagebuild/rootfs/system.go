package rootfs

import (
	"archive/tar"
	"fmt"
	"strings"
)

// systemdPaths are the places of systemd, as drover-init looks for it.
var systemdPaths = []string{"usr/lib/systemd/systemd", "lib/systemd/systemd"}

// CheckSystem returns an error unless the image has systemd. Everything that a node
// gets, from its network to its mounts and the kubelet, are files for systemd.
func (t *Tree) CheckSystem() error {
	if len(t.Root.Children) == 0 {
		return fmt.Errorf("the image is empty")
	}
	for _, path := range systemdPaths {
		if n := t.Lookup(path); n != nil && n.File.Kind == tar.TypeReg && n.File.Size > 0 {
			return nil
		}
	}
	other := ""
	for _, init := range []struct{ path, name string }{
		{"sbin/openrc", "OpenRC"}, {"sbin/openrc-init", "OpenRC"}, {"etc/runit", "runit"}, {"etc/s6", "s6"},
		{"bin/busybox", "BusyBox"}, {"etc/inittab", "SysV init"}, {"usr/bin/dinit", "dinit"},
	} {
		if t.Lookup(init.path) != nil {
			other = fmt.Sprintf(" (its init system seems to be %s)", init.name)
			break
		}
	}
	return fmt.Errorf("the image has no systemd (%s)%s: a node gets its network, mounts and kubelet as files for systemd; "+
		"install systemd in the image", systemdPaths[0], other)
}

// Distribution is the ID and the ID_LIKE of os-release(5), such as "debian" and
// "rhel centos fedora"; both are empty when the image does not say.
func (t *Tree) Distribution() (id, like string) {
	for _, path := range []string{"etc/os-release", "usr/lib/os-release"} {
		n := t.Lookup(path)
		if n == nil || n.File.Kind != tar.TypeReg || n.File.Size > 64<<10 {
			continue
		}
		b, err := n.File.Content()
		if err != nil {
			continue
		}
		values := map[string]string{}
		for line := range strings.Lines(string(b)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			values[key] = strings.Trim(value, `"'`)
		}
		return values["ID"], values["ID_LIKE"]
	}
	return "", ""
}

// Lost returns the files with attributes that squashfs cannot store, by the name of the
// attribute, such as system.posix_acl_access.
func (t *Tree) Lost() map[string][]string {
	lost := map[string][]string{}
	seen := map[*File]bool{}
	for name, n := range t.all() {
		if seen[n.File] {
			continue
		}
		seen[n.File] = true
		for _, attribute := range n.File.lost {
			lost[attribute] = append(lost[attribute], name)
		}
	}
	return lost
}
