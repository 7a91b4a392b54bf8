package server

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/boots"
	configobjects "drover/pools/config/objects"
	"drover/pools/resolve"
)

// TestObjectsAtStart: without the admin cluster, a server has the objects that were in force
// when the last one ended, and its own nodes of the file.
func TestObjectsAtStart(t *testing.T) {
	t.Chdir(t.TempDir())
	const text = `server: {interfaces: [lo], address: 10.28.0.2, adminKubeconfig: none.kubeconfig, objects: {namespace: farm}}
subnets: [{cidr: 10.28.0.0/16}]
`
	if err := os.WriteFile("drover.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() *Server {
		t.Helper()
		s, err := New(Options{Config: "drover.yaml", State: "state", Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	machine := pools.MAC{0x52, 0x54, 0, 0, 0, 1}
	_, err := s.Live.SetObjects([]*configobjects.Object{
		configobjects.New(configobjects.Key{Kind: pools.KindPool, Name: "web"}, 1, []byte(`{"image": "debian-12"}`)),
		configobjects.New(configobjects.Key{Kind: pools.KindMachine, Name: "m1"}, 3, []byte(`{"pool": "web", "macs": ["52:54:00:00:00:01"], "ip": "10.28.0.11"}`)),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.farmChanged()
	s.Close()
	fixture.WantMode(t, "state/"+objectsFile, 0o600)

	s = open()
	defer s.Close()
	plan := s.Live.Farm().Resolve(resolve.Query{MAC: machine, Firmware: pools.BIOS})
	if plan == nil || plan.Node != "m1" || plan.Image != "debian-12" {
		t.Fatalf("got %+v", plan)
	}
	if m := s.machineStatus("m1"); m.Step != "" || m.Image != "" {
		t.Errorf("a machine that never booted: %+v", m)
	}
	s.Store.Boots.Discover(plan, time.Now())
	s.step(machine, boots.Event{Step: boots.StepOffer, Detail: "10.28.0.11"})
	s.step(machine, boots.Event{Step: boots.StepImage, Error: "no space left"})
	m := s.machineStatus("m1")
	if m.Step != "offer" || m.Address != "10.28.0.11" || m.Image != "debian-12" || m.Error != "no space left" || m.Node != "" || m.Since.IsZero() {
		t.Errorf("got %+v", m)
	}
}
