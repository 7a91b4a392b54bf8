package script_test

import (
	"errors"
	"io/fs"
	"net/netip"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/boots"
)

const serial = "9ffefdef/"

// The files of a Raspberry Pi, in the order in which it asks for them.
func TestRaspberryPi(t *testing.T) {
	w := newWorld(t, withLoaders(t, "raspberry-pi/start4.elf", "raspberry-pi/overlays/disable-bt.dtbo", "9ffefdef/bcm2711-rpi-4-b.dtb", "raspberry-pi/bcm2711-rpi-4-b.dtb"))
	w.farm[macBIOS].KernelArgs = []string{"console=ttyS0,115200", `a='b\c'`}
	fixture.Golden(t, "testdata/node.config.txt", w.mustOpen(t, "127.0.0.1", serial+"config.txt"))
	if w.boots.n != 0 {
		t.Error("config.txt has begun a boot")
	}
	line := w.mustOpen(t, "127.0.0.1", serial+"cmdline.txt")
	fixture.Golden(t, "testdata/node.cmdline.txt", line)
	for _, name := range []string{"cmdline.txt", "52-54-00-00-00-01/cmdline.txt", "9FFEFDEF/cmdline.txt"} {
		if got := w.mustOpen(t, "127.0.0.1", name); got != line {
			t.Errorf("%s: got %q, want the same boot", name, got)
		}
	}
	for name, want := range map[string]string{
		serial + "drover/kernel":                string(contents["kernel"]),
		serial + "drover/initrd":                string(contents["initrd"]),
		"drover/initrd":                         string(contents["initrd"]),
		serial + "start4.elf":                   "this is raspberry-pi/start4.elf",
		serial + "overlays/disable-bt.dtbo":     "this is raspberry-pi/overlays/disable-bt.dtbo",
		serial + "bcm2711-rpi-4-b.dtb":          "this is 9ffefdef/bcm2711-rpi-4-b.dtb", // this board's own
		"52-54-00-00-00-01/bcm2711-rpi-4-b.dtb": "this is raspberry-pi/bcm2711-rpi-4-b.dtb",
	} {
		if got := w.mustOpen(t, "127.0.0.1", name); got != want {
			t.Errorf("%s: got %.40q, want %.40q", name, got, want)
		}
	}
	if w.boots.n != 1 {
		t.Errorf("%d boots were begun, want 1", w.boots.n)
	}
}

// A file that the operator made goes before one that drover makes.
func TestRaspberryPiOwnFiles(t *testing.T) {
	w := newWorld(t, withLoaders(t, "9ffefdef/cmdline.txt", "9ffefdef/config.txt"))
	for _, name := range []string{"cmdline.txt", "config.txt"} {
		if got := w.mustOpen(t, "127.0.0.1", serial+name); got != "this is "+serial+name {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestRaspberryPiRefused(t *testing.T) {
	w := newWorld(t, withLoaders(t, "raspberry-pi/config.json", "snponly.efi"))
	w.at[netip.MustParseAddr("127.0.0.4")] = macForeign
	w.farm[macUEFI].Image = "debian-13"
	for _, tt := range []struct {
		name, from, file string
		is               error
		told             string
		optional         bool
	}{
		{"a command line for nobody", "127.0.0.9", serial + "cmdline.txt", fs.ErrPermission, "the address of no machine", false},
		{"a config for nobody", "127.0.0.9", serial + "config.txt", fs.ErrPermission, "the address of no machine", false},
		{"a kernel for nobody", "127.0.0.9", serial + "drover/kernel", fs.ErrPermission, "the address of no machine", false},
		{"a machine to be ignored", "127.0.0.4", serial + "config.txt", fs.ErrPermission, "is not to be booted", false},
		{"no root image", "127.0.0.1", serial + "drover/root.squashfs", fs.ErrNotExist, "no loader", true},
		{"the boot loader", "127.0.0.1", serial + "start4.elf", fs.ErrNotExist, `no loader "raspberry-pi/start4.elf": see drover loaders`, false},
		{"what a board can do without", "127.0.0.1", serial + "recovery.elf", fs.ErrNotExist, "no loader", true},
		{"no board", "127.0.0.1", "9ffefde/start4.elf", fs.ErrNotExist, `no loader "9ffefde/start4.elf"`, false},
		{"a hidden file", "127.0.0.1", serial + ".installed.json", fs.ErrNotExist, "no loader", true},
		{"no image", "127.0.0.2", serial + "cmdline.txt", fs.ErrNotExist, `the server has no image "debian-13"`, false},
		{"no kernel", "127.0.0.2", serial + "drover/kernel", fs.ErrNotExist, "no image for this machine", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := w.open(t, tt.from, tt.file)
			var words interface{ ClientText() string }
			if !errors.Is(err, tt.is) || !errors.As(err, &words) || !strings.Contains(words.ClientText(), tt.told) {
				t.Fatalf("got %v, want %v, %q", err, tt.is, tt.told)
			}
			var o interface{ Optional() bool }
			if got := errors.As(err, &o); got != tt.optional {
				t.Errorf("optional: got %v, want %v", got, tt.optional)
			}
		})
	}
	if w.boots.n != 0 {
		t.Errorf("%d boots were begun", w.boots.n)
	}
	if got := w.boots.seen(macUEFI); len(got) != 1 || !strings.HasPrefix(got[0], string(boots.StepScript)+"!the server has no image") {
		t.Errorf("got steps %q, want the problem", got)
	}
}

func TestRaspberryPiNextBoot(t *testing.T) {
	var taken []string
	w := newWorld(t, func(w *world) {
		w.farm[macBIOS] = w.farm[macBIOS].WithNextBoot(pools.NextLocal)
		w.TakeNextBoot = func(node string) error { taken = append(taken, node); return nil }
	})
	for _, name := range []string{"config.txt", "cmdline.txt"} {
		if _, err := w.open(t, "127.0.0.1", serial+name); err == nil || !strings.Contains(err.Error(), "boots from its local disk") {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
	if len(taken) != 1 {
		t.Errorf("the next boot was taken by %q, want once", taken)
	}
	w.farm[macBIOS] = w.farm[macBIOS].WithNextBoot(pools.NextRescue)
	if got := w.mustOpen(t, "127.0.0.1", serial+"cmdline.txt"); !strings.Contains(got, " drover.rescue=1") {
		t.Errorf("got %q", got)
	}
}

// The firmware puts its own words before the line.
func TestRaspberryPiLongLine(t *testing.T) {
	w := newWorld(t, nil)
	w.farm[macBIOS].KernelArgs = []string{strings.Repeat("x", 1300)}
	if _, err := w.open(t, "127.0.0.1", serial+"cmdline.txt"); err == nil || !strings.Contains(err.Error(), "shorten kernelArgs") {
		t.Errorf("got %v, want that the line is too long", err)
	}
}
