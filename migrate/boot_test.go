package migrate_test

import (
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/e2e/importtest"
	"drover/migrate"
	"drover/migrate/dhcpd"
	"drover/migrate/kea"
)

// TestBootFilesAndClasses: boot files and servers are drover's own matter, wherever they stand;
// classes and conditions are listed with all that they have, and nothing of them is written.
func TestBootFilesAndClasses(t *testing.T) {
	const dnsmasqText = `dhcp-range=10.28.0.0,static,255.255.255.0
dhcp-host=52:54:00:28:00:11,10.28.0.11,m1
dhcp-vendorclass=set:pxe,PXEClient
dhcp-boot=pxelinux.0,boothost,10.28.0.9
dhcp-boot=tag:pxe,grubx64.efi
dhcp-option=66,10.28.0.9
dhcp-option=tag:pxe,option:bootfile-name,x.efi
dhcp-option=option:server-ip-address,10.28.0.9
dhcp-option=tag:pxe,option:time-offset,1
pxe-service=x86PC,"Boot from local disk"
`
	const dhcpdText = `option arch code 93 = unsigned integer 16;
next-server 10.28.0.9;
class "pxeclients" {
  match if substring (option vendor-class-identifier, 0, 9) = "PXEClient";
  next-server 10.28.0.9;
  if option arch = 00:07 or option arch = 00:09 {
    filename "grubx64.efi";
  } else {
    filename "pxelinux.0";
    option time-offset 1;
  }
}
subnet 10.28.0.0 netmask 255.255.255.0 { }
host m1 { hardware ethernet 52:54:00:28:00:11; fixed-address 10.28.0.11;
  filename "special.0"; }
`
	const keaText = `{"Dhcp4": {
  "next-server": "10.28.0.9",
  "client-classes": [
    {"name": "uefi",
     "test": "not member('ipxe') and option[93].hex == 0x0007",
     "option-data": [{"name": "boot-file-name", "data": "uefi/grubx64.efi"},
       {"name": "tftp-server-name", "data": "10.28.0.9"},
       {"name": "time-offset", "data": "3600"}]},
    {"name": "ipxe", "test": "substring(option[77].hex,0,4) == 0x69505845",
     "boot-file-name": "http://10.28.0.9/boot.ipxe"}],
  "subnet4": [{"subnet": "10.28.0.0/24",
    "reservations": [{"hw-address": "52:54:00:28:00:11", "ip-address": "10.28.0.11", "hostname": "m1",
      "client-classes": ["uefi"]}]}]}}`
	for _, tt := range []struct {
		name, text string
		read       func(*migrate.Farm, []string) error
		itself     []int // lines that drover does itself
		not        []int // lines that are not taken
	}{
		{"dnsmasq", dnsmasqText, conf, []int{4, 5, 6, 7, 8, 10}, []int{9}},
		{"isc-dhcpd", dhcpdText, dhcpd.Read, []int{2, 15}, []int{3, 4, 5, 6, 7, 8, 9, 10}},
		{"kea", keaText, kea.Read, []int{2}, []int{4, 9, 13}}, // a class with all that it has,
	} {
		r, c := importtest.Text(t, tt.read, tt.text)
		has := func(line int, kind migrate.Kind) {
			for _, n := range r.Notes {
				if n.Line == line && n.Kind == kind {
					return
				}
			}
			t.Errorf("%s:%d is not %q\n%s", tt.name, line, kind, importtest.Report(r))
		}
		for _, line := range tt.itself {
			has(line, migrate.Itself)
		}
		for _, line := range tt.not {
			has(line, migrate.NotTaken)
		}
		var text strings.Builder
		for line := range strings.Lines(string(r.Config())) {
			if !strings.HasPrefix(line, "#") {
				text.WriteString(line)
			}
		}
		fixture.WantNoText(t, tt.name, text.String(), "loaders", "grub", "pxelinux", "special", "boot.ipxe", "time-offset", "3600", "10.28.0.9")
		if len(c.Pools) != 1 || r.Partial || r.Restricted {
			t.Errorf("%s: %d pools\n%s", tt.name, len(c.Pools), importtest.Report(r))
		}
	}
}
