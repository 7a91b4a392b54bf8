package dhcp_test

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/pools"
)

func TestFirmware(t *testing.T) {
	for _, tt := range []struct {
		name  string
		class string
		archs []byte
		want  pools.Firmware
	}{
		{"BIOS ROM", "PXEClient:Arch:00000:UNDI:002001", []byte{0, 0}, pools.BIOS},
		{"OVMF", "PXEClient:Arch:00007:UNDI:003000", []byte{0, 7}, pools.UEFIx64},
		{"UEFI by the other number", "PXEClient:Arch:00009:UNDI:003000", []byte{0, 9}, pools.UEFIx64},
		{"AAVMF", "PXEClient:Arch:00011:UNDI:003000", []byte{0, 11}, pools.UEFIarm64},
		{"OVMF HTTP", "HTTPClient:Arch:00016:UNDI:003000", []byte{0, 16}, pools.UEFIx64HTTP},
		{"32-bit HTTP (W6)", "HTTPClient:Arch:00015:UNDI:003000", []byte{0, 15}, ""},
		{"32-bit HTTP by class alone", "HTTPClient:Arch:00015:UNDI:003000", nil, ""},
		{"32-bit HTTP with a PXE number", "HTTPClient:Arch:00006:UNDI:003000", []byte{0, 6}, ""},
		{"AAVMF HTTP", "HTTPClient:Arch:00019:UNDI:003000", []byte{0, 19}, pools.UEFIarm64HTTP},
		{"HTTP with a PXE number", "HTTPClient:Arch:00007", []byte{0, 7}, pools.UEFIx64HTTP},
		{"arm64 HTTP with a PXE number", "HTTPClient:Arch:00011", []byte{0, 11}, pools.UEFIarm64HTTP},
		{"U-Boot of today", "U-Boot.armv8", []byte{0, 22}, pools.UBootArm64},
		{"U-Boot of 2014", "U-Boot.armv8", []byte{1, 0}, pools.UBootArm64},
		{"U-Boot by class alone", "U-Boot.armv8", nil, pools.UBootArm64},
		{"U-boot spelt the other way", "U-boot.armv8.board", nil, pools.UBootArm64},
		{"U-Boot by number alone", "", []byte{0, 0x16}, pools.UBootArm64},
		{"U-Boot without a processor, by number", "U-Boot", []byte{0, 0x16}, pools.UBootArm64},
		{"32-bit U-Boot (W6)", "U-Boot.armv7", []byte{0, 0x15}, ""},
		{"32-bit U-Boot of 2014", "U-Boot.armv7", []byte{1, 0}, ""},
		{"32-bit U-Boot by class alone", "U-boot.armv7.highbank", nil, ""},
		{"older 32-bit U-Boot", "U-Boot.arm", []byte{0, 0x15}, ""},
		{"32-bit U-Boot by number alone", "", []byte{0, 0x15}, ""},
		{"U-Boot of any board of 2014", "U-Boot", []byte{1, 0}, ""},
		{"any board of 2014 by number alone", "", []byte{1, 0}, ""},
		{"RISC-V U-Boot (W6)", "U-Boot", []byte{0, 27}, ""},
		{"RISC-V U-Boot by class", "U-Boot.riscv", []byte{0, 27}, ""},
		{"x86 U-Boot", "U-Boot", []byte{0, 0}, ""},
		{"U-Boot with two words", "U-Boot.armv8", []byte{0, 0x15}, ""},
		{"ARM64 U-Boot by HTTP", "U-Boot", []byte{0, 0x18}, ""},
		{"RISC-V 64", "PXEClient:Arch:00027:UNDI:003000", []byte{0, 27}, pools.UEFIriscv64},
		{"RISC-V 64 by HTTP", "HTTPClient:Arch:00028:UNDI:003000", []byte{0, 28}, pools.UEFIriscv64HTTP},
		{"RISC-V 64 by HTTP with a PXE number", "HTTPClient", []byte{0, 27}, pools.UEFIriscv64HTTP},
		{"LoongArch64", "PXEClient:Arch:00039:UNDI:003000", []byte{0, 39}, pools.UEFIloong64},
		{"LoongArch64 by HTTP", "HTTPClient:Arch:00040:UNDI:003000", []byte{0, 40}, pools.UEFIloong64HTTP},
		{"several, none with a loader", "PXEClient", []byte{0, 6, 0, 10}, ""},
		{"a number of nobody", "PXEClient", []byte{0xff, 0xff}, ""},
		{"U-Boot asking as EFI", "PXEClient:Arch:00011:UNDI:003000", []byte{0, 11}, pools.UEFIarm64},
		{"no class", "", []byte{0, 7}, pools.UEFIx64},
		{"no number", "PXEClient:Arch:00007:UNDI:003000", nil, pools.UEFIx64},
		{"first known of several", "PXEClient", []byte{0, 6, 0, 7}, pools.UEFIx64},
		{"half a number", "", []byte{7}, ""},
		{"32-bit UEFI", "PXEClient:Arch:00006", []byte{0, 6}, ""},
		{"class with rubbish", "PXEClient:Arch:0x007", nil, ""},
		{"class cut off", "PXEClient:Arch:00", nil, ""},
		{"a ROM before PXE 2.1", "PXEClient", nil, pools.BIOS},
		{"an HTTP client of no architecture", "HTTPClient", nil, ""},
		{"Linux", "", nil, ""},
		{"Windows", "MSFT 5.0", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := dhcp.FirmwareOf(tt.class, tt.archs); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestNoLoaderOfMoreBits is W6: each architecture of IANA's registry gets a loader of its
// own bits, or none.
func TestNoLoaderOfMoreBits(t *testing.T) {
	with := map[uint16]string{
		0: "undionly.kpxe", 7: "snponly.efi", 9: "snponly.efi", 16: "snponly.efi", 11: "snponly-arm64.efi", 19: "snponly-arm64.efi",
		22: "boot.scr.uimg", 27: "snponly-riscv64.efi", 28: "snponly-riscv64.efi", 39: "snponly-loong64.efi", 40: "snponly-loong64.efi",
	}
	for n := range 0x120 {
		arch := uint16(n)
		for _, class := range []string{"", "PXEClient", "HTTPClient"} {
			got := dhcp.FirmwareOf(class, binary.BigEndian.AppendUint16(nil, arch)).Loader()
			if got != with[arch] {
				t.Errorf("architecture %d, class %q: got %q, want %q", arch, class, got, with[arch])
			}
		}
	}
}

func TestWhoAsks(t *testing.T) {
	s, _ := newServer()
	for _, tt := range []struct {
		name    string
		mods    []dhcpv4.Modifier
		ipxe    bool
		netboot bool
		file    string
	}{
		{"an operating system", []dhcpv4.Modifier{option(55, 1, 3, 6)}, false, false, ""},
		{"GRUB from a medium, behind a relay", []dhcpv4.Modifier{option(82, 1, 1, 'x')}, false, true, ""},
		{"GRUB from a medium", nil, false, true, ""},
		{"a ROM", []dhcpv4.Modifier{arch(0), text(60, "PXEClient:Arch:00000")}, false, true, "undionly.kpxe"},
		{"a ROM without a class", []dhcpv4.Modifier{arch(7)}, false, true, "snponly.efi"},
		{"iPXE by user class", []dhcpv4.Modifier{arch(0), text(77, "iPXE")}, true, true, "http://10.28.0.2/boot/52-54-00-00-00-01"},
		{"iPXE by a proper user class", []dhcpv4.Modifier{arch(7), text(77, "\x03abc\x04iPXE")}, true, true, "http://10.28.0.2/boot/52-54-00-00-00-01"},
		{"iPXE by its options", []dhcpv4.Modifier{arch(7), option(175, 177, 1, 1)}, true, true, "http://10.28.0.2/boot/52-54-00-00-00-01"},
		{"another user class", []dhcpv4.Modifier{arch(7), text(77, "\x04kvm1")}, false, true, "snponly.efi"},
		{"a ROM of an unknown kind", []dhcpv4.Modifier{arch(6), text(60, "PXEClient:Arch:00006")}, false, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, x := s.Reply(on(t, message(web1, discover, tt.mods...)), noon)
			if x.IPXE != tt.ipxe || x.Netboot != tt.netboot {
				t.Errorf("got ipxe %t, netboot %t, want %t, %t", x.IPXE, x.Netboot, tt.ipxe, tt.netboot)
			}
			if r.BootFileName != tt.file || string(r.Options[67]) != tt.file {
				t.Errorf("got file %q, option 67 %q, want %q", r.BootFileName, r.Options[67], tt.file)
			}
			// A ROM that gets the class PXEClient searches for a boot server.
			if _, ok := r.Options[60]; ok && tt.file == "" {
				t.Error("got a class though there is nothing to boot")
			}
		})
	}
}

// TestNoLoader (W6): the log has a warning for a boot program that drover has no loader
// for. It gets an address, no file and no class.
func TestNoLoader(t *testing.T) {
	class := func(n int) dhcpv4.Modifier { return text(60, fmt.Sprintf("PXEClient:Arch:%05d:UNDI:003000", n)) }
	for name, mods := range map[string][]dhcpv4.Modifier{
		"Itanium":                    {arch(2), class(2)},
		"32-bit UEFI":                {arch(6), class(6)},
		"32-bit UEFI without 93":     {class(6)},
		"32-bit UEFI without class":  {arch(6)},
		"32-bit ARM":                 {arch(10), class(10)},
		"PowerPC Open Firmware":      {arch(12), class(12)},
		"PowerPC OPAL":               {arch(14), class(14)},
		"32-bit ARM HTTP":            {arch(18), text(60, "HTTPClient:Arch:00018:UNDI:003000")},
		"BIOS HTTP":                  {arch(20), text(60, "HTTPClient:Arch:00020")},
		"RISC-V 32":                  {arch(0x19), class(0x19)},
		"32-bit UEFI by HTTP":        {arch(15), text(60, "HTTPClient:Arch:00015")},
		"RISC-V U-Boot":              {arch(27), text(60, "U-Boot")},
		"32-bit U-Boot":              {arch(21), text(60, "U-Boot.armv7")},
		"an architecture of nobody":  {arch(0xfffe), class(0xfffe)},
		"HTTP of no architecture":    {text(60, "HTTPClient")},
		"a class with rubbish in it": {text(60, "PXEClient:Arch:0x007")},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newServer()
			r, x := s.Reply(on(t, message(web1, discover, mods...)), noon)
			if r == nil || r.YourIPAddr.String() != "10.28.36.1" || r.BootFileName != "" || r.Options[67] != nil || r.Options[60] != nil {
				t.Errorf("got %v", r)
			}
			if !strings.HasPrefix(x.Warning, "no loader for this architecture: ") || x.Level() != slog.LevelWarn || !x.Netboot || x.Kind() == string(x.Decision) {
				t.Errorf("got warning %q, netboot %t, kind %q", x.Warning, x.Netboot, x.Kind())
			}
			p, _ := newProxy()
			if r, x := p.Reply(on(t, message(web1, discover, mods...)), noon); r != nil || x.Warning == "" {
				t.Errorf("in proxy mode: got %v, warning %q", r, x.Warning)
			}
		})
	}
	for name, mods := range map[string][]dhcpv4.Modifier{
		"iPXE of any kind": {arch(6), class(6), text(77, "iPXE")}, "GRUB from a medium": nil, "BIOS": {arch(0)}, "bare PXEClient": {text(60, "PXEClient")},
		"first known of several": {option(93, 0, 6, 0, 7)}, "a system": {option(55, 1, 3)},
	} {
		s, _ := newServer()
		p, _ := newProxy()
		_, full := s.Reply(on(t, message(web1, discover, mods...)), noon)
		_, proxy := p.Reply(on(t, message(web1, discover, mods...)), noon)
		if full.Warning+proxy.Warning != "" {
			t.Errorf("%s: got warnings %q and %q", name, full.Warning, proxy.Warning)
		}
	}
}
