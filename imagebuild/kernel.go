package imagebuild

import (
	"archive/tar"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// kernel finds the kernel of the image: boot/vmlinuz-VERSION, or
// usr/lib/modules/VERSION/vmlinuz of distributions that keep it there. There
// must be exactly one unless the version is given.
func (t *tree) kernel(version string) (string, *file, error) {
	found := map[string]*file{}
	if modules := t.lookup("usr/lib/modules"); modules != nil {
		for v := range modules.children {
			if n := t.lookup("usr/lib/modules/" + v + "/vmlinuz"); n != nil && n.kind == tar.TypeReg {
				found[v] = n.file
			}
		}
	}
	if boot := t.lookup("boot"); boot != nil {
		for name, n := range boot.children {
			if v, ok := strings.CutPrefix(name, "vmlinuz-"); ok && v != "" && n.kind == tar.TypeReg {
				found[v] = n.file
			}
		}
	}
	versions := make([]string, 0, len(found))
	for v := range found {
		versions = append(versions, v)
	}
	slices.Sort(versions)
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

// modulesDir returns the directory of the modules of a kernel, or nil.
func (t *tree) modulesDir(version string) *node {
	for _, dir := range []string{"usr/lib/modules/", "lib/modules/"} {
		if n := t.lookup(dir + version); n != nil && n.isDir() {
			return n
		}
	}
	return nil
}

// otherModules lists directories of modules for other kernels: dead weight of
// some 100 MB each, mostly of the kernel that a base image was made with.
func (t *tree) otherModules(version string) []string {
	dir := t.lookup("usr/lib/modules")
	if dir == nil {
		return nil
	}
	var others []string
	for _, name := range dir.names() {
		if name != version && dir.children[name].isDir() {
			others = append(others, "usr/lib/modules/"+name)
		}
	}
	return others
}
