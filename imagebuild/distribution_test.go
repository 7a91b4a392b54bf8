package imagebuild_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"drover/imagebuild"
)

// distribution returns the files of a distribution's image as its packages lay them out:
// modules compressed with ext below modules, the kernel wherever the test says.
func distribution(t testing.TB, version, modules, ext string, more ...string) []string {
	t.Helper()
	compress := map[string]func(testing.TB, []byte) []byte{
		"": func(_ testing.TB, b []byte) []byte { return b }, ".gz": gzipped, ".xz": xzipped, ".zst": zstandard}[ext]
	dir := modules + "/" + version + "/"
	var files []string
	dep := ""
	for _, path := range []string{"kernel/fs/squashfs/squashfs.ko", "kernel/fs/overlayfs/overlay.ko", "kernel/drivers/block/loop.ko",
		"kernel/drivers/net/ethernet/mellanox/mlx4/mlx4_core.ko", "kernel/drivers/net/ethernet/mellanox/mlx4/mlx4_en.ko", "kernel/drivers/net/wireguard/wireguard.ko"} {
		name := path[strings.LastIndexByte(path, '/')+1:]
		files = append(files, dir+path+ext+"="+string(compress(t, []byte(name))))
		dep += path + ext + ":\n"
	}
	return append(append(files, dir+"modules.dep="+dep), more...)
}

// withDriver returns files with a network driver that needs firmware.
func withDriver(t testing.TB, files []string, version string) []string {
	dir := "usr/lib/modules/" + version + "/kernel/drivers/net/ethernet/"
	if strings.HasPrefix(files[0], "lib/") {
		dir = strings.TrimPrefix(dir, "usr/")
	}
	files = append([]string{dir + "bnx2x.ko=" + string(moduleELF(t, "firmware=bnx2x/bnx2x-e2.fw\x00"))}, files...)
	for i, f := range files {
		if name, dep, ok := strings.Cut(f, "modules.dep="); ok {
			files[i] = name + "modules.dep=" + dep + "kernel/drivers/net/ethernet/bnx2x.ko:\n"
		}
	}
	return files
}

