package dhcp_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/pools"
	"drover/pools/resolve"
)

// behind returns the value of an option, and the byte behind it in the packet.
func behind(packet []byte, code uint8) (value string, next byte, ok bool) {
	for b := packet[240:]; len(b) > 1 && b[0] != 255; {
		if b[0] == 0 {
			b = b[1:]
			continue
		}
		n := 2 + int(b[1])
		if b[0] == code {
			return string(b[2:n]), b[n], true
		}
		b = b[n:]
	}
	return "", 0, false
}

// TestEndOfBootFile: a ROM that reads option 67 up to a NUL gets the file's name, and no old ROM gets
// an option 67 that it did not list.
func TestEndOfBootFile(t *testing.T) {
	bios, uefi := text(60, "PXEClient:Arch:00000:UNDI:002001"), text(60, "PXEClient:Arch:00007:UNDI:003016")
	pxe := []byte{1, 2, 3, 5, 6, 11, 12, 13, 15, 16, 17, 18, 43, 54, 60, 67, 128, 129, 130, 131, 132, 133, 134, 135}
	for _, tt := range []struct {
		name  string
		in    *dhcpv4.DHCPv4
		file  string
		sends bool // option 67
	}{
		{"a BIOS", message(web1, discover, bios, arch(0), option(55, pxe...)), "undionly.kpxe", true},
		{"a BIOS, ACK", message(web1, request, serverID(serverAddr), requested("10.28.36.1"), bios, arch(0), option(55, pxe...)), "undionly.kpxe", true},
		{"a BIOS that does not list 67", message(web1, discover, bios, arch(0), option(55, 1, 3, 6, 43)), "undionly.kpxe", false},
		{"a BIOS without a list", message(web1, discover, bios, arch(0)), "undionly.kpxe", true},
		{"a ROM before PXE 2.1 that does not list 67", message(web1, discover, text(60, "PXEClient"), option(55, 1, 3)), "undionly.kpxe", false},
		{"UEFI, 67 before 97", message(web1, discover, uefi, arch(7), option(55, 1, 3, 67, 97), option(97, make([]byte, 17)...)), "snponly.efi", true},
		{"UEFI, 67 last", message(web1, discover, uefi, arch(7), option(55, 1, 3, 43, 51, 54, 60, 66, 67)), "snponly.efi", true},
		{"UEFI that does not list 67", message(web1, discover, uefi, arch(7), option(55, 1, 3)), "snponly.efi", true},
		{"UEFI by HTTP", message(web1, discover, text(60, "HTTPClient:Arch:00016:UNDI:003016"), arch(16), option(55, 1, 3)), "http://10.28.0.2/loaders/snponly.efi", true},
	} {
		s, _ := newServer()
		if r, x := s.handle(tt.in.ToBytes(), noon); r == nil || r.BootFileName != tt.file {
			t.Fatalf("%s: got %v, %q", tt.name, r, x.Decision)
		}
		value, next, ok := behind(s.last.Append(nil), 67)
		if ok != tt.sends || ok && (value != tt.file || next != 0) {
			t.Errorf("%s: got %t, %q and then %#x", tt.name, ok, value, next)
		}
	}
}

