package rootfs

import (
	"fmt"
	"path"
	"slices"
)

// DefaultExcludes returns the patterns of the files that no image contains. They belong
// to one machine or to the build: keys and identities that all nodes would share, logs,
// caches, the contents of mount points, and, unless keepBoot, the kernel, which is
// served beside the image.
//
// In a pattern * and ? match within one element of a path and ** any number of
// elements. A match is removed together with everything below it. A pattern that ends
// in /** keeps directories: services expect their log directory with the owner that
// their package gave it.
func DefaultExcludes(keepBoot bool) []string {
	list := []string{
		// Identities.
		"etc/ssh/ssh_host_*",
		"var/lib/dbus/machine-id",
		"var/lib/systemd/random-seed",
		"var/lib/systemd/credential.secret",
		"etc/udev/rules.d/70-persistent-*",
		"var/lib/dhcp/*.leases",
		"etc/nvme/hostid",
		"etc/nvme/hostnqn",
		"root/.bash_history",

		// Processor microcode, which is in the initrd: later it would only take RAM.
		"usr/lib/firmware/intel-ucode",
		"usr/lib/firmware/amd-ucode",
		"lib/firmware/intel-ucode",
		"lib/firmware/amd-ucode",

		// Remains of container engines and builders.
		".dockerenv",
		"run/*",
		"dev/shm/*",
		"proc/*",
		"sys/*",
		"tmp/*",
		"var/tmp/*",
		"root/.cache",
		"usr/sbin/policy-rc.d",

		// Logs and caches. Several differ between two builds of one Dockerfile.
		"var/log/**",
		"var/log/journal",
		"var/lib/apt/lists/*",
		"var/cache/apt/*",
		"var/cache/ldconfig/aux-cache",
		"var/cache/debconf/*-old",
		"var/lib/dpkg/*-old",
		"etc/*-",
	}
	if keepBoot {
		return list
	}
	return append(list, "boot/*", "initrd.img*", "vmlinuz*")
}

// excludes are parsed patterns.
type excludes []excludePattern

type excludePattern struct {
	elems    []string
	keepDirs bool
}

// ParseExcludes parses patterns. A pattern that is empty or cannot match is an error:
// a typo must not put a key into an image.
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

// match reports whether the file called name is excluded, given that none of its
// parents is.
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

// Prune removes the excluded files from the tree.
func (t *Tree) Prune(x excludes) { t.Root.prune("", x) }

func (n *Node) prune(prefix string, x excludes) {
	for base, child := range n.Children {
		if x.match(prefix+base, child.isDir()) {
			delete(n.Children, base)
			continue
		}
		child.prune(prefix+base+"/", x)
	}
}
