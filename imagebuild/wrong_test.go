package imagebuild_test

import (
	"bytes"
	"debug/elf"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"drover/imagebuild"
)

// bzImage is a kernel for x86, by its boot header.
var bzImage = strings.Repeat("\x00", 0x202) + "HdrS"

// wholeNode returns the files of an image that lacks nothing.
func wholeNode(t *testing.T) []string {
	t.Helper()
	program := string(staticELF(t, elf.EM_X86_64, false))
	files := with(machine(), []string{"usr/lib/systemd/systemd", "boot/vmlinuz-" + kver},
		"usr/lib/systemd/systemd="+program, "boot/vmlinuz-"+kver+"="+bzImage, "etc/os-release=ID=debian\n# a comment\n\nVERSION_ID=\"12\"\n")
	for _, name := range []string{"kubelet", "kubeadm", "containerd", "runc"} {
		files = append(files, "usr/bin/"+name+"="+program)
	}
	for _, unit := range []string{"systemd-networkd.service", "containerd.service", "kubelet.service", "var-lib-containerd.mount"} {
		files = append(files, "usr/lib/systemd/system/"+unit+"=[Unit]\n", "etc/systemd/system/multi-user.target.wants/"+unit+"@/usr/lib/systemd/system/"+unit)
	}
	return files
}

// wants is the folder of the units that are enabled.
const wants = "etc/systemd/system/multi-user.target.wants/"

// TestWrongImages: an image that cannot work as a node is refused, or named with its remedy, when it is
// built. docs/images.md has the same list.
func TestWrongImages(t *testing.T) {
	good, systemd, kernel := wholeNode(t), "usr/lib/systemd/systemd", "boot/vmlinuz-"+kver
	for _, tt := range []struct {
		name    string
		files   []string
		edit    func(*imagebuild.Builder)
		refused string // part of the error
		warned  string // part of the log
	}{
		{name: "good", files: good},
		{name: "good, with ifupdown", files: with(good, []string{wants + "systemd-networkd.service"},
			"usr/lib/systemd/system/networking.service=[Unit]\n", wants+"networking.service@/usr/lib/systemd/system/networking.service")},
		{name: "no network service", files: with(good, []string{wants + "systemd-networkd.service"}), warned: "systemctl enable systemd-networkd"},
		{name: "network service masked", files: with(good, nil, "etc/systemd/system/systemd-networkd.service@/dev/null"), warned: "no network service is enabled"},
		{name: "network service enabled, and not there", files: with(good, []string{"usr/lib/systemd/system/systemd-networkd.service"}), warned: "no network service is enabled"},
		{name: "no kubelet", files: with(good, []string{"usr/bin/kubelet"}), warned: "are missing: kubelet"},
		{name: "kubelet not enabled", files: with(good, []string{wants + "kubelet.service"}), warned: "systemctl enable kubelet"},
		{name: "no containerd", files: with(good, []string{"usr/bin/containerd", "usr/bin/runc"}), warned: "are missing: containerd, runc"},
		{name: "containerd on the root", files: with(good, []string{wants + "var-lib-containerd.mount"}), warned: "var-lib-containerd.mount with a tmpfs"},
		{name: "nothing of Kubernetes", files: with(good, []string{"usr/bin/kubelet", "usr/bin/kubeadm", "usr/bin/containerd", "usr/bin/runc"}), warned: "pools without a cluster alone"},
		{name: "broken os-release", files: with(good, []string{"etc/os-release"}, "etc/os-release=\x00\x01garbage\n"), warned: "etc/os-release is missing or broken"},
		{name: "half of os-release", files: with(good, []string{"etc/os-release"}, "etc/os-release=ID=debian\nVERSIO"), warned: "etc/os-release is missing or broken"},
		{name: "no os-release", files: with(good, []string{"etc/os-release"}), warned: "base-files"},
		{name: "truncated systemd", files: with(good, []string{systemd}, systemd+"=\x7fEL"), warned: "systemd is not a program for Linux"},
		{name: "truncated kernel", files: with(good, []string{kernel}, kernel+"=\x00\x00"), warned: "the kernel has no boot header of x86"},
		{name: "empty", files: []string{"etc/"}, refused: "the image has no systemd"},
		{name: "without systemd", files: with(good, []string{systemd}, "sbin/openrc=x"), refused: "OpenRC"},
		{name: "without modules", files: with(good, nil, "boot/vmlinuz-6.2="+bzImage), edit: func(b *imagebuild.Builder) { b.KernelVersion = "6.2" }, refused: "no usr/lib/modules/6.2"},
		{name: "two kernels", files: with(good, nil, "boot/vmlinuz-6.2="+bzImage, "usr/lib/modules/6.2/modules.dep="), refused: "choose one with --kernel-version"},
		{name: "programs for arm64", files: with(good, []string{systemd}, systemd+"="+string(staticELF(t, elf.EM_AARCH64, false))), refused: "--platform linux/ARCH"},
		{name: "kernel for arm64", files: with(good, []string{kernel}, kernel+"="+strings.Repeat("\x00", 56)+"ARM\x64"), refused: "the kernel of the image is one for arm64"},
		{name: "initrd of another distribution", files: with(good, nil, "boot/initramfs-5.14.0-427.el9.x86_64.img=x")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := builder(t, tt.files...)
			var log bytes.Buffer
			b.Log = slog.New(slog.NewTextHandler(&log, nil))
			if tt.edit != nil {
				tt.edit(&b)
			}
			_, err := b.Build(t.Context())
			if tt.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tt.refused) {
					t.Errorf("got %v, want %q", err, tt.refused)
				}
				nothingVisible(t, b.Images)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			lines := slices.DeleteFunc(strings.Split(log.String(), "\n"), func(l string) bool { return !strings.Contains(l, "lacks what nodes need") })
			if all := strings.Join(lines, "\n"); tt.warned == "" && all != "" || !strings.Contains(all, tt.warned) || len(lines) > 1 {
				t.Errorf("got %q, want one line with %q", all, tt.warned)
			}
		})
	}
}
