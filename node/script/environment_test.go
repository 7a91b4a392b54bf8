package script

import (
	"net/netip"
	"slices"
	"testing"

	"drover/node/nic"
)

// TestLeaseEnv: all variables that LTSP has, and that the scripts of kubefarm read.
func TestLeaseEnv(t *testing.T) {
	addr := netip.MustParseAddr
	full := &nic.NIC{Name: "eth0", MAC: testMAC, Server: "10.28.0.1", Lease: nic.Lease{
		Address: netip.MustParsePrefix("10.28.36.174/16"), DNS: []netip.Addr{addr("10.28.0.1"), addr("10.28.0.3"), addr("10.28.0.4")},
		Search: []string{"example.org", "example.net"},
		Routes: []nic.Route{{To: netip.MustParsePrefix("10.0.0.0/8"), Via: addr("10.28.0.9")}, {To: netip.MustParsePrefix("0.0.0.0/0"), Via: addr("10.28.0.1")}},
	}}
	got := LeaseEnv(full, "eno1", "m1c31")
	want := []string{
		"DEVICE=eno1", "DNS_SERVER=10.28.0.1 10.28.0.3 10.28.0.4", "GATEWAY=10.28.0.1", "HOSTNAME=m1c31",
		"IPCONFIG_DEVICE=eno1", "IPCONFIG_DNSDOMAIN=example.org", "IPCONFIG_HOSTNAME=m1c31", "IPCONFIG_IPV4ADDR=10.28.36.174",
		"IPCONFIG_IPV4BROADCAST=10.28.255.255", "IPCONFIG_IPV4DNS0=10.28.0.1", "IPCONFIG_IPV4DNS1=10.28.0.3", "IPCONFIG_IPV4GATEWAY=10.28.0.1",
		"IPCONFIG_IPV4NETMASK=255.255.0.0", "IPCONFIG_IPV4PROTO=dhcp", "IPCONFIG_PROTO=dhcp", "IPCONFIG_ROOTSERVER=10.28.0.1",
		"IP_ADDRESS=10.28.36.174", "MAC_ADDRESS=" + testMAC.String(), "SERVER=10.28.0.1",
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	// Without a value a variable is empty, so that "set -u" finds all.
	six := LeaseEnv(&nic.NIC{MAC: testMAC, Server: "fd00::1", Lease: nic.Lease{Address: netip.MustParsePrefix("fd00::5/128")}}, "eno1", "m1")
	if len(six) != len(want) || !slices.Contains(six, "IPCONFIG_IPV4ADDR=") || !slices.Contains(six, "IP_ADDRESS=fd00::5") || !slices.Contains(six, "GATEWAY=") {
		t.Errorf("IPv6 only: got %q", six)
	}
}

func TestConfigEnv(t *testing.T) {
	got := ConfigEnv(map[string]string{"RACK": "r 1=2", "A": "", "X=Y": "no", "": "no", "N": "a\x00b"})
	if want := []string{"A=", "RACK=r 1=2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
