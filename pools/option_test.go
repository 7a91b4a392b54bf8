package pools_test

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"drover/pools"
)

// TestOptionBytes checks the wire form of each kind of DHCP option, as RFC
// 2132, 3397 and 3442 have it.
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
		`posix-timezone: "CET-1CEST,M3.5.0,M10.5.0/3"`:     "100 4345542d31434553542c4d332e352e302c4d31302e352e302f33",
	} {
		t.Run(in, func(t *testing.T) {
			f, err := pools.Parse("x.yaml", []byte("server: {interfaces: [eth1]}\nsubnets: [{cidr: 10.0.0.0/24}]\n"+
				"tags: {all: {dhcpOptions: {"+in+"}}}\npools: [{name: a, image: b, catchall: true, range: 10.0.0.5-10.0.0.9}]\n"))
			if err != nil {
				t.Fatal(err)
			}
			o := f.Resolve(pools.Query{MAC: mac(t, "525400abcdef")}).Options[0]
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
		`224: "` + strings.Repeat("x", 1025) + `"`,
	} {
		_, err := pools.Parse("x.yaml", []byte("server: {interfaces: [eth1]}\nsubnets: [{cidr: 10.0.0.0/24}]\n"+
			"tags: {all: {dhcpOptions: {"+in+"}}}\npools: [{name: a, image: b}]\n"))
		if err == nil || !strings.Contains(err.Error(), "x.yaml:3: ") || !strings.Contains(err.Error(), "DHCP option") {
			t.Errorf("%.60s: got %v, want a mistake of line 3", in, err)
		}
	}
}
