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
