package config_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
)

// TestChangeNodes makes several changes in one step: all of them or none.
func TestChangeNodes(t *testing.T) {
	node := func(name, last string) *pools.PoolNode {
		return &pools.PoolNode{Pool: "compute", Node: pools.Node{
			Name: name, MACs: []pools.MAC{mac(t, "52:54:00:77:01:"+last)}, IP: netip.MustParseAddr("10.28.1." + strings.TrimLeft(last, "0")),
		}}
	}
	a, b, c := node("a", "01"), node("b", "02"), node("c", "03")
	swappedA, swappedB := node("a", "02"), node("b", "01")
	for _, tt := range []struct {
		name    string
		changes []pools.NodeChange
		store   error
		want    string // names with the ends of their MACs
		err     string
		is      error
	}{
		{"nothing", nil, nil, "a=01 b=02", "", nil},
		{"one more", []pools.NodeChange{{New: c}}, nil, "a=01 b=02 c=03", "", nil},
		{"two exchange their cards and addresses", []pools.NodeChange{{Old: a, New: swappedA}, {Old: b, New: swappedB}}, nil, "a=02 b=01", "", nil},
		{"one goes and another takes its card", []pools.NodeChange{{Old: a}, {New: node("d", "01")}}, nil, "b=02 d=01", "", nil},
		{"one half of an exchange", []pools.NodeChange{{Old: a, New: swappedA}}, nil, "a=01 b=02", "is already that of", nil},
		{"the second of two is wrong", []pools.NodeChange{{New: c}, {New: node("d", "03")}}, nil, "a=01 b=02", "is already that of", nil},
		{"it exists", []pools.NodeChange{{New: c}, {New: a}}, nil, "a=01 b=02", `"a"`, pools.ErrExists},
		{"it is gone", []pools.NodeChange{{New: c}, {Old: node("d", "04")}}, nil, "a=01 b=02", `"d" is gone`, pools.ErrChanged},
		{"it was changed", []pools.NodeChange{{New: c}, {Old: swappedA, New: a}}, nil, "a=01 b=02", `"a"`, pools.ErrChanged},
		{"it is in the file", []pools.NodeChange{{New: c}, {New: node("m1c29", "05")}}, nil, "a=01 b=02", "change it there", nil},
		{"added and removed", []pools.NodeChange{{New: c}, {Old: c}}, nil, "a=01 b=02", `"c" is gone`, pools.ErrChanged},
		{"the same change twice", []pools.NodeChange{{Old: a, New: swappedA}, {Old: a, New: swappedA}}, nil, "a=01 b=02", "there twice", nil},
		{"renamed", []pools.NodeChange{{Old: a, New: node("c", "01")}}, nil, "b=02 c=01", "", nil},
		{"two exchange their names", []pools.NodeChange{{Old: a, New: node("b", "01")}, {Old: b, New: node("a", "02")}}, nil, "a=02 b=01", "", nil},
		{"a chain of names", []pools.NodeChange{{Old: a, New: node("b", "01")}, {Old: b, New: node("c", "02")}}, nil, "b=01 c=02", "", nil},
		{"renamed to one that stays", []pools.NodeChange{{Old: a, New: node("b", "01")}}, nil, "a=01 b=02", `"b"`, pools.ErrExists},
		{"a change of nothing", []pools.NodeChange{{}}, nil, "a=01 b=02", "neither old nor new", nil},
		{"nothing can be stored", []pools.NodeChange{{New: c}}, errors.New("the disk is full"), "a=01 b=02", "the disk is full", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := &memory{nodes: map[string]pools.PoolNode{"a": *a, "b": *b}}
			live, _, _ := newLive(t, store)
			farm := live.Farm()
			if err := live.CheckNodes(tt.changes); (err == nil) != (tt.err == "" && tt.is == nil || tt.store != nil) || live.Farm() != farm {
				t.Errorf("checked alone: %v", err)
			}
			store.err = tt.store
			err := live.ChangeNodes(tt.changes)
			if (err == nil) != (tt.err == "" && tt.is == nil) || err != nil && !strings.Contains(err.Error(), tt.err) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("got error %v, want %v with %q", err, tt.is, tt.err)
			}
			store.err = nil
			stored, _ := store.Nodes()
			slices.SortFunc(stored, func(a, b pools.PoolNode) int { return strings.Compare(a.Name, b.Name) })
			var words []string
			for _, n := range stored {
				words = append(words, fmt.Sprintf("%s=%s", n.Name, n.MACs[0].String()[15:]))
				if p := live.Farm().Resolve(resolve.Query{MAC: n.MACs[0]}); p.Node != n.Name {
					t.Errorf("%s is stored, and its MAC is %s's", n.Name, p.Node)
				}
			}
			if got := strings.Join(words, " "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestRecordedSlots: the origin of a node with a slot is its chassis. Such a node cannot
// name a program of the server.
func TestRecordedSlots(t *testing.T) {
	data, err := os.ReadFile("../resolve/testdata/farm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n := pools.PoolNode{Pool: "compute", Node: pools.Node{
		Name: "m2c1n1", MACs: []pools.MAC{mac(t, "52:54:00:77:01:01")}, IP: netip.MustParseAddr("10.28.1.1"), ChassisSlot: pools.ChassisSlot{Chassis: "m2", Slot: "c1n1"},
	}}
	farm, err := config.Parse("drover.yaml", data, n)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := farm.Node("m2c1n1"); got.Source.Position() != "chassis m2 c1n1" || got.Declared() {
		t.Errorf("got source %q, declared %t", got.Source.Position(), got.Declared())
	}
	n.Power = &pools.NodePower{Driver: pools.Exec, Program: "/bin/sh"}
	if _, err := config.Parse("drover.yaml", data, n); err == nil || !strings.Contains(err.Error(), "for its config file alone") {
		t.Errorf("a program over the API: got %v", err)
	}
	n.Power, n.ChassisSlot.Slot = nil, "c1n9"
	if _, err := config.Parse("drover.yaml", data, n); err == nil || !strings.Contains(err.Error(), "is no place") {
		t.Errorf("an impossible slot: got %v", err)
	}
}

// TestShadowedNodes: a node of the file shadows a stored node of a chassis, also at a
// start. The stored node returns when the file no longer declares it. A node that was
// added by hand is not shadowed: it conflicts.
func TestShadowedNodes(t *testing.T) {
	data, err := os.ReadFile("../resolve/testdata/farm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "farm.yaml")
	write := func(nodes string) {
		t.Helper()
		text := strings.Replace(string(data), "    nodes:\n", "    nodes:\n"+nodes, 1)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stored := pools.PoolNode{Pool: "compute", Node: pools.Node{
		Name: "m2c1n1", MACs: []pools.MAC{mac(t, "52:54:00:77:01:01")}, IP: netip.MustParseAddr("10.28.1.1"), ChassisSlot: pools.ChassisSlot{Chassis: "m2", Slot: "c1n1"},
	}}
	for _, declared := range []string{
		`{name: m2c1n1, macs: ["52:54:00:77:01:09"], ip: 10.28.1.9}`,
		`{name: mine, macs: ["52:54:00:77:01:09", "52:54:00:77:01:01"], ip: 10.28.1.9}`,
		`{name: mine, macs: ["52:54:00:77:01:09"], ip: 10.28.1.1}`,
		`{name: mine, macs: ["52:54:00:77:01:09"], ip: 10.28.1.9, place: {chassis: m2, slot: c1n1}}`,
	} {
		write("")
		store := &memory{nodes: map[string]pools.PoolNode{"m2c1n1": stored}}
		live, err := config.NewLive(config.Source{File: path}, store)
		if err != nil {
			t.Fatal(err)
		}
		write("      - " + declared + "\n")
		if err := live.Reload(); err != nil {
			t.Errorf("%s: %v", declared, err)
			continue
		}
		if o := live.Farm().Shadowed(); len(o) != 1 || o[0].Name != "m2c1n1" || len(live.Farm().Nodes()) != 4 {
			t.Errorf("%s: shadowed are %v", declared, o)
		}
		if _, err := config.NewLive(config.Source{File: path}, store); err != nil {
			t.Errorf("%s: at a start: %v", declared, err)
		}
		write("")
		if err := live.Reload(); err != nil || len(live.Farm().Shadowed()) != 0 || len(live.Farm().Nodes()) != 4 {
			t.Errorf("%s: not declared any more: %v, shadowed are %v", declared, err, live.Farm().Shadowed())
		}
		byHand := stored
		byHand.ChassisSlot = pools.ChassisSlot{}
		store.nodes["m2c1n1"] = byHand
		write("      - " + declared + "\n")
		if err := live.Reload(); (err == nil) != strings.Contains(declared, "place") {
			t.Errorf("%s: a node that was added by hand: %v", declared, err)
		}
	}
}

// TestInfrastructureOfAddedNode: no node of the API gets an address of another host of the config,
// or a MAC of this one. A stored one does not stop the start.
func TestInfrastructureOfAddedNode(t *testing.T) {
	node := func(name, ip string, macs ...pools.MAC) pools.PoolNode {
		return pools.PoolNode{Pool: "compute", Node: pools.Node{Name: name, MACs: append(macs, pools.MAC{0x52, 0x54, 0, 0x77, 1, byte(len(name))}), IP: netip.MustParseAddr(ip)}}
	}
	dns := node("d", "10.28.0.53")
	store := &memory{nodes: map[string]pools.PoolNode{"d": dns}}
	live, path, data := newLive(t, store)
	config := strings.Replace(string(data), "dns: [10.28.0.1]", "dns: [10.28.0.53, 10.28.0.54], relays: [10.28.0.7]", 1)
	if config == string(data) {
		t.Fatal("the config has another router")
	}
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := live.Reload(); err != nil {
		t.Fatal("a stored node keeps the config out: ", err)
	}
	for _, n := range []pools.PoolNode{
		node("router", "10.28.0.1"), node("dns", "10.28.0.54"), node("relay", "10.28.0.7"), node("api", "10.28.36.72"),
		node("server", live.Farm().Config.Server.Address.String()),
	} {
		if err := live.AddNode(n); err == nil || !strings.Contains(err.Error(), n.IP.String()) {
			t.Errorf("%s: got error %v", n.Name, err)
		}
	}
	moved := dns
	moved.Tags = nil
	moved.IP = netip.MustParseAddr("10.28.1.77")
	if err := live.ChangeNodes([]pools.NodeChange{{Old: &dns, New: &moved}}); err != nil {
		t.Errorf("a node leaves such an address: %v", err)
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		if len(i.HardwareAddr) == 6 && !pools.MAC(i.HardwareAddr).IsZero() {
			if err := live.AddNode(node("own", "10.28.1.78", pools.MAC(i.HardwareAddr))); err == nil || !strings.Contains(err.Error(), "that of this server") {
				t.Errorf("the MAC of %s: got error %v", i.Name, err)
			}
		}
	}
}
