package rootfs

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// DefaultExcludes are the paths that are left out of every image. They hold
// what belongs to one machine or to the build alone: keys and identities that
// all nodes would share, logs, caches, and what is a mount point on a node.
//
// In a pattern * and ? match within one element of a path and ** any number of
// elements; what matches is left out with all that is below it. Where a
// pattern ends in /**, directories stay: services expect their log directory
// with the owner that their package gave it.
func DefaultExcludes() []string {
	return []string{
		// Identities.
		"etc/ssh/ssh_host_*",
		"var/lib/dbus/machine-id",
		"var/lib/systemd/random-seed",
		"var/lib/systemd/credential.secret",
		"etc/udev/rules.d/70-persistent-*",
		"var/lib/dhcp/*.leases",
		"root/.bash_history",

		// Left-overs of container engines and builders.
		".dockerenv",
		"run/*",
		"dev/shm/*",
		"proc/*",
		"sys/*",
		"tmp/*",
		"var/tmp/*",
		"root/.cache",
		"usr/sbin/policy-rc.d",

		// Logs and caches; several differ between two builds of one Dockerfile.
		"var/log/**",
		"var/log/journal",
		"var/lib/apt/lists/*",
		"var/cache/apt/*",
		"var/cache/ldconfig/aux-cache",
		"var/cache/debconf/*-old",
		"var/lib/dpkg/*-old",
		"etc/*-",

		// The kernel is served beside the image.
		"boot/*",
		"initrd.img*",
		"vmlinuz*",
	}
}

// KeepBoot takes out the patterns that keep /boot off an image.
func KeepBoot(patterns []string) []string {
	return slices.DeleteFunc(patterns, func(p string) bool {
		return p == "boot/*" || p == "initrd.img*" || p == "vmlinuz*"
	})
}

// excludes decides what is left out.
type excludes []excludePattern

type excludePattern struct {
	elems    []string
	keepDirs bool
}

// ParseExcludes checks patterns. Those that say nothing or cannot match are
// errors: a typo must not put a key into an image.
func ParseExcludes(patterns []string) (excludes, error) {
	var list excludes
	for _, p := range patterns {
		elems := split(p)
		if len(elems) == 0 || slices.Contains(elems, "..") {
			return nil, fmt.Errorf("exclude pattern %q names nothing in the image", p)
		}
		for _, e := range elems {
			if _, err := path.Match(e, ""); err != nil {
				return nil, fmt.Errorf("exclude pattern %q: %w", p, err)
			}
		}
		list = append(list, excludePattern{elems: elems, keepDirs: elems[len(elems)-1] == "**"})
	}
	return list, nil
}

// match reports whether the file with this name is left out, given that none of
// its parents is.
func (x excludes) match(name string, dir bool) bool {
	elems := split(name)
	return slices.ContainsFunc(x, func(p excludePattern) bool {
		return (!dir || !p.keepDirs) && matchElems(p.elems, elems)
	})
}

func matchElems(pattern, elems []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			if len(pattern) == 1 {
				return len(elems) > 0
			}
			for i := range len(elems) + 1 {
				if matchElems(pattern[1:], elems[i:]) {
					return true
				}
			}
			return false
		}
		if len(elems) == 0 {
			return false
		}
		if ok, _ := path.Match(pattern[0], elems[0]); !ok {
			return false
		}
		pattern, elems = pattern[1:], elems[1:]
	}
	return len(elems) == 0
}

// Prune takes what is excluded out of the tree.
func (t *Tree) Prune(x excludes) error {
	var names []string
	err := t.walk(func(name string, n *Node) error {
		if x.match(name, n.isDir()) {
			names = append(names, name)
			return fs.SkipDir
		}
		return nil
	})
	for _, name := range names {
		t.remove(name)
	}
	return err
}

// remove deletes a name that [tree.walk] gave: it leads through no links.
func (t *Tree) remove(name string) {
	dir := t.Root
	elems := strings.Split(name, "/")
	for _, e := range elems[:len(elems)-1] {
		dir = dir.Children[e]
	}
	delete(dir.Children, elems[len(elems)-1])
}