// TestIPXEWithoutHTTP: an iPXE that lists its features without HTTP gets the loader of its firmware
// by TFTP. Others get their script.
func TestIPXEWithoutHTTP(t *testing.T) {
	const script = "http://10.28.0.2/boot/52-54-00-00-00-01"
	f := farmOf(t, `
subnets: [{cidr: 10.28.0.0/16}]
tags:
  menu: {loaders: [{userClass: iPXE, loader: "http://10.28.0.9/menu.ipxe"}, {firmware: uefi-x64, loader: shimx64.efi}]}
pools:
  - {name: web, image: i, nodes: [{name: a, macs: ["`+web1.String()+`"], ip: 10.28.36.1}]}
  - {name: lobby, catchall: true, image: i, tags: [menu], range: 10.28.72.10-10.28.72.20}
`)
	ipxe, bios, uefi := text(77, "iPXE"), text(60, "PXEClient:Arch:00000:UNDI:002001"), text(60, "PXEClient:Arch:00007:UNDI:003016")
	without, with := option(175, 0xeb, 3, 1, 0, 0, 0x18, 1, 1, 0x21, 1, 1), option(175, 0xeb, 3, 1, 0, 0, 0x18, 1, 1, 0x13, 1, 1)
	for _, tt := range []struct {
		name string
		mac  pools.MAC
		mods []dhcpv4.Modifier
		want string
	}{
		{"BIOS", web1, []dhcpv4.Modifier{ipxe, bios, arch(0), without}, "undionly.kpxe"},
		{"BIOS with HTTP", web1, []dhcpv4.Modifier{ipxe, bios, arch(0), with}, script},
		{"with HTTP switched off", web1, []dhcpv4.Modifier{ipxe, bios, arch(0), option(175, 0x18, 1, 1, 0x13, 1, 0)}, "undionly.kpxe"},
		{"UEFI", web1, []dhcpv4.Modifier{ipxe, uefi, arch(7), without}, "snponly.efi"},
		{"UEFI that was loaded by HTTP", web1, []dhcpv4.Modifier{ipxe, text(60, "HTTPClient:Arch:00016:UNDI:003016"), arch(16), without}, "snponly.efi"},
		{"no option 175", web1, []dhcpv4.Modifier{ipxe, bios, arch(0)}, script},
		{"no features", web1, []dhcpv4.Modifier{ipxe, bios, arch(0), option(175, 0xeb, 3, 1, 0, 0)}, script},
		{"a setting alone", web1, []dhcpv4.Modifier{bios, arch(0), option(175, 177, 1, 1)}, script},
		{"cut off", web1, []dhcpv4.Modifier{ipxe, bios, arch(0), option(175, 0x18, 1, 1, 0x21, 9)}, script},
		{"no loader for its firmware", web1, []dhcpv4.Modifier{ipxe, without}, script},
		{"a rule with a URL", stray, []dhcpv4.Modifier{ipxe, bios, arch(0), without}, "undionly.kpxe"},
		{"a rule with a file", stray, []dhcpv4.Modifier{ipxe, uefi, arch(7), without}, "shimx64.efi"},
		{"a rule with a URL, and HTTP", stray, []dhcpv4.Modifier{ipxe, uefi, arch(7), with}, "http://10.28.0.9/menu.ipxe"},
	} {
		s, _ := newServer()
		s.Farm = f
		r, x := s.handle(message(tt.mac, discover, tt.mods...).ToBytes(), noon)
		if r == nil || r.BootFileName != tt.want || r.ServerIPAddr.String() != serverAddr.String() {
			t.Errorf("%s: got %v, %q; want %q", tt.name, r, x.Decision, tt.want)
		}
	}
}

// TestLongBootURL: a URL that is longer than the file field is in option 67 whole, for clients that
// list it or not, and the field stays empty.
func TestLongBootURL(t *testing.T) {
	for _, n := range []int{127, 128, 255, 256, 400} {
		url := "http://boot.example.org/" + strings.Repeat("x", n-24)
		for _, in := range []*dhcpv4.DHCPv4{
			message(web1, discover, arch(7), text(77, "iPXE"), option(55, 1, 67), option(57, 1472>>8, 1472&255)),
			message(web1, discover, arch(0), text(60, "PXEClient:Arch:00000:UNDI:002001"), option(55, 1, 3)),
			message(web1, discover, text(60, "HTTPClient:Arch:00016:UNDI:003016"), arch(16), option(55, 1, 67)),
		} {
			s, _ := newServer()
			s.Farm = farmFunc(func(p *resolve.Plan) { p.Boot.File = url })
			r, x := s.handle(in.ToBytes(), noon)
			if r == nil || x.Decision != dhcp.Offered {
				t.Fatalf("%d bytes: got %v, %q", n, r, x.Decision)
			}
			file := url
			if n > 127 {
				file = ""
			}
			if got := string(r.Options[67]); r.BootFileName != file || got != url && (n > 127 || in.IsOptionRequested(dhcpv4.OptionBootfileName)) {
				t.Errorf("%d bytes: got file %q, 67 %q", n, r.BootFileName, got)
			}
			if packet := s.last.Append(nil); !bytes.Contains(packet, []byte(url[:min(n, 255)])) || len(packet) > 1472 {
				t.Errorf("%d bytes: the packet has %d bytes and not the URL", n, len(packet))
			}
		}
	}
}
