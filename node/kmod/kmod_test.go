package kmod

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"drover/e2e/fixture"
)

// testModules are the files of depmod for a small machine.
var testModules = map[string]string{
	"lib/modules/6.1.0/modules.dep": `# a comment
kernel/virtio.ko:
kernel/virtio_ring.ko: kernel/virtio.ko
kernel/virtio-pci.ko: kernel/virtio_ring.ko kernel/virtio.ko
kernel/failover.ko:
kernel/net_failover.ko: kernel/failover.ko
kernel/virtio_net.ko: kernel/net_failover.ko kernel/failover.ko kernel/virtio_ring.ko
kernel/sound.ko:
kernel/squashfs.ko.xz:
kernel/broken.ko:
kernel/needy.ko: kernel/broken.ko
kernel/circle-a.ko: kernel/circle-b.ko
kernel/circle-b.ko: kernel/circle-a.ko
kernel/btrfs.ko:
kernel/crc32c.ko:
kernel/late.ko:
/etc/evil.ko:
../../evil2.ko:
`,
	"lib/modules/6.1.0/modules.alias": `# Aliases extracted from modules themselves.
alias pci:v00001AF4d*sv*sd*bc*sc*i* virtio_pci
alias virtio:d00000001v* virtio_net
alias pci:v*d*sv*sd*bc04sc03i* sound
alias fs-squashfs squashfs
alias acpi*:PNP0501:* broken
alias of:N*T*Cvendor,x-[0-9] gone
`,
	"lib/modules/6.1.0/modules.softdep": "softdep btrfs pre: crc32c post: late\n",
	"lib/modules/6.1.0/modules.builtin": "kernel/fs/ext4/ext4.ko\n",
	"sys/bus/pci/devices/0/modalias":    "pci:v00001AF4d00001000sv00001AF4sd00000001bc02sc00i00\n",
	"sys/bus/pci/devices/1/modalias":    "pci:v00008086d00001237sv00001AF4sd00001100bc06sc00i00\n",
	"sys/bus/acpi/devices/2/modalias":   "acpi:PNP0501:\n",
	"sys/bus/acpi/devices/3/modalias":   "\n",
}

// openTestModules returns modules whose Insert records its arguments, and fails for
// "broken".
func openTestModules(t *testing.T) (m *Modules, root string, inserted *[]string) {
	t.Helper()
	root = fixture.Tree(t, testModules)
	dir, err := Dir(root, "6.1.0")
	if err != nil {
		t.Fatal(err)
	}
	m, err = Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	inserted = new([]string)
	m.Insert = func(file, args string) error {
		if filepath.Dir(file) != filepath.Join(dir, "kernel") {
			t.Errorf("insert %s: outside of %s", file, dir)
		}
		if Name(file) == "broken" {
			return errors.New("it is broken")
		}
		*inserted = append(*inserted, strings.TrimSpace(filepath.Base(file)+" "+args))
		return nil
	}
	return m, root, inserted
}

func TestLoad(t *testing.T) {
	for _, tt := range []struct {
		name string
		load []string
		want []string
		err  string
	}{
		{"with what it depends on, deepest first", []string{"virtio_net"},
			[]string{"virtio.ko", "virtio_ring.ko", "failover.ko", "net_failover.ko", "virtio_net.ko"}, ""},
		{"a hyphen is an underscore", []string{"virtio-pci"}, []string{"virtio.ko", "virtio_ring.ko", "virtio-pci.ko"}, ""},
		{"once only", []string{"virtio_ring", "virtio", "virtio_ring"}, []string{"virtio.ko", "virtio_ring.ko"}, ""},
		{"by alias", []string{"fs-squashfs"}, []string{"squashfs.ko.xz"}, ""},
		{"part of the kernel", []string{"ext4"}, nil, ""},
		{"unknown", []string{"nothing"}, nil, `"nothing": no such module`},
		{"absolute path in modules.dep", []string{"evil"}, nil, "no such module"},
		{"path out of the directory in modules.dep", []string{"evil2"}, nil, "no such module"},
		{"broken", []string{"broken"}, nil, `module "broken": it is broken`},
		{"in need of a broken one", []string{"needy"}, nil, `module "needy" needs module "broken": it is broken`},
		{"the second time with the same error", []string{"needy", "needy"}, nil, `module "needy" needs module "broken"`},
		{"in a circle", []string{"circle-a"}, []string{"circle-b.ko", "circle-a.ko"}, ""},
		{"with soft dependencies around it", []string{"btrfs"}, []string{"crc32c.ko", "btrfs.ko", "late.ko"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, _, inserted := openTestModules(t)
			var err error
			for _, name := range tt.load {
				err = m.Load(name)
			}
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("got error %v, want %q", err, tt.err)
			}
			if !slices.Equal(*inserted, tt.want) {
				t.Errorf("inserted: got %q, want %q", *inserted, tt.want)
			}
		})
	}
}

