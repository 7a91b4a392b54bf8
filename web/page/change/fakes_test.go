package change_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/config"
	"drover/web/api"
	"drover/web/auth"
	"drover/web/page/change"
	"drover/web/page/snapshot"
)

// farmText is the operator's file of the tests: it declares m1 and m2.
const farmText = `server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16, router: 10.28.0.1}]
tags: {debug: {kernelArgs: debug}}
pools:
  - {name: compute, image: debian-12, delegates: [debug], nodes: [
      {name: m1, macs: ["52:54:00:00:00:01"], ip: 10.28.0.11}, {name: m2, macs: ["52:54:00:00:00:02"], ip: 10.28.0.12}]}
  - {name: storage, image: debian-12}
`

var (
	epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	mac   = pools.MAC{0x52, 0x54, 0, 0, 0, 0x77} // of an unknown machine, with the lease of addr
	addr  = netip.MustParseAddr("10.28.72.10")
)

// world is what forms see and change, in memory. It keeps the calls that change something.
type world struct {
	*api.API
	calls []string
	nodes map[string]pools.PoolNode
	next  map[string]pools.NextBoot
	lease pools.MAC // whose addr is
	fails error     // of each change
	log   fixture.Log
	held  *pools.HeldConfig // by a reload
}

func (w *world) called(format string, args ...any) error {
	if w.fails == nil {
		w.calls = append(w.calls, fmt.Sprintf(format, args...))
	}
	return w.fails
}

type store struct{ *world }

func (s store) Nodes() ([]pools.PoolNode, error) { return slices.Collect(maps.Values(s.nodes)), nil }

func (s store) ChangeNodes(put []pools.PoolNode, remove []string) error {
	for _, n := range put {
		if err := s.called("store %s", n.Name); err != nil {
			return err
		}
		s.nodes[n.Name] = n
	}
	for _, name := range remove {
		if err := s.called("remove %s", name); err != nil {
			return err
		}
		delete(s.nodes, name)
	}
	return nil
}

type bootTable struct{ *world }

func (bootTable) List() []boots.Record {
	return []boots.Record{{ID: "a", Node: "m1", MAC: pools.MAC{2}, Pool: "compute", Started: epoch}}
}

func (b bootTable) Forget(node string) int { _ = b.called("forget boots of %s", node); return 1 }

type leases struct{ *world }

func (l leases) List() []pools.Lease {
	return []pools.Lease{{Address: addr, MAC: l.lease, Pool: "compute", Expires: epoch.Add(time.Hour)}}
}

func (l leases) End(a netip.Addr, _ pools.MAC, _ time.Time) bool { return l.called("end %s", a) == nil }

type unknowns struct{ *world }

func (unknowns) List() []pools.Unknown {
	return []pools.Unknown{{MAC: mac, Pool: "compute", Last: epoch}}
}

func (u unknowns) Forget(m pools.MAC) bool { return m != mac || u.called("forget %s", m) == nil }

type nextBoots struct{ *world }

func (n nextBoots) Pending(node string) pools.NextBoot { return n.next[node] }

func (n nextBoots) Set(next pools.NextBoot, nodes ...string) error {
	for _, name := range nodes {
		if err := n.called("next boot of %s: %s", name, next); err != nil {
			return err
		}
	}
	return nil
}

type fallBacks struct{}

func (fallBacks) Of(string) pools.ImageTrial { return pools.ImageTrial{} }

func (fallBacks) Clear(...string) {}

type hardware struct{ *world }

func (hardware) Chassis() []pools.ChassisStatus {
	return []pools.ChassisStatus{{Name: "hw", Pool: "compute"}}
}

func (h hardware) Sync(name string) error { return h.called("read %s", name) }

func (hardware) Places(nodes []pools.NodeInfo) []pools.ChassisSlot {
	return make([]pools.ChassisSlot, len(nodes))
}

func (h hardware) Switch(_ context.Context, _ string, req pools.PowerRequest) (pools.PowerJob, error) {
	return pools.PowerJob{}, h.called("switch %s %s", strings.Join(req.Nodes, " "), req.Action)
}

func (hardware) Preview(req pools.PowerRequest) (job pools.PowerJob, err error) {
	for _, name := range req.Nodes {
		job.Nodes = append(job.Nodes, pools.PowerNode{Name: name})
	}
	return job, nil
}

func (hardware) Jobs() []pools.PowerJob { return nil }

func (hardware) Job(string) (pools.PowerJob, bool) { return pools.PowerJob{}, false }

type audit struct{}

func (audit) Add(...pools.AuditEntry) error { return nil }

func (audit) List(int) ([]pools.AuditEntry, error) { return nil, nil }

type configFile struct{ *world }

func (configFile) InForce() pools.ConfigInForce { return pools.ConfigInForce{} }

func (c configFile) Reload(string) (pools.ReloadResult, error) {
	return pools.ReloadResult{Held: c.held}, c.called("reload")
}

func (configFile) Answer(pools.ConfigAnswer, string) (pools.ReloadResult, error) {
	return pools.ReloadResult{}, errors.New("nobody asks")
}

func (configFile) Check([]byte) error { return errors.New("nobody asks") }

// newWorld returns a world with the nodes n3 and n4 of the API, both of the pool compute.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{nodes: map[string]pools.PoolNode{}, next: map[string]pools.NextBoot{}, lease: mac}
	for i, name := range []string{"n3", "n4"} {
		ip := netip.AddrFrom4([4]byte{10, 28, 0, byte(13 + i)})
		w.nodes[name] = pools.PoolNode{Pool: "compute", Node: pools.Node{Name: name, MACs: []pools.MAC{{2, 0, 0, 0, 0, byte(i + 3)}}, IP: ip, Tags: []string{"debug"}}}
	}
	dir := fixture.Tree(t, map[string]string{"drover.yaml": farmText})
	live, err := config.NewLive(config.Source{File: filepath.Join(dir, "drover.yaml")}, store{w})
	if err != nil {
		t.Fatal(err)
	}
	w.API = &api.API{
		Farm: live, Nodes: live, Boots: bootTable{w}, Leases: leases{w}, Unknowns: unknowns{w}, NextBoots: nextBoots{w}, FallBacks: fallBacks{},
		Hardware: hardware{w}, Power: hardware{w}, Audit: audit{}, ConfigFile: configFile{w},
		Ready: func(context.Context) []api.Problem { return nil }, Images: func() []pools.ImageInfo { return nil },
		CheckImage: func(string) error { return nil }, Moves: func() []pools.Move { return nil },
		Log: slog.New(slog.NewTextHandler(&w.log, nil)), Now: func() time.Time { return epoch },
	}
	return w
}

// The clients of the tests.
var (
	admin    = auth.Client{Role: pools.RoleAdmin, Session: true}
	operator = auth.Client{Name: "op", Role: pools.RoleOperator, Session: true}
	viewer   = auth.Client{Name: "v", Role: pools.RoleViewer, Session: true}
	storage  = auth.Client{Name: "st", Role: pools.RoleOperator, Pools: []string{"storage"}, Session: true}
)

// form returns a form of a client: its action, its picks, and names and values of its inputs.
func (w *world) form(by auth.Client, do, picks string, inputs ...string) *change.Form {
	values := url.Values{}
	for i := 0; i < len(inputs); i += 2 {
		values.Set("in-"+inputs[i], inputs[i+1])
	}
	cache := &snapshot.Cache{API: w.API}
	return &change.Form{API: w.API, Shared: cache.Get(by), Client: by, Do: do, Picks: strings.Fields(picks), Values: values}
}
