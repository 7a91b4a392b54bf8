package config_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/include"
	"drover/pools/config/mistake"
)

// TestWaitingNodes: a server whose stored objects are lost starts without the nodes of the API
// that need them. They are in force as soon as the objects are there.
func TestWaitingNodes(t *testing.T) {
	l, store := liveObjects(t, objectsConfig)
	web, tag, subnet := object("Pool web", 1, `{"image": "debian-12"}`), object("Tag t", 1, `{}`), object("Subnet s", 1, `{"cidr": "10.29.0.0/16"}`)
	set(t, l, "Subnet s@1, Tag t@1, Pool web@1", nil, web, tag, subnet)
	add := func(name, pool, ip string, mac byte, tags ...string) error {
		return l.AddNode(pools.PoolNode{Pool: pool, Node: pools.Node{Name: name, MACs: []pools.MAC{{0x52, 0x54, 0, 0, 0, mac}}, IP: netip.MustParseAddr(ip), Tags: tags}})
	}
	if err := errors.Join(add("a1", "web", "10.28.0.21", 0x21), add("a2", "file", "10.29.0.22", 0x22), add("a3", "file", "10.28.0.23", 0x23, "t"), add("a4", "file", "10.28.0.24", 0x24)); err != nil {
		t.Fatal(err)
	}
	inForce := func(when, want string) {
		t.Helper()
		got := ""
		for _, last := range []string{"21", "22", "23", "24"} {
			if p := resolveMAC(l, last); p != nil {
				got += p.Node + " "
			}
		}
		for i := range l.Farm().Waiting() {
			got += "."
			if !l.Farm().Waits(l.Farm().Waiting()[i].Name) {
				t.Error("a waiting node does not wait")
			}
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", when, got, want)
		}
	}
	inForce("with objects", "a1 a2 a3 a4 ")

	var err error
	if l, err = config.NewLive(config.Source{File: "drover.yaml"}, store); err != nil {
		t.Fatal(err)
	}
	inForce("after a start", "a4 ...")
	fixture.WantText(t, "a new node", fmt.Sprint(add("a5", "web", "10.28.0.25", 0x25)), `node "a5": unknown pool "web"`)
	if err := add("a1", "file", "10.28.0.25", 0x25); !errors.Is(err, pools.ErrExists) {
		t.Errorf("the name of one that waits: got %v", err)
	}
	if err := errors.Join(add("a5", "file", "10.28.0.25", 0x25), l.RemoveNode("a5"), l.Reload()); err != nil {
		t.Fatal(err)
	}
	inForce("after changes", "a4 ...")
	set(t, l, "Pool web@1", nil, web)
	inForce("with the pool", "a1 a4 ..")
	if err := l.RemoveNode("a2"); err != nil || len(store.nodes) != 3 {
		t.Errorf("the removal of one that waits: %v", err)
	}
	set(t, l, "Subnet s@1, Tag t@1, Pool web@1", nil, web, tag, subnet)
	inForce("with all objects", "a1 a3 a4 ")
	set(t, l, "Tag t@1, Pool web@1", nil)
	inForce("with deleted objects", "a1 a3 a4 ")

	// The file by itself can be checked, too, and beside the objects in force.
	set(t, l, "Subnet s@1, Tag t@1, Pool web@1", nil, web, tag, subnet)
	data, err := os.ReadFile("drover.yaml")
	if err != nil {
		t.Fatal(err)
	}
	nodes, _ := store.Nodes()
	if farm, err := config.Parse("drover.yaml", data, nodes...); err != nil || len(farm.Waiting()) != 2 {
		t.Errorf("the file alone: %v", err)
	}
	check := func(old, text string) error {
		return l.Check(&include.Text{File: "drover.yaml", Main: []byte(strings.Replace(string(data), old, text, 1)), From: include.Nowhere})
	}
	if err := check("quiet}", "verbose}"); err != nil {
		t.Errorf("the file beside the objects: %v", err)
	}
	fixture.WantText(t, "a name of an object", fmt.Sprint(check("pools:\n", "pools:\n  - {name: web, image: debian-12}\n")), `pool "web" is there twice`)
	fixture.WantText(t, "no pool for nodes of the API", fmt.Sprint(check("name: file", "name: other")), `node "a4": unknown pool "file"`)
	inForce("after checks", "a1 a3 a4 ")

	// Without objects a pool cannot come.
	if _, err := config.Parse("drover.yaml", []byte(strings.Replace(string(data), ", objects: {namespace: farm}", "", 1)), nodes...); err == nil || !strings.Contains(err.Error(), `node "a1": unknown pool "web"`) {
		t.Errorf("without server.objects: %v", err)
	} else if errs, ok := errors.AsType[mistake.Errors](err); !ok || len(errs) != 2 {
		t.Errorf("without server.objects: %v", err)
	}
}