func TestLoadWithOptions(t *testing.T) {
	m, _, inserted := openTestModules(t)
	m.Args.Option("virtio.debug", "1")
	m.Args.Option("virtio.name", "x")
	if err := m.Load("virtio_ring"); err != nil {
		t.Fatal(err)
	}
	if want := []string{"virtio.ko debug=1 name=x", "virtio_ring.ko"}; !slices.Equal(*inserted, want) {
		t.Errorf("got %q, want %q", *inserted, want)
	}
}

func TestColdplug(t *testing.T) {
	m, root, inserted := openTestModules(t)
	sys := filepath.Join(root, "sys")
	insert := m.Insert
	m.Insert = func(file, args string) error {
		if Name(file) == "virtio_pci" { // the bus driver finds a device
			dev := filepath.Join(sys, "bus/virtio/devices/virtio0")
			if err := os.MkdirAll(dev, 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dev, "modalias"), []byte("virtio:d00000001v00001AF4\n"), 0o644); err != nil {
				return err
			}
		}
		return insert(file, args)
	}
	loaded, errs := m.Coldplug(sys)
	if want := []string{"virtio", "virtio_ring", "virtio_pci", "failover", "net_failover", "virtio_net"}; !slices.Equal(loaded, want) {
		t.Errorf("loaded: got %q, want %q", loaded, want)
	}
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), `module "broken"`) {
		t.Errorf("errors: got %v, want one of the broken module", errs)
	}
	before := len(*inserted)
	if loaded, errs := m.Coldplug(sys); len(loaded) != 0 || len(errs) != 0 || len(*inserted) != before {
		t.Errorf("a second time: got %q and %v, want nothing", loaded, errs)
	}
}

func TestColdplugBlacklist(t *testing.T) {
	m, root, inserted := openTestModules(t)
	m.Args.Block("virtio-pci,broken")
	if loaded, errs := m.Coldplug(filepath.Join(root, "sys")); len(loaded) != 0 || len(errs) != 0 {
		t.Errorf("got %q and %v, want nothing", loaded, errs)
	}
	if err := m.Load("virtio_pci"); err != nil || len(*inserted) == 0 {
		t.Errorf("by name: got %v and %q, want it loaded", err, *inserted)
	}
}

func TestColdplugWithoutModules(t *testing.T) {
	m := &Modules{Insert: func(string, string) error { return errors.New("called") }}
	if loaded, errs := m.Coldplug(filepath.Join(fixture.Tree(t, testModules), "sys")); len(loaded) != 0 || len(errs) != 0 {
		t.Errorf("got %q and %v, want nothing", loaded, errs)
	}
	if err := m.Load("loop"); !errors.Is(err, ErrNotFound) {
		t.Errorf("load: got %v, want %v", err, ErrNotFound)
	}
}

func TestModuleDir(t *testing.T) {
	root := fixture.Tree(t, map[string]string{"usr/lib/modules/6.1.0/modules.dep": ""})
	if got, err := Dir(root, "6.1.0"); err != nil || got != filepath.Join(root, "usr/lib/modules/6.1.0") {
		t.Errorf("merged /usr: got %q, %v", got, err)
	}
	_, err := Dir(root, "6.12.1")
	if want := "the initrd has modules for kernel 6.1.0, but this is kernel 6.12.1"; err == nil || err.Error() != want {
		t.Errorf("other kernel: got %v, want %q", err, want)
	}
	_, err = Dir(t.TempDir(), "6.1.0")
	if want := "the initrd has no modules for kernel 6.1.0"; err == nil || err.Error() != want {
		t.Errorf("no modules: got %v, want %q", err, want)
	}
}

