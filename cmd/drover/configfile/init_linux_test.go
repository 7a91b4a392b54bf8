package configfile

import (
	"bufio"
	"io"
	"net/netip"
	"strings"
	"testing"
	"testing/fstest"

	"drover/pools"
	"drover/pools/config"
)

// TestGateway: the router that is proposed is that of the default route, in the network.
func TestGateway(t *testing.T) {
	proc := fstest.MapFS{"net/route": {Data: []byte("Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n" +
		"eth1\t00000000\t01001C0A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" + "eth2\t00001C0A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\nbroken\n")}}
	for _, tt := range []struct{ card, network, want string }{
		{"eth1", "10.28.0.2/16", "10.28.0.1"}, {"eth1", "10.29.0.2/16", ""}, {"eth2", "10.28.0.2/16", ""}, {"eth9", "10.28.0.2/16", ""},
	} {
		if got := gatewayOf(proc, tt.card, netip.MustParsePrefix(tt.network)); got != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.card, tt.network, got, tt.want)
		}
	}
	if got := gatewayOf(fstest.MapFS{}, "eth1", netip.MustParsePrefix("10.28.0.2/16")); got != "" {
		t.Errorf("without routes: got %q", got)
	}
}

// TestFirstConfig: whatever is accepted as answers makes a config without a mistake.
func TestFirstConfig(t *testing.T) {
	for _, answers := range []string{
		"eth1\nfull\n10.28.0.1\ntenant-a\ndebian-12\n", "eth1.28\nproxy\n-\n-\nnull\nimage_1.0\n", "no\noff\n\n\n\n", "bond0:1\nfull\n-\ntrue\nx\n-\ni\n",
	} {
		cmd := newInitCommand()
		f := &first{File: "drover.yaml", network: "10.28.0.2/16", in: bufio.NewReader(strings.NewReader(answers)), out: io.Discard, host: fstest.MapFS{}}
		if err := f.ask(cmd); err != nil {
			t.Errorf("%q: %v", answers, err)
			continue
		}
		farm, err := config.Parse(f.File, []byte(f.text()))
		if err != nil {
			t.Errorf("%q: %v in\n%s", answers, err, f.text())
			continue
		}
		s := farm.Config.Server
		if got := s.Interfaces[0]; got != f.Interface || s.DHCP != f.DHCP && f.DHCP != pools.DHCPFull || farm.Config.Pools[0].Image != f.Image {
			t.Errorf("%q: got %q, %s in\n%s", answers, got, s.DHCP, f.text())
		}
	}
}
