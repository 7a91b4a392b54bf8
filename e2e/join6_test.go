package e2e_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/pools/boots"
)

// TestJoinIPv6 boots a machine that knows only IPv6 until it is Ready in an IPv6-only
// tenant and runs a pod there. The server has no IPv4 address either.
func TestJoinIPv6(t *testing.T) {
	joins(t, "testdata/join6.yaml", "n6", "52:54:00:77:06:01", "fd00:77::61")
}

// TestJoinDualStack boots a machine until it is Ready in a dual-stack tenant, with both of
// its addresses.
func TestJoinDualStack(t *testing.T) {
	soak(t)
	joins(t, "testdata/dual.yaml", "n46", "52:54:00:77:06:02", "10.77.0.62", "fd00:77::62")
}

// joins boots a machine until it is Ready with these addresses, runs a pod with one of each
// family, and has a serving certificate by which the API server reaches its kubelet.
func joins(t *testing.T, farm, name, mac string, addresses ...string) {
	b := build(t)
	s := open(t, b, site.Config{Name: "drover-e2e-" + name, Farm: farm})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	plan, err := s.Expect(mac)
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.PowerOn(lab.Machine{Name: name, NICs: card(mac)})
	if err != nil {
		t.Fatal(err)
	}
	defer story(t, s, g)
	fixture.Until(ctx, t, name+" is Ready", func() (bool, error) { // from drover: a request to its cluster costs more
		return reached(bootOf(ctx, t, s, mac), boots.StepReady), nil
	})
	t.Logf("Ready %.1f s after power-on", time.Since(g.Started).Seconds())
	p := s.Planes["tenant"]
	fixture.Until(ctx, t, name+" runs a pod", func() (bool, error) {
		_, err := s.Look(ctx, plan)
		return err == nil, err
	})
	fixture.Until(ctx, t, "all addresses are in the Node", func() (bool, error) { // DHCP and DHCPv6 answer at different times
		n, err := s.Node(ctx, "tenant", name)
		return err == nil && slices.Equal(n.Addresses(), addresses), err
	})
	podAddresses(ctx, t, p, name, len(addresses))
	fixture.Until(ctx, t, "the API server reads the log of the pod", func() (bool, error) { // by the serving certificate
		_, err := p.Kubectl(ctx, nil, "logs", "hello-"+name)
		return err == nil, err
	})
	for _, step := range bootOf(ctx, t, s, mac).Steps {
		t.Logf("%-12s %s %s", step.Step, step.Detail, step.Error)
	}
}

// podAddresses checks that the pod of a node has so many addresses.
func podAddresses(ctx context.Context, t *testing.T, p *controlplane.Cluster, name string, want int) {
	t.Helper()
	text, err := p.Kubectl(ctx, nil, "get", "pod", "hello-"+name, "-o", "jsonpath={.status.podIPs[*].ip}")
	if got := strings.Fields(text); err != nil || len(got) != want {
		t.Errorf("the pod has the addresses %q, %v; want %d", text, err, want)
	}
}
