package resolve_test

import (
	"encoding/hex"
	"net/netip"
	"testing"

	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
)

const machinesConfig = `
server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16}]
pools:
- name: web
  image: b
  nodes:
  - {name: dell, match: {uuid: 4C4C4544-0034-4210-8035-b4c04f4d3132}, ip: 10.28.0.10}
  - {name: pi, match: {serial: 10000000e0ff06da}, ip: 10.28.0.11}
  - {name: pinned, macs: ["52:54:00:00:00:01"], match: {uuid: 00000000-0000-0000-0000-525400000001}, ip: 10.28.0.12}
- {name: dells, catchall: true, image: b, match: {uuid: "4c4c4544-*"}, range: 10.28.60.1-10.28.60.99}
- {name: one-pi, catchall: true, image: b, match: {serial: 6aee7243}, range: 10.28.61.1-10.28.61.99}
- {name: lobby, catchall: true, image: b, range: 10.28.72.1-10.28.72.99}
`

// TestMatchMachine: machines are known by option 97, in the byte order of firmware or of
// iPXE. The bytes of the Raspberry Pi are those of a capture.
func TestMatchMachine(t *testing.T) {
	f, err := config.Parse("x.yaml", []byte(machinesConfig))
	if err != nil {
		t.Fatal(err)
	}
	unknown, pinned := mac(t, "52:54:00:77:01:01"), mac(t, "52:54:00:00:00:01")
	for _, tt := range []struct {
		name, id      string // option 97 without its type
		mac           pools.MAC
		node, matched string // "": no answer
		pool          string
	}{
		{"iPXE", "4c4c4544003442108035b4c04f4d3132", unknown, "dell", "uuid", "web"},
		{"its firmware", "44454c4c340010428035b4c04f4d3132", unknown, "dell", "uuid", "web"},
		{"another of the vendor", "44454c4c340010428035b4c04f4d3133", unknown, "node-525400770101", "", "dells"},
		{"another of the vendor, by iPXE", "4c4c4544003442108035b4c04f4d3133", unknown, "node-525400770101", "", "dells"},
		{"another vendor", "564d0000003442108035b4c04f4d3132", unknown, "node-525400770101", "", "lobby"},
		{"a Raspberry Pi 4", "525069343031c00032ecfc3cda06ffe0", unknown, "pi", "serial", "web"},
		{"a Raspberry Pi 5", "525069353031c00032ecfc3cda06ffe0", unknown, "pi", "serial", "web"},
		{"in the other byte order", "525069343031c00032ecfc3ce0ff06da", unknown, "pi", "serial", "web"},
		{"an old Raspberry Pi", "da06ffe0da06ffe0da06ffe0da06ffe0", unknown, "pi", "serial", "web"},
		{"another Raspberry Pi", "525069343031c00032ecfc3cda06ffe1", unknown, "node-525400770101", "", "lobby"},
		{"one of a pool", "4372ee6a4372ee6a4372ee6a4372ee6a", unknown, "node-525400770101", "", "one-pi"},
		{"a UUID that ends like it", "00000000000000000000000cda06ffe0", unknown, "node-525400770101", "", "lobby"},
		{"a short one", "da06ffe0", unknown, "node-525400770101", "", "lobby"},
		{"none", "", unknown, "node-525400770101", "", "lobby"},
		{"a card in its machine", "00000000000000000000525400000001", pinned, "pinned", "", "web"},
		{"a card in another machine", "00000000000000000000525400000002", pinned, "", "", ""},
		{"its operating system", "", pinned, "pinned", "", "web"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id, err := hex.DecodeString(tt.id)
			if err != nil {
				t.Fatal(err)
			}
			p := f.Resolve(resolve.Query{MAC: tt.mac, Link: netip.MustParseAddr("10.28.0.2"), UUID: string(id), Class: "PXEClient"})
			if p == nil && tt.node != "" || p != nil && (p.Node != tt.node || p.Matched != tt.matched || p.Pool != tt.pool) {
				t.Errorf("got %+v, want node %q by %q in pool %s", p, tt.node, tt.matched, tt.pool)
			}
		})
	}
}
