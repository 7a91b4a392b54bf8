package rootfs_test

import (
	"strings"
	"testing"

	"drover/imagebuild/rootfs"
)

func TestExcludes(t *testing.T) {
	tests := []struct {
		pattern, name string
		dir           bool
		want          bool
	}{
		{"etc/passwd", "etc/passwd", false, true},
		{"/etc/passwd", "etc/passwd", false, true},
		{"./etc//passwd/", "etc/passwd", false, true},
		{"etc/passwd", "etc/passwd-", false, false},
		{"etc/*", "etc", true, false},
		{"etc/*", "etc/a", true, true},
		{"etc/*", "etc/a/b", false, false}, // etc/a is removed already
		{"etc/ssh_host_*", "etc/ssh_host_rsa_key", false, true},
		{"*", "etc", true, true},
		{"**/*.bak", "a.bak", false, true},
		{"**/*.bak", "a/b/c.bak", false, true},
		{"**/*.bak", "a/b/c.bak.x", false, false},
		{"a/**/z", "a/z", false, true},
		{"a/**/z", "a/b/c/z", false, true},
		{"a/**/z", "b/z", false, false},
		{"var/log/**", "var/log/apt/term.log", false, true},
		{"var/log/**", "var/log/apt", true, false},
		{"var/log/**", "var/log", true, false},
		{"usr/[ab]?", "usr/ax", false, true},
	}
	for _, test := range tests {
		got, err := rootfs.Excluded([]string{test.pattern}, test.name, test.dir)
		if err != nil || got != test.want {
			t.Errorf("pattern %q, name %q: got %v, %v, want %v", test.pattern, test.name, got, err, test.want)
		}
	}
	for _, pattern := range []string{"", "/", ".", "../x", "a/../b", "a[", `a\`} {
		if _, err := rootfs.Excluded([]string{pattern}, "a", false); err == nil || !strings.Contains(err.Error(), "exclude pattern") {
			t.Errorf("pattern %q: got error %v, want one about the pattern", pattern, err)
		}
	}
}

func TestDefaultExcludes(t *testing.T) {
	for name, want := range map[string]bool{
		"etc/ssh/ssh_host_ed25519_key": true, "etc/ssh/sshd_config": false,
		"var/lib/dbus/machine-id": true, "etc/machine-id": false,
		"var/log/dpkg.log": true, "var/cache/ldconfig/aux-cache": true, "var/lib/apt/lists/x": true, "var/cache/apt/pkgcache.bin": true,
		"boot/vmlinuz-6.1": true, "vmlinuz": true, "initrd.img.old": true, ".dockerenv": true,
		"usr/lib/modules/6.1/config": false, "dev/console": false, "home/user": false, "root/.ssh/authorized_keys": false, "etc/passwd-": true,
	} {
		if got, err := rootfs.Excluded(rootfs.DefaultExcludes(false), name, false); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, want)
		}
	}
}

func FuzzExclude(f *testing.F) {
	f.Add("var/log/**", "var/log/a")
	f.Add("**/a/**/b[c-d]", "x/a/y/bc")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 40 {
			return // many "**" in one pattern take exponential time; patterns come from operators
		}
		if got, err := rootfs.Excluded([]string{pattern}, name, false); err != nil && got {
			t.Errorf("pattern %q is wrong (%v) and matches %q", pattern, err, name)
		}
	})
}
