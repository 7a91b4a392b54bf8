package config_test

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/mistake"
	"drover/pools/resolve"
)

// memory is a [config.NodeStore] in memory.
type memory struct {
	nodes map[string]pools.PoolNode
	err   error // returned by all methods, when set
}

func (m *memory) Nodes() (all []pools.PoolNode, _ error) {
	for _, n := range m.nodes {
		all = append(all, n)
	}
	return all, m.err
}

func (m *memory) ChangeNodes(put []pools.PoolNode, remove []string) error {
	if m.err != nil {
		return m.err
	}
	for _, n := range put {
		m.nodes[n.Name] = n
	}
	for _, name := range remove {
		delete(m.nodes, name)
	}
	return nil
}

// newLive puts a copy of the farm of the tests in force. It returns the path of the copy,
// and its content.
func newLive(t *testing.T, store *memory) (live *config.Live, path string, data []byte) {
	t.Helper()
	data, err := os.ReadFile("../resolve/testdata/farm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "farm.yaml")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if live, err = config.NewLive(config.Source{File: path}, store); err != nil {
		t.Fatal(err)
	}
	return live, path, data
}

func TestLive(t *testing.T) {
	store := &memory{nodes: map[string]pools.PoolNode{}}
	live, path, data := newLive(t, store)
	added := pools.PoolNode{Pool: "compute", Node: pools.Node{
		Name: "m2c1", MACs: []pools.MAC{mac(t, "52:54:00:77:01:01")}, IP: netip.MustParseAddr("10.28.1.1")}}
	node := func() string { return live.Farm().Resolve(resolve.Query{MAC: added.MACs[0]}).Node }

	t.Run("unknown hardware is in the catch-all", func(t *testing.T) {
		if got := node(); got != "node-525400770101" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("a node is added", func(t *testing.T) {
		if err := live.AddNode(added); err != nil || node() != "m2c1" || store.nodes["m2c1"].Pool != "compute" {
			t.Errorf("got %v, node %q, store %v", err, node(), store.nodes)
		}
	})
	t.Run("not twice", func(t *testing.T) {
		if err := live.AddNode(added); !errors.Is(err, pools.ErrExists) {
			t.Errorf("got %v, want ErrExists", err)
		}
	})
	t.Run("a bad change leaves all as it was", func(t *testing.T) {
		err := live.UpdateNode("m2c1", func(n pools.PoolNode) (pools.PoolNode, error) {
			n.IP = netip.MustParseAddr("10.28.36.173")
			return n, nil
		})
		if _, ok := errors.AsType[mistake.Errors](err); !ok || live.Farm().Resolve(resolve.Query{MAC: added.MACs[0]}).Address != added.IP || store.nodes["m2c1"].IP != added.IP {
			t.Errorf("got %v, store %v", err, store.nodes)
		}
	})
	t.Run("a store that fails leaves all as it was", func(t *testing.T) {
		store.err = errors.New("disk full")
		defer func() { store.err = nil }()
		if err := live.RemoveNode("m2c1"); !errors.Is(err, store.err) || node() != "m2c1" {
			t.Errorf("got %v, node %q", err, node())
		}
	})
	t.Run("the file's nodes are not the API's", func(t *testing.T) {
		declared, ok := errors.AsType[*config.DeclaredError](live.RemoveNode("m1c29"))
		if !ok || declared.Where.Line != 47 {
			t.Errorf("got %v, want a DeclaredError of line 47", declared)
		}
	})
	t.Run("a name cannot change", func(t *testing.T) {
		err := live.UpdateNode("m2c1", func(n pools.PoolNode) (pools.PoolNode, error) { n.Name = "x"; return n, nil })
		if err == nil || !strings.Contains(err.Error(), "cannot be renamed") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a bad file leaves the old farm in force", func(t *testing.T) {
		if err := os.WriteFile(path, []byte("nonsense: 1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := live.Reload(); err == nil || node() != "m2c1" {
			t.Errorf("got %v, node %q", err, node())
		}
	})
	t.Run("a good file is in force, with the API's nodes", func(t *testing.T) {
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(data), "m1c29", "m9c9")), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := live.Reload(); err != nil {
			t.Fatal(err)
		}
		if _, ok := live.Farm().Node("m9c9"); !ok || node() != "m2c1" {
			t.Errorf("m9c9 %v, node %q", ok, node())
		}
	})
	t.Run("the advertised address changes at a restart only", func(t *testing.T) {
		moved := strings.ReplaceAll(string(data), "address: 10.28.0.2", "address: 10.28.0.3")
		if err := os.WriteFile(path, []byte(moved), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := live.Reload(); err != nil {
			t.Fatal(err)
		}
		if got, want := live.Farm().Resolve(resolve.Query{MAC: added.MACs[0], IPXE: true}).Boot.File, "http://10.28.0.2/boot/52-54-00-77-01-01"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if err := live.UpdateNode("m2c1", func(n pools.PoolNode) (pools.PoolNode, error) { return n, nil }); err != nil {
			t.Fatal(err)
		}
		if got := live.Farm().Address().String(); got != "10.28.0.2" {
			t.Errorf("after a change of a node: got %s", got)
		}
	})
	t.Run("a node is removed", func(t *testing.T) {
		if err := live.RemoveNode("m2c1"); err != nil || node() != "node-525400770101" || len(store.nodes) != 0 {
			t.Errorf("got %v, node %q, store %v", err, node(), store.nodes)
		}
		if err := live.RemoveNode("m2c1"); !errors.Is(err, pools.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	})
}

// TestNeedsRestart: a changed server section needs a restart until the change is
// undone, also after several reloads.
func TestNeedsRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "farm.yaml")
	data, err := os.ReadFile("../resolve/testdata/farm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	write := func(server string) {
		t.Helper()
		if err := os.WriteFile(path, bytes.Replace(data, []byte("\nserver:\n"), []byte("\nserver:\n"+server), 1), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	live, err := config.NewLive(config.Source{File: path}, &memory{})
	if err != nil {
		t.Fatal(err)
	}
	url := func() string { return live.Farm().AdvertisedAt(netip.Addr{}).URL }
	before := url()
	for _, tt := range []struct {
		server string
		want   bool
	}{{"", false}, {"  maxConcurrentImages: 7\n", true}, {"  maxConcurrentImages: 7\n", true}, {"  https: \":443\"\n", true}, {"", false}, {"  clients: [10.30.0.0/16]\n", false}} {
		write(tt.server)
		if err := live.Reload(); err != nil || live.NeedsRestart() != tt.want || url() != before || live.Farm().SecureURL() != "" {
			t.Errorf("server with %q: %v, needs a restart %v, want %v; nodes are sent to %s", tt.server, err, live.NeedsRestart(), tt.want, url())
		}
	}
}

// TestFirstSubnetNeedsRestart: the servers of a family are started with the first subnet of
// it alone.
func TestFirstSubnetNeedsRestart(t *testing.T) {
	const four, six = "{cidr: 10.28.0.0/16}", `{cidr: "fd00:28::/64"}`
	for _, tt := range []struct {
		start, now string
		want       bool
	}{
		{four, four, false}, {four, four + ", {cidr: 10.29.0.0/16}", false}, {four, four + ", " + six, true},
		{six, six + ", " + four, true}, {four + ", " + six, four, false}, {four + ", " + six, six, false},
	} {
		path := filepath.Join(t.TempDir(), "drover.yaml")
		write := func(subnets string) {
			t.Helper()
			text := "server: {interfaces: [nic7]}\nsubnets: [" + subnets + "]\npools: [{name: web, image: debian-12}]\n"
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(tt.start)
		live, err := config.NewLive(config.Source{File: path}, &memory{})
		if err != nil {
			t.Fatal(err)
		}
		write(tt.now)
		if err := live.Reload(); err != nil || live.NeedsRestart() != tt.want {
			t.Errorf("%s, then %s: %v, needs a restart %v, want %v", tt.start, tt.now, err, live.NeedsRestart(), tt.want)
		}
	}
}

func mac(t testing.TB, s string) pools.MAC {
	t.Helper()
	m, err := pools.ParseMAC(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMistakeOfAddedNode: a mistake in a node that no file declares names its place.
func TestMistakeOfAddedNode(t *testing.T) {
	store := &memory{nodes: map[string]pools.PoolNode{}}
	live, path, data := newLive(t, store)
	added := pools.PoolNode{Pool: "compute", Node: pools.Node{
		Name: "m2c1", MACs: []pools.MAC{mac(t, "52:54:00:77:01:01")}, IP: netip.MustParseAddr("10.28.1.1")}}
	if err := live.AddNode(added); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(data), "m1c29", "m2c1")), 0o600); err != nil {
		t.Fatal(err)
	}
	want := `API (node "m2c1"): node "m2c1" is there twice, first in ` + path + ":47 (rename or remove one)"
	if err := live.Reload(); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestAddedNodeSLAAC: a node of the API cannot have the address that another one makes of its MAC.
func TestAddedNodeSLAAC(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drover.yaml")
	text := `server: {interfaces: [eth1]}
subnets: [{cidr: "fd00:28::/64", slaac: true, address: "fd00:28::2"}]
pools: [{name: compute, image: debian-12, nodes: [{name: m1, macs: ["02:00:00:00:00:01"]}]}]
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	live, err := config.NewLive(config.Source{File: path}, &memory{nodes: map[string]pools.PoolNode{}})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{"fd00:28::ff:fe00:1": "is already that of node \"m1\"", "fd00:28::ff:fe00:7": ""} {
		n := pools.PoolNode{Pool: "compute", Node: pools.Node{Name: "m2", MACs: []pools.MAC{mac(t, "02:00:00:00:00:02")}, IP6: netip.MustParseAddr(address)}}
		err := live.CheckNodes([]pools.NodeChange{{New: &n}})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", address, err, want)
		}
	}
}
