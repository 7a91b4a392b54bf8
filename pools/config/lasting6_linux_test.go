package config

import (
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLasting6(t *testing.T) {
	of := func(addr string, flags uint32, proto byte) address6 {
		return address6{netip.MustParsePrefix(addr + "/64"), flags, proto}
	}
	link := of("fe80::1", unix.IFA_F_PERMANENT, 0)
	for _, tt := range []struct {
		name string
		all  []address6
		want string
	}{
		{"none", nil, "[]"},
		{"link-local", []address6{link}, "[]"},
		{"SLAAC alone", []address6{link, of("fd00::a", 0, ifaProtoKernelRA)}, "[fd00::a/64]"},
		{"SLAAC first", []address6{of("fd00::a", 0, ifaProtoKernelRA), of("fd00::1", unix.IFA_F_PERMANENT, 0), link}, "[fd00::1/64]"},
		{"SLAAC without an end", []address6{of("fd00::a", unix.IFA_F_PERMANENT, ifaProtoKernelRA), of("fd00::1", unix.IFA_F_PERMANENT, 0)}, "[fd00::1/64]"},
		{"temporary", []address6{of("fd00::b", unix.IFA_F_TEMPORARY, 0), of("fd00::a", unix.IFA_F_MANAGETEMPADDR, 0)}, "[fd00::a/64]"},
		{"deprecated", []address6{of("fd00::b", unix.IFA_F_DEPRECATED, 0), of("fd00::1", unix.IFA_F_DEPRECATED|unix.IFA_F_PERMANENT, 0)}, "[]"},
		{"tentative", []address6{of("fd00::1", unix.IFA_F_TENTATIVE|unix.IFA_F_PERMANENT, 0), of("fd00::2", unix.IFA_F_PERMANENT|unix.IFA_F_DADFAILED, 0)}, "[]"},
		{"optimistic", []address6{of("fd00::1", unix.IFA_F_TENTATIVE|unix.IFA_F_OPTIMISTIC|unix.IFA_F_PERMANENT, 0)}, "[fd00::1/64]"},
	} {
		if got := fmt.Sprint(lasting6(tt.all)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}
