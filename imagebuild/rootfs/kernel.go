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
// usr/lib/modules/VERSION/vmlinuz on distributions that keep it there; arm64 has Image
// where others have vmlinuz. Without a version there must be exactly one kernel.
//
// Kernels without modules of their version do not count beside one that has them: Arch
// has its kernel a second time as boot/vmlinuz-linux. Neither do the rescue kernels of
// Fedora and RHEL, which are copies under the name of the machine-id.
func (t *Tree) Kernel(version string) (string, *File, error) {
	found := t.kernels()
	versions := slices.Sorted(maps.Keys(found))
	if version == "" && slices.ContainsFunc(versions, t.hasModules) {
		versions = slices.DeleteFunc(versions, func(v string) bool { return !t.hasModules(v) })
	}
	switch {
	case version != "" && found[version] != nil:
		versions = []string{version}
	case len(versions) == 0:
		return "", nil, errors.New("the image has no kernel (boot/vmlinuz-VERSION or usr/lib/modules/VERSION/vmlinuz): " +
			"install one in it, such as Debian's linux-image-amd64")
	case version != "":
		return "", nil, fmt.Errorf("the image has no kernel %q, only %s", version, strings.Join(versions, ", "))
	case len(versions) > 1:
		return "", nil, fmt.Errorf("the image has several kernels; choose one with --kernel-version: %s", strings.Join(versions, ", "))
	}
	kernel := found[versions[0]]
	if kernel.Size == 0 {
		return "", nil, fmt.Errorf("the kernel %s of the image is an empty file", versions[0])
	}
	return versions[0], kernel, nil
}

// kernels returns the kernels of the image by version.
func (t *Tree) kernels() map[string]*File {
	found := map[string]*File{}
	add := func(version, path string) {
		if n := t.Lookup(path); n != nil && n.File.Kind == tar.TypeReg {
			found[version] = n.File
		}
	}
	for _, file := range []string{"Image", "vmlinuz"} { // the last one counts
		for _, dir := range []string{"lib/modules", "usr/lib/modules"} {
			if modules := t.Lookup(dir); modules != nil {
				for v := range modules.Children {
					add(v, dir+"/"+v+"/"+file)
				}
			}
		}
		if boot := t.Lookup("boot"); boot != nil {
			for name := range boot.Children {
				if v, ok := strings.CutPrefix(name, file+"-"); ok && v != "" && !strings.Contains(v, "rescue-") {
					add(v, "boot/"+name)
				}
			}
		}
	}
	return found
}

// hasModules reports whether the image has modules for a kernel.
func (t *Tree) hasModules(version string) bool { return t.ModulesDir(version) != nil }

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
