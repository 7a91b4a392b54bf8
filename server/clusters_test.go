package server

import (
	"bytes"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/dhcp"
	"drover/e2e/farmtest"
	"drover/e2e/fixture"
	"drover/httpboot/script"
	"drover/kube/approve"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
	"drover/server/metrics"
)

func TestJoining(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	boot := func(n byte, steps ...boots.StepTime) boots.Record {
		return boots.Record{MAC: pools.MAC{2, 5: n}, Steps: steps}
	}
	token := func(id string, age time.Duration) boots.StepTime {
		return boots.StepTime{Step: boots.StepToken, Detail: id, Time: now.Add(-age)}
	}
	ready, discover := boots.StepTime{Step: boots.StepReady}, boots.StepTime{Step: boots.StepDiscover}
	refused := boots.StepTime{Step: boots.StepToken, Error: "no", Time: now}
	tests := []struct {
		name string
		all  []boots.Record
		want []joiningBoot
	}{
		{"on its way", []boots.Record{boot(1, token("a", time.Minute))}, []joiningBoot{{pools.MAC{2, 5: 1}, "a"}}},
		{"refused at first", []boots.Record{boot(1, refused, token("a", 0))}, []joiningBoot{{pools.MAC{2, 5: 1}, "a"}}},
		{"Ready", []boots.Record{boot(1, token("a", time.Minute), ready)}, nil},
		{"refused", []boots.Record{boot(1, refused)}, nil},
		{"long ago", []boots.Record{boot(1, token("a", time.Hour))}, nil},
		{"the boot is not known", []boots.Record{boot(1, token("", time.Minute))}, nil},
		{"a DISCOVER after it", []boots.Record{boot(1, discover), boot(1, token("a", time.Minute))}, []joiningBoot{{pools.MAC{2, 5: 1}, "a"}}},
		{"Ready in a later boot", []boots.Record{boot(1, token("b", 0), ready), boot(1, token("a", time.Minute))}, nil},
		{"two machines", []boots.Record{boot(2, token("b", 0)), boot(1, token("a", 0))}, []joiningBoot{{pools.MAC{2, 5: 2}, "b"}, {pools.MAC{2, 5: 1}, "a"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := joining(tt.all, now); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestNodeKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nodes.key")
	made, err := nodeKey(path)
	if err != nil || len(made) < 32 {
		t.Fatalf("made %d bytes, %v", len(made), err)
	}
	if again, err := nodeKey(path); err != nil || !bytes.Equal(made, again) {
		t.Errorf("the key is another at the next start (%v)", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := nodeKey(path); err == nil {
		t.Error("a key of 5 bytes is taken")
	}
}

// A DISCOVER and a certificate request are steps in the boot of their node, under the
// MAC of the network card that boots.
func TestObservedSteps(t *testing.T) {
	const farmText = `
server: {interfaces: [lo], address: 10.0.0.1}
subnets: [{cidr: 10.0.0.0/16}]
pools: [{name: compute, image: debian-12, nodes: [{name: m1, macs: ["52:54:00:00:00:01", "52:54:00:00:00:02"], ip: 10.0.1.1}]}]
`
	store, live := farmtest.Open(t, farmText)
	s := &Server{Live: live, Store: store, Machines: newDirectory(live, store), log: slog.New(slog.DiscardHandler), scripts: &script.Renderer{}}
	s.metrics = metrics.New(live, store)
	s.certificate(approve.Request{Node: "m1", Name: "csr-0", Result: "approved"}) // no boot is known
	second := pools.MAC{0x52, 0x54, 5: 2}
	asked := dhcp.Exchange{MAC: second, Plan: s.Machines.Resolve(resolve.Query{MAC: second}), Type: "DISCOVER", Netboot: true, Time: time.Now(), Decision: dhcp.NoAddress}
	s.exchange(asked)
	if b, _ := store.Boots.Current(second); b.Error == "" || len(b.Steps) != 2 || b.Steps[1].Step != boots.StepOffer {
		t.Errorf("without an address: %+v", b)
	}
	asked.Reply, asked.Decision, asked.Address = "OFFER", dhcp.Offered, netip.MustParseAddr("10.0.1.1")
	s.exchange(asked)
	for _, r := range []approve.Request{
		{Node: "m1", Name: "csr-1", Result: "denied", Why: "another asked for it"}, {Node: "m1", Name: "csr-2", Result: "approved", Serving: true},
		{Name: "csr-3", Result: "approved"}, {Node: "m2", Name: "csr-4", Result: "approved"}, {Node: "m1", Name: "csr-5", Result: "approved"},
	} {
		s.certificate(r)
	}
	b, _ := store.Boots.Current(second)
	var got []string
	for _, step := range b.Steps {
		if step.Error == "" {
			got = append(got, string(step.Step)+" "+step.Detail)
		}
	}
	if want := []string{"discover ", "offer 10.0.1.1", "csr csr-5"}; !slices.Equal(got, want) || b.Error != "" {
		t.Errorf("got %q, error %q, want %q", got, b.Error, want)
	}
	if _, ok := store.Boots.Current(pools.MAC{0x52, 0x54, 5: 1}); ok {
		t.Error("the other network card has a boot")
	}
}

func TestChangesReconcile(t *testing.T) {
	calls := 0
	c := changes{changed: func() { calls++ }}
	if err := errors.New("no"); !errors.Is(c.done(err), err) || calls != 0 {
		t.Error("a refused change reached the clusters")
	}
	if err := c.done(nil); err != nil || calls != 1 {
		t.Errorf("%v, %d calls", err, calls)
	}
}

// M13: the watch for the previous kubelet of a machine begins with its boot script, so
// that the machine waits less at its join.
func TestLeaseIsReadAtTheScript(t *testing.T) {
	t.Chdir(t.TempDir())
	text := strings.Replace(testConfig, "    image: debian-12\n    nodes", "    image: debian-12\n    cluster: a\n    nodes", 1) +
		"clusters: [{name: a, kubeconfig: missing}]\n"
	if err := os.WriteFile("drover.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log := new(fixture.Log)
	s, err := New(Options{Config: "drover.yaml", State: "state", Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	read := func() int { return strings.Count(log.String(), "cannot read the Lease of a booting node") }
	m1 := boots.Record{MAC: pools.MAC{0x52, 0x54, 0, 0x77, 1, 1}}
	s.reached(m1, boots.StepTime{Step: boots.StepDiscover})
	s.reached(boots.Record{MAC: pools.MAC{2}}, boots.StepTime{Step: boots.StepScript}) // unknown, and of no cluster
	s.reached(m1, boots.StepTime{Step: boots.StepScript, Error: "no"})
	s.reached(m1, boots.StepTime{Step: boots.StepScript})
	fixture.Eventually(t, "its Lease is read", func() bool { return read() > 0 })
	s.clusters.Close()
	if got := read(); got != 1 {
		t.Errorf("Leases were read %d times, want once", got)
	}
}
