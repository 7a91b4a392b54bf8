package dhcp_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/pools"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// uuid is option 97 as firmware sends it: a zero byte, then the SMBIOS UUID.
func uuid() dhcpv4.Modifier {
	return option(97, 0, 0x33, 0x38, 0x30, 0x34, 0x31, 0x35, 0x43, 0x5a, 0x32, 0x30, 0x37, 0x30, 0x36, 0x54, 0x4e, 0x31)
}

// hardwareID is option 61 as most clients send it: hardware type and MAC.
func hardwareID(m pools.MAC) dhcpv4.Modifier { return option(61, append([]byte{1}, m[:]...)...) }

func undi(minor byte) dhcpv4.Modifier { return option(94, 1, 3, minor) }

// The first DISCOVER of each client, with the options that it was seen to
// send.
func firstDiscovers() map[string]*dhcpv4.DHCPv4 {
	rom := option(55, 1, 2, 3, 4, 5, 6, 12, 13, 15, 17, 18, 22, 23, 28, 40, 41, 42, 43, 50, 51, 54, 58, 59, 60, 66, 67, 97, 128, 129, 130, 131, 132, 133, 134, 135)
	ipxe := option(55, 1, 3, 6, 7, 12, 15, 17, 26, 43, 60, 66, 67, 119, 128, 129, 130, 131, 132, 133, 134, 135, 175, 203)
	features := option(175, 0xb1, 5, 1, 0x80, 0x86, 0x10, 0x0e, 0xeb, 3, 1, 0, 0, 0x17, 1, 1, 0x22, 1, 1, 0x13, 1, 1, 0x19, 1, 1)
	flag := dhcpv4.WithBroadcast(true)
	return map[string]*dhcpv4.DHCPv4{
		"ipxe-bios": message(web1, discover, text(60, "PXEClient:Arch:00000:UNDI:002001"), text(77, "iPXE"), arch(0), undi(1),
			hardwareID(web1), uuid(), option(57, 5, 0xc0), ipxe, features),
		"ipxe-efi": message(web1, discover, text(60, "PXEClient:Arch:00007:UNDI:003010"), text(77, "iPXE"), arch(7), undi(16),
			hardwareID(web1), uuid(), option(57, 5, 0xc0), ipxe, features),
		"pxe-rom": message(web1, discover, text(60, "PXEClient:Arch:00000:UNDI:002001"), arch(0), option(94, 1, 2, 1), uuid(), rom, flag),
		"ovmf-pxe": message(web1, discover, text(60, "PXEClient:Arch:00007:UNDI:003000"), arch(7), undi(0), uuid(),
			option(57, 5, 0xc0), rom),
		"ovmf-http": message(web1, discover, text(60, "HTTPClient:Arch:00016:UNDI:003000"), arch(16), undi(0), uuid(),
			option(57, 5, 0xc0), rom),
		"aavmf-pxe": message(stray, discover, text(60, "PXEClient:Arch:00011:UNDI:003000"), arch(11), undi(0), uuid(),
			option(57, 5, 0xc0), rom),
		"u-boot": message(stray, discover, text(60, "U-Boot.armv8"), arch(22), option(94, 1, 0, 0), option(57, 2, 0x40),
			option(55, 1, 3, 6, 12, 17, 66, 67)),
		"systemd-networkd": message(web1, discover, hardwareID(web1), text(12, "localhost"), option(57, 5, 0xb8),
			option(55, 1, 3, 6, 12, 15, 26, 33, 42, 119, 120, 121)),
		"linux-ipconfig": message(stray, discover, text(60, "Linux ipconfig"), option(55, 1, 3, 6, 12, 15, 17, 26, 28, 40)),
		"relayed": message(stray, discover, giaddr("10.28.0.254"), option(82, 1, 4, 'g', 'e', '-', '7'), hardwareID(stray),
			option(55, 1, 3, 6)),
	}
}

func TestGolden(t *testing.T) {
	for name, d := range firstDiscovers() {
		t.Run(name, func(t *testing.T) {
			s, _ := newServer()
			s.Farm = farm{options: []pools.Option{{Code: 42, Data: []byte{10, 28, 0, 1}}}}
			r, x := s.Reply(on(t, d), noon)
			if r == nil {
				t.Fatalf("got silence, %q: %v", x.Decision, x.Err)
			}
			golden(t, name, picture(t, d, r))
		})
	}
}

// picture shows a request and its reply to people and byte for byte.
func picture(t *testing.T, d, r *dhcpv4.DHCPv4) []byte {
	var b bytes.Buffer
	to, hw := dhcp.DestinationOf(r)
	fmt.Fprintf(&b, "# request\n%s\n%s\n", on(t, d).Summary(), hex.Dump(d.ToBytes()))
	fmt.Fprintf(&b, "# reply, sent to %s %s\n%s\n%s", to, hw, on(t, r).Summary(), hex.Dump(r.ToBytes()))
	return b.Bytes()
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update rewrites it), got:\n%s", path, got)
	}
}
