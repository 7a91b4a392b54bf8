package rootfs

import (
	"archive/tar"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kernel returns the kernel of the image and its version: boot/vmlinuz-VERSION, or
// usr/lib/modules/VERSION/vmlinuz on distributions that keep it there. Without a
// version there must be exactly one kernel.
func (t *Tree) Kernel(version string) (string, *File, error) {
	found := map[string]*File{}
	if modules := t.Lookup("usr/lib/modules"); modules != nil {
		for v := range modules.Children {
			if n := t.Lookup("usr/lib/modules/" + v + "/vmlinuz"); n != nil && n.Kind == tar.TypeReg {
				found[v] = n.File
			}
		}
	}
	if boot := t.Lookup("boot"); boot != nil {
		for name, n := range boot.Children {
			if v, ok := strings.CutPrefix(name, "vmlinuz-"); ok && v != "" && n.Kind == tar.TypeReg {
				found[v] = n.File
			}
		}
	}
	versions := slices.Sorted(maps.Keys(found))
	switch {
	case version != "" && found[version] != nil:
		return version, found[version], nil
	case len(versions) == 0:
		return "", nil, errors.New("the image has no kernel (boot/vmlinuz-VERSION): install one in it, such as Debian's linux-image-amd64")
	case version != "":
		return "", nil, fmt.Errorf("the image has no kernel %q, only %s", version, strings.Join(versions, ", "))
	case len(versions) > 1:
		return "", nil, fmt.Errorf("the image has several kernels; choose one with --kernel-version: %s", strings.Join(versions, ", "))
	}
	return versions[0], found[versions[0]], nil
}

// ModulesDir returns the directory of the modules of a kernel, or nil.
func (t *Tree) ModulesDir(version string) *Node {
	for _, dir := range []string{"usr/lib/modules/", "lib/modules/"} {
		if n := t.Lookup(dir + version); n != nil && n.isDir() {
			return n
		}
	}
	return nil
}

// OtherModules returns the directories of modules for other kernels. Each is some
// 100 MB that no node uses, most often left from the kernel of the base image.
func (t *Tree) OtherModules(version string) []string {
	dir := t.Lookup("usr/lib/modules")
	if dir == nil {
		return nil
	}
	var others []string
	for _, name := range dir.names() {
		if name != version && dir.Children[name].isDir() {
			others = append(others, "usr/lib/modules/"+name)
		}
	}
	return others
}
