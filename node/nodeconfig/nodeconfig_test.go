package nodeconfig

import (
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
)

var testMAC = pools.MAC{0x52, 0x54, 0, 0x77, 0, 1}

const testMachineID = "1dd16ac3b7994dbd832d36bb03e46e1d"

func testIdentity(change func(*pools.NodeConfig)) Identity {
	id := Identity{
		NodeConfig: pools.NodeConfig{Hostname: "cart01", Domain: "example.org", Pool: "compute", MachineID: testMachineID},
		MAC:        testMAC,
		Address:    netip.MustParseAddr("10.77.0.11"),
	}
	if change != nil {
		change(&id.NodeConfig)
	}
	return id
}

// applyTo applies a configuration to a root with these files of an image.
func applyTo(t *testing.T, image map[string]string, change func(*pools.NodeConfig)) (root string, warned string, err error) {
	t.Helper()
	root = fixture.Tree(t, image)
	var said fixture.Log
	a := &Applier{Root: root, Warn: said.Printf}
	err = a.Apply(testIdentity(change))
	return root, said.String(), err
}

// wantFiles compares files; "->TARGET" is a link.
func wantFiles(t *testing.T, root string, want map[string]string) {
	t.Helper()
	for path, content := range want {
		path := filepath.Join(root, path)
		if target, ok := strings.CutPrefix(content, "->"); ok {
			if got, err := os.Readlink(path); err != nil || got != target {
				t.Errorf("%s: got a link to %q (%v), want %q", path, got, err, target)
			}
			continue
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("%s: got %q (%v), want %q", path, got, err, content)
		}
	}
}

func TestApply(t *testing.T) {
	root, warned, err := applyTo(t, map[string]string{
		"/usr/share/zoneinfo/Europe/Prague": "TZif2",
		"/etc/localtime":                    "->/usr/share/zoneinfo/Etc/UTC",
		"/etc/hostname":                     "buildhost\n",
		"/root/.ssh/authorized_keys":        "the image's\n",
	}, func(c *pools.NodeConfig) {
		c.Timezone = "Europe/Prague"
		c.SSHAuthorizedKeys = []string{"ssh-ed25519 AAAA a", "ssh-ed25519 BBBB b"}
		c.Modules = []string{"br_netfilter", "overlay"}
		c.Sysctls = map[string]string{"vm.swappiness": "0", "net.ipv4.ip_forward": "1"}
		c.Files = map[string]pools.File{
			"/etc/motd":            {Content: "hello\n"},
			"/opt/bin/deep/run.sh": {Content: "#!/bin/sh\n", Mode: "0755"},
			"/usr/local/bin/su":    {Content: "x", Mode: "4711"},
		}
	})
	if err != nil || warned != "" {
		t.Fatalf("got error %v and warnings %q", err, warned)
	}
	wantFiles(t, root, map[string]string{
		"/etc/hostname":                   "cart01\n",
		"/etc/hosts":                      "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n10.77.0.11 cart01.example.org cart01\n",
		"/etc/localtime":                  "->../usr/share/zoneinfo/Europe/Prague",
		"/root/.ssh/authorized_keys":      "ssh-ed25519 AAAA a\nssh-ed25519 BBBB b\n",
		"/etc/modules-load.d/drover.conf": "br_netfilter\noverlay\n",
		"/etc/sysctl.d/99-drover.conf":    "net.ipv4.ip_forward = 1\nvm.swappiness = 0\n",
		"/etc/motd":                       "hello\n",
		"/opt/bin/deep/run.sh":            "#!/bin/sh\n",
		"/etc/machine-id":                 testMachineID + "\n",
		"/etc/systemd/system/multi-user.target.wants/drover-agent.service": "->/etc/systemd/system/drover-agent.service",
	})
	for path, mode := range map[string]os.FileMode{
		"/etc/hostname":              0o644,
		"/etc/motd":                  0o644,
		"/etc/machine-id":            0o444,
		"/root/.ssh":                 0o700 | os.ModeDir,
		"/root/.ssh/authorized_keys": 0o600,
		"/opt/bin/deep":              0o755 | os.ModeDir,
		"/opt/bin/deep/run.sh":       0o755,
		"/usr/local/bin/su":          0o711 | os.ModeSetuid,
	} {
		fixture.WantMode(t, filepath.Join(root, path), mode)
	}
	fixture.WantText(t, "network", fixture.ReadFile(t, filepath.Join(root, pools.BootNetwork)),
		"MACAddress=52:54:00:77:00:01\n", "Kind=!*\n", "DHCP=yes\n", "IPv6AcceptRA=yes\n", "KeepConfiguration=dhcp\n",
		"ClientIdentifier=mac\n", "DUIDType=link-layer\n")
	fixture.WantText(t, "networkd", fixture.ReadFile(t, filepath.Join(root, "/etc/systemd/networkd.conf.d/10-drover.conf")), "ManageForeignRoutes=no\n")
	fixture.WantText(t, "agent", fixture.ReadFile(t, filepath.Join(root, "/etc/systemd/system/drover-agent.service")),
		"ExecStart=/run/drover/drover-init agent\n", "After=network-online.target containerd.service\n", "TimeoutStartSec=infinity\n")
	wantNoTempFiles(t, root)
}

