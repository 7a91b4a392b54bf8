package nodeconfig

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
)

const (
	passwd = "root:x:0:0:root:/root:/bin/bash\nwww-data:x:33:33::/var/www:/usr/sbin/nologin\nbroken\n"
	group  = "root:x:0:\nwww-data:x:33:\nadm:x:4:syslog\n"
	hash   = "$6$salt$0123456789abcdefghij./"
)

func TestOwner(t *testing.T) {
	a := &Applier{Root: fixture.Tree(t, map[string]string{"/etc/passwd": passwd, "/etc/group": group})}
	for in, want := range map[string]owner{
		"www-data": {33, 33}, "www-data:adm": {33, 4}, "root:www-data": {0, 33}, "33": {33, 33}, "33:4": {33, 4}, "1000": {1000, 1000}, "1000:2000": {1000, 2000}, "0:0": {0, 0},
	} {
		if got, err := a.owner(in); err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"nobody", "root:nobody", "broken", "-1", "4294967296"} {
		if got, err := a.owner(in); err == nil || !strings.Contains(err.Error(), "is not in the image's") {
			t.Errorf("%q: got %v, %v, want an error", in, got, err)
		}
	}
}

// TestFilesOfOthers: owner, mode and bytes that are no text.
func TestFilesOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED, NOT TESTED: only root gives files to other users")
	}
	root, _, err := applyTo(t, map[string]string{"/etc/passwd": passwd, "/etc/group": group}, func(c *pools.NodeConfig) {
		c.Files = map[string]pools.File{
			"/srv/bin": {Base64: "AP8KAA==", Owner: "www-data:adm", Mode: "6750"},
			"/srv/own": {Content: "x"},
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "/srv/bin")
	if got := fixture.ReadFile(t, file); got != "\x00\xff\n\x00" {
		t.Errorf("got %q", got)
	}
	fixture.WantMode(t, file, 0o750|os.ModeSetuid|os.ModeSetgid)
	s, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if st := s.Sys().(*syscall.Stat_t); st.Uid != 33 || st.Gid != 4 {
		t.Errorf("got owner %d:%d, want 33:4", st.Uid, st.Gid)
	}
}

// TestOwnersOfOthers: a file has the owner of the config, root without one, whoever owns its
// directory or the file that it replaces.
func TestOwnersOfOthers(t *testing.T) {
	fixture.Root(t)
	root := fixture.Tree(t, map[string]string{"/etc/passwd": passwd, "/etc/group": group, "/srv/app/old": "x", "/srv/app/root": "x", "/srv/own": "x"})
	for _, path := range []string{"/srv/app", "/srv/app/old", "/srv/app/root", "/srv/own"} {
		if err := os.Chown(filepath.Join(root, path), 33, 4); err != nil {
			t.Fatal(err)
		}
	}
	// A new file has the group of such a directory.
	if err := os.Chmod(filepath.Join(root, "/srv/app"), 0o755|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	a := &Applier{Root: root, Warn: t.Logf}
	err := a.Apply(testIdentity(func(c *pools.NodeConfig) {
		c.Files = map[string]pools.File{
			"/srv/app/secret": {Content: "x", Mode: "0600"}, "/srv/app/old": {Content: "y"}, "/srv/app/root": {Content: "y", Owner: "root"},
			"/srv/app/theirs": {Content: "x", Owner: "1000:2000"}, "/srv/own": {Content: "y", Owner: "root:adm"},
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][2]uint32{
		"/srv/app": {33, 4}, "/srv/app/secret": {0, 0}, "/srv/app/old": {0, 0}, "/srv/app/root": {0, 0}, "/srv/app/theirs": {1000, 2000}, "/srv/own": {0, 4},
	} {
		info, err := os.Stat(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if s := info.Sys().(*syscall.Stat_t); [2]uint32{s.Uid, s.Gid} != want {
			t.Errorf("%s: got owner %d:%d, want %v", path, s.Uid, s.Gid, want)
		}
	}
}

func TestFilesErrors(t *testing.T) {
	for want, f := range map[string]pools.File{"illegal base64": {Base64: "!"}, "not in the image's /etc/passwd": {Owner: "nobody"}} {
		_, _, err := applyTo(t, nil, func(c *pools.NodeConfig) { c.Files = map[string]pools.File{"/srv/x": f} })
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "/srv/x") {
			t.Errorf("%+v: got %v, want %q", f, err, want)
		}
	}
}

func TestRootPassword(t *testing.T) {
	for name, tt := range map[string]struct{ shadow, want string }{
		"locked":          {"root:*:19000:0:99999:7:::\nbin:*:19000:0:99999:7:::\n", "root:" + hash + ":19000:0:99999:7:::\nbin:*:19000:0:99999:7:::\n"},
		"must be changed": {"root:old:0:0:99999:7:::\n", "root:" + hash + ":1:0:99999:7:::\n"},
		"no root":         {"bin:*:19000:0:99999:7:::\n", "bin:*:19000:0:99999:7:::\nroot:" + hash + ":1:0:99999:7:::\n"},
		"none":            {"", "root:" + hash + ":1:0:99999:7:::\n"},
	} {
		t.Run(name, func(t *testing.T) {
			image := map[string]string{}
			if tt.shadow != "" {
				image["/etc/shadow"] = tt.shadow
			}
			root, _, err := applyTo(t, image, func(c *pools.NodeConfig) { c.RootPasswordHash = hash })
			if err != nil {
				t.Fatal(err)
			}
			wantFiles(t, root, map[string]string{"/etc/shadow": tt.want})
			if tt.shadow == "" {
				fixture.WantMode(t, filepath.Join(root, "/etc/shadow"), 0o600)
			}
		})
	}
	for _, bad := range []string{"secret", "$6$x:0:0\nroot2", "$6$a$b:"} {
		_, _, err := applyTo(t, nil, func(c *pools.NodeConfig) { c.RootPasswordHash = bad })
		if err == nil || strings.Contains(err.Error(), bad) {
			t.Errorf("%q: got %v, want an error without it", bad, err)
		}
	}
}

func TestMasks(t *testing.T) {
	const unit = "[Service]\nExecStart=/bin/true\n"
	root, _, err := applyTo(t, map[string]string{"/etc/systemd/system/apt-daily.timer": "[Timer]\n"}, func(c *pools.NodeConfig) {
		c.MaskUnits = []string{"apt-daily.timer", "apt-daily-upgrade.timer", "mine.service"}
		c.Units = map[string]pools.Unit{"mine.service": {Content: unit}}
	})
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, root, map[string]string{
		"/etc/systemd/system/apt-daily.timer":         "->/dev/null",
		"/etc/systemd/system/apt-daily-upgrade.timer": "->/dev/null",
		"/etc/systemd/system/mine.service":            unit,
	})
	if _, _, err := applyTo(t, nil, func(c *pools.NodeConfig) { c.MaskUnits = []string{"../x.service"} }); err == nil {
		t.Error("a name that leaves the directory: got no error")
	}
}

func TestHosts(t *testing.T) {
	root, _, err := applyTo(t, nil, func(c *pools.NodeConfig) {
		c.Hosts = map[string]pools.Strings{"api.example.org": {"10.28.0.9", "fd00:28::9"}, "admin": {"10.28.0.8"}}
	})
	if err != nil {
		t.Fatal(err)
	}
	fixture.WantText(t, "hosts", fixture.ReadFile(t, filepath.Join(root, "/etc/hosts")),
		"\n10.77.0.11 cart01.example.org cart01\n10.28.0.8 admin\n10.28.0.9 api.example.org\nfd00:28::9 api.example.org\n")
	for name, address := range map[string]string{"a b": "10.0.0.1", "a": "10.0.0.1 b", "b": "x"} {
		_, _, err := applyTo(t, nil, func(c *pools.NodeConfig) { c.Hosts = map[string]pools.Strings{name: {address}} })
		if err == nil {
			t.Errorf("%q %q: got no error", name, address)
		}
	}
}
