package server

import (
	"log/slog"
	"net/netip"
	"os"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/config/declared"
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
	_, err := s.Live.SetObjects([]*declared.Object{
		declared.New(declared.Key{Kind: pools.KindPool, Name: "web"}, 1, []byte(`{"image": "debian-12"}`)),
		declared.New(declared.Key{Kind: pools.KindMachine, Name: "m1"}, 3, []byte(`{"pool": "web", "macs": ["52:54:00:00:00:01"], "ip": "10.28.0.11"}`)),
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

// TestLostObjects: a server starts when the objects of before are lost, and has the nodes of the
// API, and their next boots, when the objects are there again. A config is checked beside them.
func TestLostObjects(t *testing.T) {
	t.Chdir(t.TempDir())
	const text = `server: {interfaces: [lo], address: 10.28.0.2, adminKubeconfig: none.kubeconfig, objects: {namespace: farm}}
subnets: [{cidr: 10.28.0.0/16}]
`
	if err := os.WriteFile("drover.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	web := declared.New(declared.Key{Kind: pools.KindPool, Name: "web"}, 1, []byte(`{"image": "debian-12"}`))
	start := func() *Server {
		t.Helper()
		s, err := New(Options{Config: "drover.yaml", State: "state", Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := start()
	if _, err := s.Live.SetObjects([]*declared.Object{web}); err != nil {
		t.Fatal(err)
	}
	s.farmChanged()
	mac := pools.MAC{0x52, 0x54, 0, 0, 0, 1}
	if err := s.changes().AddNode(pools.PoolNode{Pool: "web", Node: pools.Node{Name: "n1", MACs: []pools.MAC{mac}, IP: netip.MustParseAddr("10.28.0.11")}}); err != nil {
		t.Fatal(err)
	}
	if err := (configFile{s}).Check([]byte(text)); err != nil {
		t.Errorf("a check of the file: %v", err)
	}
	if err := s.Store.NextBoots.Set("rescue", "n1"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := os.WriteFile("state/"+objectsFile, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}

	s = start()
	defer s.Close()
	if got := s.Live.Farm().Waiting(); len(got) != 1 || s.Live.Farm().Resolve(resolve.Query{MAC: mac}) != nil {
		t.Errorf("waiting are %v", got)
	}
	if _, err := s.Live.SetObjects([]*declared.Object{web}); err != nil {
		t.Fatal(err)
	}
	s.farmChanged()
	if p := s.Live.Farm().Resolve(resolve.Query{MAC: mac}); p == nil || p.Node != "n1" || s.Store.NextBoots.Pending("n1") != "rescue" {
		t.Errorf("got %+v, and the next boot %q", p, s.Store.NextBoots.Pending("n1"))
	}
}

// TestRoomForObject: an object that comes in force because a node of the API is gone is stored,
// and the parts of the server are told.
func TestRoomForObject(t *testing.T) {
	t.Chdir(t.TempDir())
	const text = `server: {interfaces: [lo], address: 10.28.0.2, adminKubeconfig: none.kubeconfig, objects: {namespace: farm}}
subnets: [{cidr: 10.28.0.0/16}]
clusters: [{name: a, kubeconfig: a.kubeconfig}]
pools: [{name: file, image: debian-12}]
`
	if err := os.WriteFile("drover.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Config: "drover.yaml", State: "state", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := pools.PoolNode{Pool: "file", Node: pools.Node{Name: "b", MACs: []pools.MAC{{0x52, 0x54, 0, 0, 0, 1}}, IP: netip.MustParseAddr("10.28.0.11")}}
	if err := s.changes().AddNode(n); err != nil {
		t.Fatal(err)
	}
	c, err := s.Live.SetObjects([]*declared.Object{
		declared.New(declared.Key{Kind: pools.KindMachine, Name: "m1"}, 1, []byte(`{"pool": "file", "macs": ["52:54:00:00:00:01"], "ip": "10.28.0.12"}`)),
	})
	if err != nil || len(c.Wrong) != 1 {
		t.Fatalf("got %+v, %v", c, err)
	}
	s.farmChanged()
	if err := s.changes().ChangeNodes([]pools.NodeChange{{Old: &n}}); err != nil {
		t.Fatal(err)
	}
	stored, err := declared.Load("state/"+objectsFile, "farm")
	if err != nil || len(stored) != 1 || stored[0].Name != "m1" {
		t.Errorf("stored are %v, %v", stored, err)
	}
	if s.Live.Refitted() {
		t.Error("the parts were not told")
	}
}
