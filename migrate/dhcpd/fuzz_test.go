package dhcpd

import (
	"os"
	"testing"

	"drover/migrate"
)

// FuzzConf: no text of dhcpd.conf ends the program, and whatever is written is a farm.
func FuzzConf(f *testing.F) {
	for _, text := range []string{
		"subnet 10.0.0.0 netmask 255.0.0.0 { range 10.0.0.1 10.0.0.9; option routers 10.0.0.1; } host a { hardware ethernet 2:0:0:0:0:1; fixed-address 10.0.0.2; }",
		"class \"x\" { match if substring (option vendor-class-identifier, 0, 9) = \"PXE\"; if option arch = 00:07 { filename \"a\"; } else { filename \"b\"; } }",
		"option x code 224 = array of integer 8; option x 1, 2; include \"y\"; group { option x 1; host b { } } shared-network n { pool { allow members of \"x\"; } }",
		"subnet6 fd00::/64 { range6 fd00::/80; } host c { host-identifier option dhcp6.client-id 0:1:0:1:0:0:0:0:2:0:0:0:0:1; fixed-address6 fd00::1; }",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := &parser{left: 1 << 16, read: func(path string) ([]byte, error) {
			if path != "x" {
				return nil, os.ErrNotExist
			}
			return []byte(text), nil
		}}
		all, err := p.file("x")
		if err != nil {
			return
		}
		farm := migrate.NewFarm(migrate.Options{})
		newReader(farm).fill(all)
		farm.Finish()
	})
}
