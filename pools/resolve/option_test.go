package resolve_test

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"drover/pools/config"
	"drover/pools/resolve"
)

// TestOptionBytes checks the encoding of each kind of DHCP option (RFC 2132, 3397 and
// 3442).
func TestOptionBytes(t *testing.T) {
	for in, want := range map[string]string{
		`ntp-server: 10.28.0.1`:                            "42 0a1c0001",
		`ntp-server: [10.28.0.1, 10.28.0.2]`:               "42 0a1c00010a1c0002",
		`42: "10.28.0.1,10.28.0.2"`:                        "42 0a1c00010a1c0002",
		`"option:mtu": 9000`:                               "26 2328",
		`default-ttl: 64`:                                  "23 40",
		`time-offset: -3600`:                               "2 fffff1f0",
		`ip-forward-enable: true`:                          "19 01",
		`domain-search: [example.org, b.c]`:                "119 076578616d706c65036f726700" + "0162016300",
		`classless-static-route: 10.0.0.0/8=10.28.0.1`:     "121 080a0a1c0001",
		`121: [0.0.0.0/0=10.28.0.1, 10.1.2.0/23=10.0.0.1]`: "121 000a1c0001" + "170a01020a000001",
		`vendor-encap: "01:04:0a:1c:00:01"`:                "43 01040a1c0001",
		`224: hello`:                                       "224 68656c6c6f",
		`225: "10.0.0.1"`:                                  "225 0a000001",
		`226: "hex:00ff"`:                                  "226 00ff",
		`226: "text:7"`:                                    "226 37",
		`227: "uint16:7"`:                                  "227 0007",
		`43.6: "uint8:8"`:                                  "43 060108",
		`{43.9: a, 43.1: 10.0.0.1}`:                        "43 01040a000001" + "090161",
		`vendor-encap.66: text:x`:                          "43 420178",
		`175.190: drover`:                                  "175 be0664726f766572",
		`124.311: MSFT 5.0`:                                "124 00000137" + "08" + "4d53465420352e30",
		`{125.311.2: b, 125.311.1: "uint8:1", 125.9.1: c}`: "125 00000009" + "03" + "010163" + "00000137" + "06" + "010101" + "020162",
		`posix-timezone: "CET-1CEST,M3.5.0,M10.5.0/3"`:     "100 4345542d31434553542c4d332e352e302c4d31302e352e302f33",
	} {
		t.Run(in, func(t *testing.T) {
			f, err := config.Parse("x.yaml", []byte("server: {interfaces: [eth1]}\nsubnets: [{cidr: 10.0.0.0/24}]\n"+
				"tags: {all: {dhcpOptions: {"+strings.Trim(in, "{}")+"}}}\npools: [{name: a, image: b, catchall: true, range: 10.0.0.5-10.0.0.9}]\n"))
			if err != nil {
				t.Fatal(err)
			}
			o := f.Resolve(resolve.Query{MAC: mac(t, "525400abcdef")}).Options[0]
			if got := fmt.Sprintf("%d %s", o.Code, hex.EncodeToString(o.Data)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestBadOptions(t *testing.T) {
	for _, in := range []string{
		`mtu: 70000`, `mtu: [1, 2]`, `ntp-server: "::1"`, `static-route: 10.0.0.1`, `domain-search: "a..b"`,
		`121: 10.0.0.1/8=10.0.0.1`, `43: xyz`, `0: a`, `255: a`, `256: a`, `hostname: a`, `224: ""`,
		`"44@x": 10.0.0.1`, `"43.1@": a`, `"force:108": 1`, `"force:force:43": "01"`, `"force:51": 1`, `"force:42": 10.0.0.1, 42: 10.0.0.1`, `"43@x": "01", "43.1@x": a`,
		`43.0: a`, `43.255: a`, `43.256: a`, `43.: a`, `43.1.2: a`, `124.1.2: a`, `125.1: a`, `125.x.1: a`, `224.1: a`,
		`43.1: "` + strings.Repeat("x", 256) + `"`, `43.1: a, 43: "0101"`, `226: "uint8:256"`,
		`224: "` + strings.Repeat("x", 1025) + `"`,
	} {
		_, err := config.Parse("x.yaml", []byte("server: {interfaces: [eth1]}\nsubnets: [{cidr: 10.0.0.0/24}]\n"+
			"tags: {all: {dhcpOptions: {"+in+"}}}\npools: [{name: a, image: b}]\n"))
		if err == nil || !strings.Contains(err.Error(), "x.yaml:3: ") || !strings.Contains(err.Error(), "DHCP option") {
			t.Errorf("%.60s: got %v, want a mistake in line 3", in, err)
		}
	}
}

// TestOptionLayers: a later tag replaces one part and keeps the others; a whole option
// replaces its parts.
func TestOptionLayers(t *testing.T) {
	f, err := config.Parse("x.yaml", []byte(`
server: {interfaces: [eth1]}
subnets: [{cidr: 10.0.0.0/24}]
tags:
  all: {dhcpOptions: {43.1: a, 43.2: b}}
  part: {dhcpOptions: {43.2: c}}
  whole: {dhcpOptions: {43: "0301ff"}}
pools:
- name: a
  image: b
  nodes:
  - {name: parts, macs: ["52:54:00:00:00:01"], ip: 10.0.0.1, tags: [part]}
  - {name: whole, macs: ["52:54:00:00:00:02"], ip: 10.0.0.2, tags: [part, whole]}
  - {name: again, macs: ["52:54:00:00:00:03"], ip: 10.0.0.3, tags: [whole, part]}
  - {name: own, macs: ["52:54:00:00:00:04"], ip: 10.0.0.4, tags: [part], dhcpOptions: {43.1: z}}
`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"parts": "010161020163", "whole": "0301ff", "again": "020163", "own": "01017a020163"} {
		n, _ := f.Node(name)
		if got := hex.EncodeToString(f.Resolve(resolve.Query{MAC: n.MACs[0]}).Options[0].Data); got != want {
			t.Errorf("%s: got option 43 %s, want %s", name, got, want)
		}
	}
}

// FuzzOption: any value of an option is either an error, or bytes of a valid length.
func FuzzOption(f *testing.F) {
	for _, seed := range [][2]string{{"ntp-server", "10.28.0.1"}, {"43.6", "uint8:8"}, {"125.311.1", "text:x"},
		{"121", "10.0.0.0/8=10.28.0.1"}, {"119", "example.org, b.c"}, {"option:mtu", "9000"}, {"43", "hex:0101"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		text := fmt.Sprintf("server: {interfaces: [eth1]}\nsubnets: [{cidr: 10.0.0.0/24}]\ntags: {all: {dhcpOptions: {%q: %q}}}\n"+
			"pools: [{name: a, image: b, catchall: true, range: 10.0.0.5-10.0.0.9}]\n", key, value)
		farm, err := config.Parse("x.yaml", []byte(text))
		if err != nil {
			return
		}
		for _, o := range farm.Resolve(resolve.Query{MAC: mac(t, "525400abcdef")}).Options {
			if o.Code == 0 || o.Code == 255 || len(o.Data) == 0 || len(o.Data) > 1024 {
				t.Errorf("%q: %q became option %d of %d bytes", key, value, o.Code, len(o.Data))
			}
		}
	})
}