func wantNoTempFiles(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(d.Name(), ".drover-") {
			t.Errorf("%s was left behind", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestApplyOperatorWins(t *testing.T) {
	const path = pools.BootNetwork
	root, _, err := applyTo(t, nil, func(c *pools.NodeConfig) {
		c.Files = map[string]pools.File{
			path:               {Content: "mine"},
			"/etc/hosts":       {Content: "my hosts"},
			"/etc/resolv.conf": {Content: "nameserver 10.0.0.1"},
		}
		c.Units = map[string]pools.Unit{"drover-agent.service": {Content: "[Service]"}}
	})
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, root, map[string]string{
		path:         "mine",
		"/etc/hosts": "my hosts",
		"/etc/systemd/system/drover-agent.service": "[Service]",
	})
}

func TestApplyReplacesLinks(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(outside, []byte("safe"), 0o644); err != nil {
		t.Fatal(err)
	}
	root, _, err := applyTo(t, map[string]string{"/etc/resolv.conf": "->" + outside}, func(c *pools.NodeConfig) {
		c.Files = map[string]pools.File{"/etc/resolv.conf": {Content: "nameserver 10.0.0.1\n"}}
	})
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, root, map[string]string{"/etc/resolv.conf": "nameserver 10.0.0.1\n"})
	if got := fixture.ReadFile(t, outside); got != "safe" {
		t.Errorf("the link's target: got %q, want it untouched", got)
	}
}

func TestApplyLeavesAlone(t *testing.T) {
	root, _, err := applyTo(t, map[string]string{
		"/root/.ssh/authorized_keys": "the image's\n",
		"/etc/localtime":             "->../usr/share/zoneinfo/Etc/UTC",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, root, map[string]string{
		"/root/.ssh/authorized_keys": "the image's\n",
		"/etc/localtime":             "->../usr/share/zoneinfo/Etc/UTC",
	})
	for _, path := range []string{"/etc/modules-load.d/drover.conf", "/etc/sysctl.d/99-drover.conf"} {
		if _, err := os.Stat(filepath.Join(root, path)); !os.IsNotExist(err) {
			t.Errorf("%s: got %v, want no such file", path, err)
		}
	}
}

// TestSourceCheck (H4): the kernel of a node drops what pods send from foreign addresses,
// before the sysctls of tags, and after those of systemd.
func TestSourceCheck(t *testing.T) {
	root, _, err := applyTo(t, nil, func(c *pools.NodeConfig) {
		c.Sysctls = map[string]string{"net.ipv4.conf.all.rp_filter": "2"}
	})
	if err != nil {
		t.Fatal(err)
	}
	fixture.WantText(t, "drover's", fixture.ReadFile(t, filepath.Join(root, "/etc/sysctl.d/60-drover.conf")),
		"\nnet.ipv4.conf.all.rp_filter = 1\n", "\nnet.ipv4.conf.default.rp_filter = 1\n", "\nnet.ipv4.conf.*.rp_filter = 1\n")
	wantFiles(t, root, map[string]string{"/etc/sysctl.d/99-drover.conf": "net.ipv4.conf.all.rp_filter = 2\n"})
}

func TestMachineID(t *testing.T) {
	write := func(c pools.NodeConfig, mac pools.MAC) (string, error) {
		root := t.TempDir()
		if err := (&Applier{Root: root}).machineID(Identity{NodeConfig: c, MAC: mac}); err != nil {
			return "", err
		}
		return fixture.ReadFile(t, filepath.Join(root, "/etc/machine-id")), nil
	}
	t.Run("the node's, whichever card booted", func(t *testing.T) {
		for i := range byte(2) {
			if got, err := write(pools.NodeConfig{MachineID: testMachineID}, pools.MAC{2, 0, 0, 0, 0, i}); err != nil || got != testMachineID+"\n" {
				t.Errorf("got %q, %v", got, err)
			}
		}
	})
	t.Run("not one", func(t *testing.T) {
		for _, id := range []string{"", "x", "1dd16ac3b7994dbd832d36bb03e46e1", "../../../../../../../../../etc/xy"} {
			if got, err := write(pools.NodeConfig{MachineID: id}, testMAC); err == nil {
				t.Errorf("%q: wrote %q", id, got)
			}
		}
	})
}

func TestApplyErrors(t *testing.T) {
	file := func(path, mode string) func(*pools.NodeConfig) {
		return func(c *pools.NodeConfig) { c.Files = map[string]pools.File{path: {Content: "x", Mode: mode}} }
	}
	mount := func(m pools.Mount) func(*pools.NodeConfig) {
		return func(c *pools.NodeConfig) { c.Mounts = []pools.Mount{m} }
	}
	for _, tt := range []struct {
		name   string
		change func(*pools.NodeConfig)
		want   string
	}{
		{"no host name", func(c *pools.NodeConfig) { c.Hostname = "" }, `host name: "" is not a host or domain name`},
		{"host name of two lines", func(c *pools.NodeConfig) { c.Hostname = "a\nb" }, "is not a host or domain name"},
		{"host name with a hyphen first", func(c *pools.NodeConfig) { c.Hostname = "-a" }, "is not a host or domain name"},
		{"host name too long", func(c *pools.NodeConfig) { c.Hostname = strings.Repeat("a", 64) }, "is not a host or domain name"},
		{"bad domain", func(c *pools.NodeConfig) { c.Domain = "a..b" }, `"a..b" is not a host or domain name`},
		{"time zone elsewhere", func(c *pools.NodeConfig) { c.Timezone = "../../etc/passwd" }, `time zone: "../../etc/passwd" is not the name`},
		{"ssh key of two lines", func(c *pools.NodeConfig) { c.SSHAuthorizedKeys = []string{"a\nb"} }, `ssh keys: "a\nb" is more than one line`},
		{"module of two lines", func(c *pools.NodeConfig) { c.Modules = []string{"a\nb"} }, "modules: "},
		{"sysctl of two lines", func(c *pools.NodeConfig) { c.Sysctls = map[string]string{"a": "1\nb = 2"} }, "sysctls: "},
		{"sysctl with an equals sign", func(c *pools.NodeConfig) { c.Sysctls = map[string]string{"a=b": "1"} }, `"a=b" is not the name of a sysctl`},
		{"relative path", file("etc/motd", ""), `"etc/motd" is not a plain absolute path`},
		{"path with dots", file("/etc/../motd", ""), "is not a plain absolute path"},
		{"path with a slash at its end", file("/etc/motd/", ""), "is not a plain absolute path"},
		{"the root", file("/", ""), "is not a plain absolute path"},
		{"path with a zero", file("/etc/a\x00b", ""), "is not a plain absolute path"},
		{"mode in letters", file("/etc/motd", "rw"), `/etc/motd: mode "rw" is not octal`},
		{"mode too large", file("/etc/motd", "10000"), `mode "10000" is not octal, 0 to 7777`},
		{"a directory in the way", file("/etc/systemd", ""), "is a directory"},
		{"a file in the way", file("/etc/hostname/x", ""), "not a directory"},
		{"mount on a relative path", mount(pools.Mount{Path: "x", Type: "tmpfs"}), `mount "x": "x" is not a plain`},
		{"mount without a type", mount(pools.Mount{Path: "/x"}), "must be one word each"},
		{"mount with a second option line", mount(pools.Mount{Path: "/x", Type: "tmpfs", Options: "a\n[Unit]"}), "more than one line"},
		{"mount with blanks", mount(pools.Mount{Path: "/x", Type: "tmpfs", Options: "a b"}), "must be one word each"},
		{"unit that is none", func(c *pools.NodeConfig) { c.Units = map[string]pools.Unit{"a.txt": {}} }, `"a.txt" is not the name of a systemd unit`},
		{"unit with a path", func(c *pools.NodeConfig) { c.Units = map[string]pools.Unit{"../a.service": {}} }, "is not the name of a systemd unit"},
		{"unit that nobody has", func(c *pools.NodeConfig) { c.Units = map[string]pools.Unit{"a.service": {Enable: true}} }, `units: unit "a.service" is neither in the config nor in the image`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root, _, err := applyTo(t, nil, tt.change)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %q in it", err, tt.want)
			}
			wantNoTempFiles(t, root)
		})
	}
}

func TestApplyReportsAll(t *testing.T) {
	_, _, err := applyTo(t, nil, func(c *pools.NodeConfig) {
		c.Hostname = "-"
		c.Timezone = "/"
		c.Files = map[string]pools.File{"a": {}, "b": {}}
	})
	if err == nil {
		t.Fatal("got no error")
	}
	fixture.WantText(t, "error", err.Error(), "host name:", "time zone:", `"a" is not`, `"b" is not`)
}

func TestTimezoneUnknownToImage(t *testing.T) {
	_, warned, err := applyTo(t, nil, func(c *pools.NodeConfig) { c.Timezone = "Europe/Prague" })
	if err != nil {
		t.Fatal(err)
	}
	fixture.WantText(t, "warning", warned, `the image does not know time zone "Europe/Prague"`)
}