func TestOpenModulesWithoutDep(t *testing.T) {
	if _, err := Open(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that modules.dep does not exist", err)
	}
}

func TestMatchAlias(t *testing.T) {
	for _, tt := range []struct {
		pattern, s string
		want       bool
	}{
		{"pci:v00008086d00001237sv*", "pci:v00008086d00001237sv00001AF4", true},
		{"pci:v00008086d00001237sv*", "pci:v00008086d00001238sv00001AF4", false},
		{"a*b*c", "a-b-b-c", true},
		{"a*b*c", "a-b-b-", false},
		{"*", "", true},
		{"", "", true},
		{"", "a", false},
		{"a?c", "abc", true},
		{"a?c", "ac", false},
		{"of:N*T*Cx", "of:Na/bT/Cx", true},
		{"usb:v0B[0-9A-D]*", "usb:v0BD1", true},
		{"usb:v0B[0-9A-D]*", "usb:v0BE1", false},
		{"[!0]x", "1x", true},
		{"[!0]x", "0x", false},
		{"[]]x", "]x", true},
		{"[a", "[a", false},
		{`\*x`, "*x", true},
		{`\*x`, "ax", false},
	} {
		if got := matchAlias(tt.pattern, tt.s); got != tt.want {
			t.Errorf("matchAlias(%q, %q): got %v, want %v", tt.pattern, tt.s, got, tt.want)
		}
	}
}

// FuzzModules reads files as depmod might write them, and loads modules by them.
func FuzzModules(f *testing.F) {
	f.Add(testModules["lib/modules/6.1.0/modules.dep"], testModules["lib/modules/6.1.0/modules.alias"], "pci:v00001AF4d00001000sv0sd0bc0sc0i0")
	f.Add("a.ko: b.ko\nb.ko: a.ko\n", "alias x[a-z* a\nsoftdep a pre: b", "xa")
	f.Add(".ko: .ko", "softdep a post: a\nalias * a", "")
	f.Fuzz(func(t *testing.T, dep, alias, device string) {
		m := &Modules{Dir: "/lib/modules/x"}
		m.Insert = func(file, _ string) error {
			if !strings.HasPrefix(file, "/lib/modules/x/") {
				t.Errorf("insert %q: outside of the modules' directory", file)
			}
			return nil
		}
		// Lines longer than the buffer are errors; the lines before them count.
		_ = m.readDeps(strings.NewReader(dep))
		_ = m.readAliases(strings.NewReader(alias))
		_ = m.readSoftDeps(strings.NewReader(alias))
		for _, name := range m.match(device) {
			_ = m.Load(name)
		}
		_ = m.Load(device)
		for name := range m.files {
			_ = m.Load(name)
		}
	})
}

// FuzzMatchAlias compares with a regular expression, for patterns without sets and escapes.
func FuzzMatchAlias(f *testing.F) {
	f.Add("pci:v00008086d*sv*[0-9A-F]?", "pci:v00008086d00001237sv00")
	f.Add("a*b*c*d", "abcabcabcd")
	f.Add("of:N*T?C*", "of:Na/bT/Cx/y")
	f.Fuzz(func(t *testing.T, pattern, s string) {
		if strings.ContainsAny(pattern+s, "[]\\\x00") || strings.ContainsFunc(pattern+s, func(r rune) bool { return r > 126 }) {
			matchAlias(pattern, s) // must return
			return
		}
		expression := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
		want := regexp.MustCompile("(?s)^" + expression + "$").MatchString(s)
		if got := matchAlias(pattern, s); got != want {
			t.Errorf("matchAlias(%q, %q): got %v, want %v", pattern, s, got, want)
		}
		key := aliasIndex(pattern)
		if want && !strings.HasPrefix(s, key) {
			t.Errorf("%q matches %q but is indexed by %q", pattern, s, key)
		}
	})
}