// TestDistributions: layouts of distributions, as their packages have them.
func TestDistributions(t *testing.T) {
	const systemd = "usr/lib/systemd/systemd=systemd"
	for name, test := range map[string]struct {
		files   []string
		version string
		pack    string // of bnx2x' firmware
	}{
		"Debian 11, unmerged": {distribution(t, "5.10.0-28-amd64", "lib/modules", "", "lib/systemd/systemd=systemd", "boot/vmlinuz-5.10.0-28-amd64=kernel",
			"boot/initrd.img-5.10.0-28-amd64=x", "vmlinuz@boot/vmlinuz-5.10.0-28-amd64", "etc/os-release=ID=debian\nVERSION_ID=\"11\"\n"), "5.10.0-28-amd64", "firmware-bnx2x (non-free-firmware)"},
		"Debian 12": {distribution(t, "6.1.0-40-amd64", "usr/lib/modules", "", systemd, "lib@usr/lib", "sbin/init@/lib/systemd/systemd", "boot/vmlinuz-6.1.0-40-amd64=kernel",
			"usr/lib/os-release=ID=debian\n", "etc/os-release@../usr/lib/os-release"), "6.1.0-40-amd64", "firmware-bnx2x (non-free-firmware)"},
		"Debian 13": {distribution(t, "6.12.48+deb13-amd64", "usr/lib/modules", ".xz", systemd, "lib@usr/lib", "boot/vmlinuz-6.12.48+deb13-amd64=kernel",
			"usr/lib/os-release=ID=debian\n"), "6.12.48+deb13-amd64", "firmware-bnx2x (non-free-firmware)"},
		"Ubuntu 22.04": {distribution(t, "5.15.0-119-generic", "usr/lib/modules", "", systemd, "lib@usr/lib", "boot/vmlinuz-5.15.0-119-generic=kernel",
			"boot/vmlinuz@vmlinuz-5.15.0-119-generic", "boot/vmlinuz.old@vmlinuz-5.15.0-119-generic", "etc/os-release=ID=ubuntu\nID_LIKE=debian\n"), "5.15.0-119-generic", "linux-firmware"},
		"Ubuntu 24.04": {distribution(t, "6.8.0-45-generic", "usr/lib/modules", ".zst", systemd, "lib@usr/lib", "boot/vmlinuz-6.8.0-45-generic=kernel",
			"boot/vmlinuz@vmlinuz-6.8.0-45-generic", "etc/os-release=ID=ubuntu\nID_LIKE=debian\n"), "6.8.0-45-generic", "linux-firmware"},
		"Fedora": {distribution(t, "6.10.12-200.fc40.x86_64", "usr/lib/modules", ".xz", systemd, "lib@usr/lib",
			"usr/lib/modules/6.10.12-200.fc40.x86_64/vmlinuz=kernel", "usr/lib/modules/6.10.12-200.fc40.x86_64/config=CONFIG_X=y", "etc/os-release=ID=fedora\n"), "6.10.12-200.fc40.x86_64", "linux-firmware"},
		"Rocky 9, with a rescue kernel": {distribution(t, "5.14.0-427.el9.x86_64", "usr/lib/modules", ".xz", systemd, "lib@usr/lib",
			"usr/lib/modules/5.14.0-427.el9.x86_64/vmlinuz=kernel", "boot/vmlinuz-5.14.0-427.el9.x86_64=kernel",
			"boot/vmlinuz-0-rescue-0123456789abcdef0123456789abcdef=kernel", "etc/os-release=ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n"), "5.14.0-427.el9.x86_64", "linux-firmware"},
		"Alma 10": {distribution(t, "6.12.0-55.el10.x86_64", "usr/lib/modules", ".xz", systemd, "lib@usr/lib",
			"usr/lib/modules/6.12.0-55.el10.x86_64/vmlinuz=kernel", "etc/os-release=ID=almalinux\nID_LIKE=\"rhel centos fedora\"\n"), "6.12.0-55.el10.x86_64", "linux-firmware"},
		"openSUSE": {distribution(t, "6.4.0-150600.21-default", "usr/lib/modules", ".zst", systemd, "lib@usr/lib",
			"usr/lib/modules/6.4.0-150600.21-default/vmlinuz=kernel", "boot/vmlinuz-6.4.0-150600.21-default@../usr/lib/modules/6.4.0-150600.21-default/vmlinuz",
			"boot/vmlinuz@vmlinuz-6.4.0-150600.21-default", "etc/os-release=ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n"), "6.4.0-150600.21-default", "kernel-firmware-bnx2"},
		"Arch": {distribution(t, "6.11.2-arch1-1", "usr/lib/modules", ".zst", systemd, "lib@usr/lib",
			"usr/lib/modules/6.11.2-arch1-1/vmlinuz=kernel", "usr/lib/modules/6.11.2-arch1-1/pkgbase=linux\n", "boot/vmlinuz-linux=kernel", "boot/initramfs-linux-fallback.img=x",
			"etc/os-release=ID=arch\n"), "6.11.2-arch1-1", "linux-firmware-bnx2x"},
		"modules with gzip": {distribution(t, "6.6.1", "usr/lib/modules", ".gz", systemd, "boot/vmlinuz-6.6.1=kernel"), "6.6.1", "linux-firmware"},
	} {
		t.Run(name, func(t *testing.T) {
			b := builder(t, withDriver(t, test.files, test.version)...)
			var log bytes.Buffer
			b.Log = slog.New(slog.NewTextHandler(&log, nil))
			image := build(t, b)
			if image.KernelVersion != test.version {
				t.Errorf("kernel is %q, want %q", image.KernelVersion, test.version)
			}
			out := unpack(t, image)
			if got := string(out["usr/lib/modules/"+test.version+"/kernel/drivers/net/ethernet/mellanox/mlx4/mlx4_core.ko"]); got != "mlx4_core.ko" {
				t.Errorf("mlx4_core.ko is %q in the initrd", got)
			}
			if want := "driver=bnx2x missing=\"1 of 1 files\" first=bnx2x/bnx2x-e2.fw install="; !strings.Contains(log.String(), want) ||
				!strings.Contains(log.String(), test.pack) {
				t.Errorf("log is %q, want %q and %q", log.String(), want, test.pack)
			}
		})
	}
}

