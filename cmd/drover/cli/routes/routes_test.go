package routes_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"drover/cmd/drover/cli/routes"
)

func TestParse(t *testing.T) {
	kernel := func(address string) string {
		a := netip.MustParseAddr(address).As4()
		return fmt.Sprintf("%08X", binary.NativeEndian.Uint32(a[:]))
	}
	text := "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n" +
		"eth0\t00000000\t" + kernel("10.0.0.1") + "\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" +
		"eth1\t" + kernel("192.168.4.0") + "\t00000000\t0001\t0\t0\t0\t" + kernel("255.255.252.0") + "\t0\t0\t0\n" +
		"eth2\tshort\n" +
		"eth3\t0000\t00000000\t0001\t0\t0\t0\t00000000\n"
	got := fmt.Sprint(routes.Parse(text))
	if want := "[{eth0 0.0.0.0/0 10.0.0.1} {eth1 192.168.4.0/22 0.0.0.0}]"; got != want {
		t.Errorf("got %s; want %s", got, want)
	}
}
