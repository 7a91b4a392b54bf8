package dhcp6_test

import (
	"fmt"
	"strings"
	"testing"

	"drover/dhcp/bootprogram"
	"drover/dhcp/dhcp6"
	"drover/pools"
)

// TestDescribe has the answers to the SOLICITs of boot programs as text.
func TestDescribe(t *testing.T) {
	for _, tt := range []struct {
		name string
		d    bootprogram.Discover
		want []string
	}{
		{"UEFI", bootprogram.Discover{MAC: m1, Firmware: pools.UEFIx64}, []string{
			"1 client identifier hex:00030001525400990001", "2 server identifier hex:00030001020000000001",
			"7 preference 255", "23 DNS servers fd00:28::53", "24 domain example.org", "3 address fd00:28::10 for 3600 s",
			"59 boot file tftp://[fd00:28::2]/snponly.efi",
		}},
		{"UEFI HTTP Boot", bootprogram.Discover{MAC: m1, Firmware: pools.UEFIx64HTTP}, []string{
			"16 vendor class HTTPClient", "59 boot file http://[fd00:28::2]/loaders/snponly.efi",
		}},
		{"iPXE", bootprogram.Discover{MAC: m1, Firmware: pools.UEFIx64, IPXE: true}, []string{
			"59 boot file http://[fd00:28::2]/boot/52-54-00-99-00-01",
		}},
		{"by its UUID", bootprogram.Discover{MAC: m1, UUID: strings.Repeat("u", 16)}, []string{
			"1 client identifier hex:0004" + strings.Repeat("75", 16), "23 DNS servers fd00:28::53",
		}},
		{"an operating system behind a switch port", bootprogram.Discover{MAC: stray, Relay: addr("fd00:29::1"), CircuitID: "eth7"}, []string{
			"3 address fd00:29::11 for 3600 s",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			var r dhcp6.Request
			r.Parse(tt.d.Solicit(), dhcp6.Sender{MAC: tt.d.MAC, Addr: linkLocal(tt.d.MAC), Port: 546})
			if r.MAC != tt.d.MAC {
				t.Errorf("the SOLICIT is of %s, want %s", r.MAC, tt.d.MAC)
			}
			answer, x := w.server.Reply(&r, own, noon)
			if answer == nil {
				t.Fatalf("silence: %s %v", x.Decision, x.Err)
			}
			options, err := dhcp6.Describe(answer.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			for _, o := range options {
				fmt.Fprintf(&text, "%d %s %s\n", o.Code, o.Name, o.Value)
			}
			for _, want := range tt.want {
				if !strings.Contains(text.String(), want) {
					t.Errorf("got\n%swant %q", text.String(), want)
				}
			}
		})
	}
}

// TestDescribeBroken: values that violate their specification are in hex.
func TestDescribeBroken(t *testing.T) {
	for name, tt := range map[string]struct{ packet, want string }{
		"a preference of two bytes":       {"\x02abc\x00\x07\x00\x02\x01\x02", "hex:0102"},
		"an IA_NA that is cut off":        {"\x02abc\x00\x03\x00\x03\x01\x02\x03", "hex:010203"},
		"an address that is cut off":      {"\x02abc\x00\x17\x00\x11" + strings.Repeat("\x01", 17), "hex:01"},
		"a domain that is cut off":        {"\x02abc\x00\x18\x00\x03\x05ab", "hex:056162"},
		"a domain without its end":        {"\x02abc\x00\x18\x00\x03\x02ab", "hex:026162"},
		"a vendor class without a class":  {"\x02abc\x00\x10\x00\x04\x00\x00\x01\x57", "hex:00000157"},
		"a URL with control characters":   {"\x02abc\x00\x3b\x00\x02a\x1b", "hex:611b"},
		"an option that nobody knows":     {"\x02abc\x03\xe7\x00\x02a\x1b", "hex:611b"},
		"a status without a code":         {"\x02abc\x00\x0d\x00\x01a", "hex:61"},
		"a status with a hostile message": {"\x02abc\x00\x0d\x00\x04\x00\x02\x1b[", "NoAddrsAvail"},
	} {
		options, err := dhcp6.Describe([]byte(tt.packet))
		if err != nil || len(options) != 1 || !strings.HasPrefix(options[0].Value, tt.want) {
			t.Errorf("%s: got %+v, %v; want %q", name, options, err, tt.want)
		}
	}
	for _, packet := range []string{"", "\x0d", "\x0d" + strings.Repeat("\x00", 33), "\x02", "\x02abc\x00\x07\x00\x02\x01", "\x0c"} {
		if options, err := dhcp6.Describe([]byte(packet)); err == nil {
			t.Errorf("%q: got %+v, want an error", packet, options)
		}
	}
}

// FuzzDescribe: no packet makes Describe fail otherwise than with an error, or leaves
// control characters in the text.
func FuzzDescribe(f *testing.F) {
	f.Add((&bootprogram.Discover{MAC: m1, Firmware: pools.UEFIx64HTTP}).Solicit())
	f.Add([]byte("\x02abc\x00\x18\x00\x04\x02ab\x00\x00\x0d\x00\x04\x00\x02ab"))
	f.Fuzz(func(t *testing.T, packet []byte) {
		options, _ := dhcp6.Describe(packet)
		for _, o := range options {
			if strings.ContainsFunc(o.Value, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("option %d: %q", o.Code, o.Value)
			}
		}
	})
}
