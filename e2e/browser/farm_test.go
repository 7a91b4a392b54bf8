package browser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
	"drover/server"
)

// farmText is a farm of some pools. NODES are those of the first, SETTINGS more of the server.
const farmText = `server: {interfaces: [lo], address: 10.28.0.2SETTINGS}
subnets: [{cidr: 10.28.0.0/16, router: 10.28.0.1, dns: [10.28.0.1], domain: example.org}]
clusters: [{name: tenant-a, kubeconfig: a.kubeconfig}, {name: lobby, kubeconfig: l.kubeconfig}]
tags:
  all: {kernelArgs: console=ttyS0, sysctls: {net.ipv4.ip_forward: "1"}}
  gpu: {labels: {example.org/gpu: "yes"}}
  storage: {taints: [{key: storage, value: only, effect: NoSchedule}]}
chassis: [{name: m1, address: "127.0.0.1:1", passwordFile: m1.password, pool: compute}]
pools:
  - {name: compute, cluster: tenant-a, image: debian-12, tags: [storage], nodes: [
NODES]}
  - {name: gpu, cluster: tenant-a, image: debian-12, tags: [gpu]}
  - {name: catchall, catchall: true, cluster: lobby, image: debian-12, range: 10.28.250.10-10.28.250.40}
`

// farm is a running server.
type farm struct {
	*server.Server
	url, token string
}

// mac returns the MAC of a node.
func mac(i int) pools.MAC { return pools.MAC{0x02, 0xd2, 0, byte(i >> 16), byte(i >> 8), byte(i)} }

// name returns the name of a node.
func name(i int) string { return fmt.Sprintf("m%dc%dn%d", i/180+1, i%180/4+1, i%4+1) }

// newFarm serves a farm of n declared nodes.
func newFarm(t testing.TB, n int) *farm {
	t.Helper()
	return newFarmAt(t, n, listen(t), "")
}

// listen opens a socket of this host.
func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// newFarmAt is newFarm at a socket, and with more settings of the server.
func newFarmAt(t testing.TB, n int, l net.Listener, settings string) *farm {
	t.Helper()
	t.Chdir(t.TempDir())
	var nodes strings.Builder
	for i := range n {
		fmt.Fprintf(&nodes, "      {name: %s, macs: [%q], ip: 10.28.%d.%d},\n", name(i), mac(i), 10+i/200, i%200+1)
	}
	for file, text := range map[string]string{
		"drover.yaml": strings.NewReplacer("NODES", nodes.String(), "SETTINGS", settings).Replace(farmText), "m1.password": "secret", "oidc.secret": oidcSecret,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := server.New(server.Options{Config: "drover.yaml", State: "state", Version: "1.2.3", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- s.Web.Serve(ctx, l) }()
	go func() { done <- s.Hardware.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, <-done); err != nil {
			t.Error(err)
		}
	})
	return &farm{s, "http://" + l.Addr().String(), strings.TrimSpace(fixture.ReadFile(t, "state/api.token"))}
}

// open starts a Chromium and logs in.
func open(t testing.TB, f *farm) *Tab {
	t.Helper()
	return Open(t, f.url, f.token)
}

// boot records a boot of a machine: its first n steps, one each second, the last at the time
// ago; and then an error in the next one.
func (f *farm) boot(t testing.TB, m pools.MAC, n int, ago time.Duration, failed string) {
	t.Helper()
	steps := boots.Steps()
	at := time.Now().Add(-ago - time.Duration(n)*time.Second)
	table := f.Store.Boots
	real := table.Now
	table.Now = func() time.Time { return at }
	defer func() { table.Now = real }()
	plan := f.Live.Farm().Resolve(resolve.Query{MAC: m, Firmware: pools.UEFIx64})
	if plan == nil {
		t.Fatalf("no plan for %s", m)
	}
	table.Discover(plan, at)
	for _, s := range steps[1:n] {
		at = at.Add(time.Second)
		if s.Step == boots.StepScript {
			if _, err := table.Issue(plan); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if s.Step == boots.StepQueued {
			continue
		}
		if err := table.Step(m, "", boots.Event{Step: s.Step, Detail: detail[s.Step]}); err != nil {
			t.Fatal(err)
		}
	}
	if failed != "" {
		if err := table.Step(m, "", boots.Event{Step: steps[n].Step, Error: failed}); err != nil {
			t.Fatal(err)
		}
	}
}

// detail is what machines report with a step.
var detail = map[boots.Step]string{
	boots.StepOffer: "10.28.10.1", boots.StepLoader: "snponly.efi", boots.StepImage: "260 MB in 2.4 s", boots.StepNetwork: "eth0 10.28.10.1/16",
}

// populateAPI adds four nodes as the API does, in a chassis.
func (f *farm) populateAPI(t testing.TB) {
	t.Helper()
	for i := range 4 {
		n := pools.PoolNode{Pool: "gpu", Node: pools.Node{
			Name: fmt.Sprintf("g%d", i+1), MACs: []pools.MAC{{0x02, 0xd3, 0, 0, 0, byte(i + 1)}},
			IP: netip.AddrFrom4([4]byte{10, 28, 240, byte(i + 1)}), Tags: []string{"gpu"},
			ChassisSlot: pools.ChassisSlot{Chassis: "m1", Slot: fmt.Sprintf("c%dn1", i+1)},
		}}
		if err := f.Live.AddNode(n); err != nil {
			t.Fatal(err)
		}
	}
}
