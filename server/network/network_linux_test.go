package network_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"drover/e2e/fixture"
	"drover/pools/config"
	"drover/server/network"
)

// ip runs ip(8) in the namespace of this thread.
func ip(t *testing.T, args string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", args, err, out)
	}
}

// alone gives the goroutine of the test a network namespace with lo and eth1. It ends with its
// thread.
func alone(t *testing.T) {
	t.Helper()
	fixture.Root(t)
	if _, err := exec.LookPath("ip"); err != nil {
		fixture.Missing(t, err)
	}
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); errors.Is(err, syscall.EPERM) {
		runtime.UnlockOSThread()
		fixture.Missing(t, err)
	} else if err != nil {
		t.Fatal(err)
	}
	ip(t, "link set lo up")
	ip(t, "link add eth1 type veth peer name peer1")
	ip(t, "addr add 10.28.0.2/16 dev eth1")
	ip(t, "addr add 10.99.0.2/16 dev eth1")
	ip(t, "-6 addr add fd00:28::2/64 dev eth1 nodad")
	ip(t, "link set eth1 up")
	ip(t, "link set peer1 up")
	ip(t, "link add eth2 type veth peer name peer2")
	ip(t, "addr add 10.28.0.3/32 dev eth2")
	ip(t, "addr add 192.0.2.2/24 dev eth2")
	ip(t, "link set eth2 up")
}

// TestBootAddresses: nodes are served at their networks' addresses of the served interfaces, and at
// no other one of the host.
func TestBootAddresses(t *testing.T) {
	alone(t)
	for _, tt := range []struct{ server, more, want string }{
		{"{interfaces: [eth1], address: 10.28.0.2}", "subnets: [{cidr: 10.28.0.0/16}]\n", "10.28.0.2 127.0.0.1 ::1 fd00:28::2"},
		{"{interfaces: [eth1, eth2], address: 10.28.0.2}", "subnets: [{cidr: 10.28.0.0/16}]\n", "10.28.0.2 10.28.0.3 127.0.0.1 ::1 fd00:28::2"},
		{"{interfaces: [eth1, eth9], address: 10.28.0.2}", "subnets: [{cidr: 10.28.0.0/16}]\n", "10.28.0.2 127.0.0.1 ::1 fd00:28::2"},
		{"{interfaces: [eth2], address: 192.0.2.2}", "subnets: [{cidr: 10.28.0.0/16}]\n", "10.28.0.3 127.0.0.1 ::1"},
		{"{interfaces: [eth1], address: 10.28.0.77}", "subnets: [{cidr: 10.28.0.0/16}]\n", "all"}, // of another host
		{"{interfaces: [eth1], address: 10.28.0.2, dhcp: proxy}", "", "all"},
	} {
		farm, err := config.Parse("drover.yaml", []byte("server: "+tt.server+"\n"+tt.more+"pools: [{name: web, image: debian-12}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range network.BootAddresses(farm) {
			if !a.IsLinkLocalUnicast() {
				got = append(got, a.String())
			}
		}
		if got == nil {
			got = []string{"all"}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("server %s: got %q, want %q", tt.server, got, tt.want)
		}
	}
	names := strings.Join(network.Names(":443"), " ")
	fixture.WantText(t, "the names", names, "10.28.0.2", "192.0.2.2", "fd00:28::2")
	fixture.WantNoText(t, "the names", names, "127.0.0.1", "fe80:")
}

// TestChanges: a new address, a link that goes and one that comes wake all that asked.
func TestChanges(t *testing.T) {
	alone(t)
	changed := make(chan struct{}, 100)
	n := &network.Interfaces{Log: quiet, Changed: func() { changed <- struct{}{} }}
	n.Listen()
	first, second := n.Subscribe(), n.Subscribe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	for i, args := range []string{"addr add 10.28.0.9/16 dev eth1", "link del eth2", "link add eth3 type veth peer name peer3"} {
		ip(t, args)
		for name, c := range map[string]<-chan struct{}{"Changed": changed, "the first": first, "the second": second} {
			fixture.Eventually(t, fmt.Sprintf("%d: %s after ip %s", i, name, args), func() bool {
				select {
				case <-c:
					return true
				default:
					return false
				}
			})
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