// driversWithFirmware returns the files of a machine with drivers that name firmware, and
// the directory of the drivers.
func driversWithFirmware(t testing.TB) (files []string, dir string) {
	t.Helper()
	mods := "usr/lib/modules/" + kver + "/"
	dir, dep := mods+"kernel/drivers/net/", ""
	for _, f := range machine() {
		if rest, ok := strings.CutPrefix(f, mods+"modules.dep="); ok {
			dep = rest
		}
	}
	module := func(info string) string { return string(moduleELF(t, info)) }
	files = with(machine(), []string{dir + "bnx2x.ko", mods + "modules.dep"},
		mods+"modules.dep="+dep+"kernel/drivers/net/qed.ko:\nkernel/drivers/net/qede.ko: kernel/drivers/net/qed.ko\nkernel/drivers/net/tg3.ko:\n",
		dir+"bnx2x.ko="+module("firmware=bnx2x/new.fw\x00firmware=bnx2x/old.fw\x00"), dir+"qed.ko="+module("firmware=qed/q.bin\x00"),
		dir+"qede.ko=qede", dir+"tg3.ko="+module("firmware=tigon/t.bin\x00"))
	return files, dir
}

// TestDriversWithoutFirmware: a driver that does nothing without firmware is not in the
// initrd when there is none, and the build says so.
func TestDriversWithoutFirmware(t *testing.T) {
	files, drivers := driversWithFirmware(t)
	own := t.TempDir() + "/own"
	write(t, own, gzipped(t, []byte("070701 and so on")))
	for name, test := range map[string]struct {
		edit func(b *imagebuild.Builder)
		more string // a file of the image
		want string // drivers in the initrd
	}{
		"none":           {nil, "opt/x=x", "tg3"}, // works without its firmware
		"one of two":     {nil, "usr/lib/firmware/bnx2x/old.fw=x", "bnx2x tg3"},
		"all":            {nil, "usr/lib/firmware/qed/q.bin.zst=x", "qed qede tg3"},
		"own file":       {func(b *imagebuild.Builder) { b.InitrdFiles = []string{"lib/firmware/qed/q.bin=" + own} }, "opt/x=x", "qed qede tg3"},
		"asked for":      {func(b *imagebuild.Builder) { b.Modules = []string{"bnx2x"} }, "opt/x=x", "bnx2x tg3"},
		"asked for qede": {func(b *imagebuild.Builder) { b.Modules = []string{"qede"} }, "opt/x=x", "qed qede tg3"},
	} {
		t.Run(name, func(t *testing.T) {
			b := builder(t, append(slices.Clone(files), test.more)...)
			var log bytes.Buffer
			b.Log = slog.New(slog.NewTextHandler(&log, nil))
			if test.edit != nil {
				test.edit(&b)
			}
			out := unpack(t, build(t, b))
			var got []string
			for _, driver := range []string{"bnx2x", "qed", "qede", "tg3"} {
				if _, ok := out[drivers+driver+".ko"]; ok {
					got = append(got, driver)
				}
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("the initrd has %q, want %q", got, test.want)
			}
			without := 0
			for _, driver := range []string{"bnx2x", "qed"} {
				if !slices.Contains(got, driver) {
					without++
				}
			}
			if n := strings.Count(log.String(), "without the driver"); n != without || strings.Count(log.String(), "driver=tg3") != 1 {
				t.Errorf("the log is %q, want %d lines with a driver that is left out", log.String(), without)
			}
		})
	}
}

