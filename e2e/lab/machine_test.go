package lab

import (
	"slices"
	"strings"
	"testing"
)

func TestMachineArgs(t *testing.T) {
	for _, tt := range []struct {
		name    string
		machine Machine
		want    []string // parts of the command line, in order
		never   string
	}{
		{
			"bios",
			Machine{Name: "a", NICs: []NIC{{MAC: "52:54:00:00:00:01", Boot: true}}},
			[]string{"-m 1280", "-machine pc", "ifname=tap0", "mac=52:54:00:00:00:01,bootindex=1"},
			"romfile=",
		},
		{
			"uefi with two cards, of which the second boots",
			Machine{Name: "b", Firmware: UEFI, Memory: 2048, NICs: []NIC{
				{MAC: "52:54:00:00:00:02", Dark: true},
				{MAC: "52:54:00:00:00:03", Boot: true},
			}},
			[]string{"-m 2048", "-machine q35", "OVMF_CODE_4M.fd", "file=/lab/b.vars",
				"ifname=tap0", "mac=52:54:00:00:00:02,romfile= ", "ifname=tap1", "mac=52:54:00:00:00:03,bootindex=1,romfile="},
			"mac=52:54:00:00:00:02,bootindex",
		},
		{
			"two cards, tried in turn",
			Machine{Name: "h", NICs: []NIC{{MAC: "52:54:00:00:00:04", Boot: true, Dark: true}, {MAC: "52:54:00:00:00:05", Boot: true}}},
			[]string{"mac=52:54:00:00:00:04,bootindex=1", "mac=52:54:00:00:00:05,bootindex=2"},
			"romfile=",
		},
		{
			"HTTP Boot",
			Machine{Name: "d", Firmware: UEFI, HTTPBoot: true, NICs: []NIC{{MAC: "52:54:00:00:00:06", Boot: true}}},
			[]string{"IPv4PXESupport,string=n", "IPv6PXESupport,string=n", "bootindex=1,romfile="},
			"secure",
		},
		{
			"a CD",
			Machine{Name: "m", Firmware: UEFI, Medium: "/lab/boot.iso", NICs: []NIC{{MAC: "52:54:00:00:00:10", Boot: true}}},
			[]string{"media=cdrom,file=/lab/boot.iso", "usb-storage,drive=medium,bootindex=1", "mac=52:54:00:00:00:10,bootindex=2"},
			"media=disk",
		},
		{
			"an NVMe disk, in a chassis",
			Machine{Name: "n", Disks: []Disk{{File: "/lab/nvme", Serial: "S1"}}, DMI: []string{"type=3,serial=CH1"}},
			[]string{"-smbios type=3,serial=CH1", "-drive if=none,id=d0,format=raw,file=/lab/nvme -device nvme,drive=d0,serial=S1"},
			"usb-storage",
		},
		{
			"a slow SCSI disk",
			Machine{Name: "n", Disks: []Disk{{File: "/lab/sda", Serial: "S1", Bus: SCSI, Rate: 1000}}},
			[]string{"-device virtio-scsi-pci -drive if=none,id=d0,format=raw,file=/lab/sda,throttling.bps-write=1000 -device scsi-hd,drive=d0,serial=S1"},
			"nvme",
		},
		{
			"Secure Boot",
			Machine{Name: "e", Firmware: SecureBoot, NICs: []NIC{{MAC: "52:54:00:00:00:07", Boot: true}}},
			[]string{"-machine q35,smm=on", "property=secure,value=on", "disable_s3=1", "OVMF_CODE_4M.secboot.fd", "file=/lab/e.vars", "bootindex=1,romfile="},
			"PXESupport",
		},
		{
			"a kernel",
			Machine{Name: "k", Kernel: &Kernel{Image: "/k", Initrd: "/i", Arguments: "quiet -- a", HostFiles: true}},
			[]string{"-machine pc", "-kernel /k -initrd /i -append quiet -- a -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on"},
			"netdev",
		},
		{
			"arm64 UEFI",
			Machine{Name: "f", Firmware: UEFIarm64, NICs: []NIC{{MAC: "52:54:00:00:00:08", Boot: true}}},
			[]string{"-machine virt -cpu cortex-a57", "AAVMF_CODE.fd", "file=/lab/f.vars", "virtio-net-pci", "bootindex=1,romfile="},
			"-bios",
		},
		{
			"arm64 U-Boot",
			Machine{Name: "g", Firmware: UBootArm64, NICs: []NIC{{MAC: "52:54:00:00:00:09", Model: "e1000", Boot: true}}},
			[]string{"-machine virt -cpu cortex-a57 -bios", "u-boot.bin", "e1000,netdev=net0,mac=52:54:00:00:00:09,bootindex=1,romfile="},
			"pflash",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.machine.filesIn("/lab")
			f.taps = []string{"tap0", "tap1"}
			got := strings.Join(tt.machine.args(f), " ")
			rest := got
			for _, want := range append([]string{"-accel tcg,thread=multi"}, tt.want...) {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Errorf("want %q in order in %q", want, got)
				}
				rest = after
			}
			for _, never := range []string{tt.never, "kvm"} {
				if strings.Contains(got, never) {
					t.Errorf("%q in %q", never, got)
				}
			}
			if slices.Contains(tt.machine.args(f), "") {
				t.Errorf("empty argument in %q", got)
			}
		})
	}
}