// TestDriversWithArchive: an archive of the operator's may have the firmware.
func TestDriversWithArchive(t *testing.T) {
	files, _ := driversWithFirmware(t)
	own := t.TempDir() + "/own.cpio.gz"
	write(t, own, gzipped(t, []byte("070701 and so on")))
	b := builder(t, files...)
	var log bytes.Buffer
	b.Log, b.InitrdFiles = slog.New(slog.NewTextHandler(&log, nil)), []string{own}
	build(t, b)
	if strings.Contains(log.String(), "without the driver") || !strings.Contains(log.String(), "driver=qed ") {
		t.Errorf("the log is %q, want drivers whose firmware may be in an archive of the operator's in the initrd", log.String())
	}
}

// TestSeveralKernels: kernels with modules count, and one can be chosen.
func TestSeveralKernels(t *testing.T) {
	b := builder(t, with(machine(), nil, "boot/vmlinuz-6.2=other", "usr/lib/modules/6.2/modules.dep=kernel/squashfs.ko:\nkernel/overlay.ko:\nkernel/loop.ko:\n",
		"usr/lib/modules/6.2/kernel/squashfs.ko=x", "usr/lib/modules/6.2/kernel/overlay.ko=x", "usr/lib/modules/6.2/kernel/loop.ko=x",
		"boot/vmlinuz-0-rescue-1234=x")...)
	b.KernelVersion = "6.2"
	if got := build(t, b).KernelVersion; got != "6.2" {
		t.Errorf("kernel is %q, want the chosen one", got)
	}
}

// TestSoftdepsOfModprobe: softdep lines of modprobe.d count, as modprobe reads them.
func TestSoftdepsOfModprobe(t *testing.T) {
	mods := "usr/lib/modules/" + kver + "/"
	b := builder(t, with(machine(), nil,
		"etc/modprobe.d/virtio.conf=# a comment\noptions loop max_loop=8\nsoftdep virtio_net \\\n  post: nvme\n",
		"etc/modprobe.d/off.conf@/dev/null", "usr/lib/modprobe.d/off.conf=softdep virtio_net post: usb-storage\n",
		"usr/lib/modprobe.d/not-read=softdep virtio_net post: usb-storage\n")...)
	out := unpack(t, build(t, b))
	if _, ok := out[mods+"kernel/drivers/nvme/nvme.ko"]; !ok {
		t.Error("nvme.ko is not in the initrd")
	}
	if _, ok := out[mods+"kernel/drivers/usb/usb-storage.ko"]; ok {
		t.Error("usb-storage.ko is in the initrd")
	}
	if got, want := string(out[mods+"modules.softdep"]), "softdep libcrc32c pre: crc32c\nsoftdep virtio_net post: nvme\n"; got != want {
		t.Errorf("modules.softdep is %q, want %q", got, want)
	}
}

// TestRefusedBeforeAnything: an image without systemd is refused with the reason, before
// a file is written.
func TestRefusedBeforeAnything(t *testing.T) {
	for name, test := range map[string]struct{ file, want string }{
		"Alpine": {"bin/busybox=x", "BusyBox"}, "Void": {"etc/runit/1=x", "runit"}, "Talos": {"usr/bin/machined=x", "no systemd"}, "empty systemd": {"usr/lib/systemd/systemd=", "no systemd"},
	} {
		t.Run(name, func(t *testing.T) {
			b := builder(t, with(machine(), []string{"usr/lib/systemd/systemd"}, test.file)...)
			b.Progress = func(p imagebuild.Progress) {
				if strings.HasPrefix(p.Phase, "writing") {
					t.Errorf("%s has begun", p.Phase)
				}
			}
			if _, err := b.Build(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
			nothingVisible(t, b.Images)
		})
	}
}
