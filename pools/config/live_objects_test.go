package config_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/declared"
	"drover/pools/resolve"
)

const objectsConfig = `server: {interfaces: [lo], address: 10.28.0.2, objects: {namespace: farm}}
subnets: [{cidr: 10.28.0.0/16}]
tags: {quiet: {kernelArgs: quiet}}
pools:
  - {name: file, image: debian-12, nodes: [{name: f1, macs: ["52:54:00:00:00:01"], ip: 10.28.0.11}]}
`

// object returns an object with a spec in JSON. The name is that of its place: Machine m1.
func object(name string, generation int64, spec string) *declared.Object {
	kind, name, _ := strings.Cut(name, " ")
	return declared.New(declared.Key{Kind: pools.ObjectKind(kind), Name: name}, generation, []byte(spec))
}

func machine(name, pool, mac, ip string) *declared.Object {
	return object("Machine "+name, 1, fmt.Sprintf(`{"pool": %q, "macs": ["52:54:00:00:00:%s"], "ip": "10.28.0.%s"}`, pool, mac, ip))
}

// liveObjects returns a live farm of a config.
func liveObjects(t *testing.T, text string, last ...*declared.Object) (*config.Live, *memory) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("drover.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	store := &memory{nodes: map[string]pools.PoolNode{}}
	l, err := config.NewLive(config.Source{File: "drover.yaml"}, store, last...)
	if err != nil {
		t.Fatal(err)
	}
	return l, store
}

// set puts objects in force, and compares what is in force then, as "Machine m1@2", and
// the words of wrong ones.
func set(t *testing.T, l *config.Live, want string, wrong map[string]string, all ...*declared.Object) {
	t.Helper()
	c, err := l.SetObjects(all)
	if err != nil {
		t.Fatal(err)
	}
	inForce := []string{}
	for _, o := range c.InForce {
		inForce = append(inForce, fmt.Sprintf("%s@%d", o.Key, o.Generation))
	}
	if got := strings.Join(inForce, ", "); got != want {
		t.Errorf("in force are %s, want %s", got, want)
	}
	for k, errs := range c.Wrong {
		if text, ok := wrong[k.String()]; !ok || !strings.Contains(errs.Error(), text) {
			t.Errorf("%s is wrong: %v; want %q", k, errs, text)
		}
	}
	for k := range wrong {
		kind, name, _ := strings.Cut(k, " ")
		if c.Wrong[declared.Key{Kind: pools.ObjectKind(kind), Name: name}] == nil {
			t.Errorf("%s is not wrong", k)
		}
	}
}

func resolveMAC(l *config.Live, last string) *resolve.Plan {
	m, err := pools.ParseMAC("52:54:00:00:00:" + last)
	if err != nil {
		panic(err)
	}
	return l.Farm().Resolve(resolve.Query{MAC: m, Firmware: pools.BIOS})
}

// TestObjects: objects of all kinds are a part of the farm, beside file and API.
func TestObjects(t *testing.T) {
	l, store := liveObjects(t, objectsConfig)
	set(t, l, "Subnet second@1, Tag serial@1, Tenant a@1, Pool web@1, Machine f2@1, Machine m1@1, Chassis c1@1", nil,
		machine("m1", "web", "02", "12"), machine("f2", "file", "03", "13"),
		object("Pool web", 1, `{"cluster": "a", "image": "debian-13", "tags": ["quiet", "serial"]}`),
		object("Tenant a", 1, `{"kubeconfig": "secrets/a.kubeconfig"}`),
		object("Tag serial", 1, `{"kernelArgs": "console=ttyS0", "labels": {"a": "b"}}`),
		object("Subnet second", 1, `{"cidr": "10.29.0.0/16"}`),
		object("Chassis c1", 1, `{"address": "ilo.example.org", "passwordFile": "secrets/c1.pass", "pool": "web"}`))
	p := resolveMAC(l, "02")
	if p == nil || p.Node != "m1" || p.Cluster != "a" || p.Image != "debian-13" || strings.Join(p.KernelArgs, " ") != "quiet console=ttyS0" {
		t.Fatalf("got %+v", p)
	}
	if p := resolveMAC(l, "03"); p == nil || p.Pool != "file" {
		t.Errorf("a machine in a pool of the file: got %+v", p)
	}
	n, _ := l.Farm().Node("m1")
	if got := n.Source.Position(); got != "Machine m1" || !n.Declared() {
		t.Errorf("its origin is %q", got)
	}
	if len(l.Farm().Config.Chassis) != 1 || len(l.Farm().Config.Subnets) != 2 {
		t.Errorf("got %+v", l.Farm().Config)
	}

	// The API cannot change it, and gets nothing that is its.
	err := l.RemoveNode("m1")
	fixture.WantText(t, "removal over the API", fmt.Sprint(err), `node "m1" is declared in Machine m1: change it there`)
	node := pools.PoolNode{Pool: "web", Node: pools.Node{Name: "added", MACs: p.MACs, IP: l.Farm().Address().Next()}}
	fixture.WantText(t, "a MAC over the API", fmt.Sprint(l.AddNode(node)), `MAC 52:54:00:00:00:02 is already that of node "m1" in Machine m1`)
	node.MACs = []pools.MAC{{0x52, 0x54, 0, 0, 0, 9}}
	if err := l.AddNode(node); err != nil || len(store.nodes) != 1 {
		t.Errorf("a node of the API in a pool of an object: %v", err)
	}
}

// TestWrongObjects: an object that is wrong gets the words of drover check, its last good
// version stays in force, and right ones beside it are put in force.
func TestWrongObjects(t *testing.T) {
	l, _ := liveObjects(t, objectsConfig)
	web, m1, m2 := object("Pool web", 1, `{"image": "debian-12"}`), machine("m1", "web", "02", "12"), machine("m2", "web", "03", "13")
	set(t, l, "Pool web@1, Machine m1@1", nil, web, m1)
	for name, tt := range map[string]struct {
		change []*declared.Object
		want   string
		wrong  map[string]string
	}{
		"a new one": {[]*declared.Object{web, m1, m2, machine("x", "wbe", "04", "14")}, "Pool web@1, Machine m1@1, Machine m2@1",
			map[string]string{"Machine x": `Machine x: node "x": unknown pool "wbe" (did you mean "web"?)`}},
		"a changed one": {[]*declared.Object{object("Pool web", 2, `{"image": "debian-12", "tags": ["quite"]}`), m1}, "Pool web@1, Machine m1@1",
			map[string]string{"Pool web": `Pool web: pool "web": unknown tag "quite" (did you mean "quiet"?)`}},
		"a MAC of one that was there, by a name before it": {[]*declared.Object{web, m1, machine("a1", "web", "02", "15")}, "Pool web@1, Machine m1@1",
			map[string]string{"Machine a1": `MAC 52:54:00:00:00:02 is already that of node "a1" in Machine a1`}},
		"a MAC of the file": {[]*declared.Object{web, m1, machine("a1", "web", "01", "15")}, "Pool web@1, Machine m1@1",
			map[string]string{"Machine a1": `MAC 52:54:00:00:00:01 is already that of node "f1" in drover.yaml:5`}},
		"an unknown key": {[]*declared.Object{web, m1, object("Machine y", 1, `{"pool": "web", "mac": "x"}`)}, "Pool web@1, Machine m1@1",
			map[string]string{"Machine y": `unknown key "mac" (did you mean "macs"?)`}},
		"a null":               {[]*declared.Object{web, m1, object("Machine y", 1, `null`)}, "Pool web@1, Machine m1@1", map[string]string{"Machine y": "not an object"}},
		"two kinds":            {[]*declared.Object{web, m1, object("Tag quiet", 1, `{}`)}, "Pool web@1, Machine m1@1", map[string]string{"Tag quiet": `tag "quiet" is there twice, first in drover.yaml:3`}},
		"a program":            {[]*declared.Object{web, m1, object("Machine y", 1, `{"pool": "web", "macs": ["52:54:00:00:00:04"], "ip": "10.28.0.14", "power": {"driver": "exec", "program": "/bin/sh"}}`)}, "Pool web@1, Machine m1@1", map[string]string{"Machine y": "programs of the server"}},
		"a password":           {[]*declared.Object{web, m1, object("Chassis y", 1, `{"address": "a", "passwordFile": "../api.token", "pool": "web"}`)}, "Pool web@1, Machine m1@1", map[string]string{"Chassis y": `"../api.token" is not a file below`}},
		"a file of the server": {[]*declared.Object{web, m1, object("Tag y", 1, `{"files": {"/etc/x": {"fromFile": "a.kubeconfig"}}}`)}, "Pool web@1, Machine m1@1", map[string]string{"Tag y": "files./etc/x: file a.kubeconfig: files of the server and Secrets are for its config file alone"}},
		"what another needs": {[]*declared.Object{object("Tenant a", 1, `{}`), object("Pool web", 2, `{"image": "debian-12", "cluster": "a"}`), m1, m2}, "Pool web@1, Machine m1@1, Machine m2@1",
			map[string]string{"Tenant a": `cluster "a" has no kubeconfig`, "Pool web": `pool "web": unknown cluster "a"`}},
	} {
		t.Run(name, func(t *testing.T) {
			set(t, l, tt.want, tt.wrong, tt.change...)
			if p := resolveMAC(l, "02"); p == nil || p.Node != "m1" {
				t.Errorf("m1 gets %+v", p)
			}
			set(t, l, "Pool web@1, Machine m1@1", nil, web, m1) // mended
		})
	}
}

// TestDeletedObjects: an object that others need stays in force until they are gone.
func TestDeletedObjects(t *testing.T) {
	l, _ := liveObjects(t, objectsConfig)
	web, m1 := object("Pool web", 1, `{"image": "debian-12", "tags": ["new"]}`), machine("m1", "web", "02", "12")
	tag, other := object("Tag new", 1, `{"kernelArgs": "new"}`), object("Tag other", 1, `{}`)
	set(t, l, "Tag new@1, Tag other@1, Pool web@1, Machine m1@1", nil, web, m1, tag, other)
	set(t, l, "Tag new@1, Pool web@1, Machine m1@1", nil, m1)
	if got := fmt.Sprint(l.Objects().Kept); got != "[Tag new Pool web]" {
		t.Errorf("kept are %s", got)
	}
	set(t, l, "", nil)
	if resolveMAC(l, "02") != nil || len(l.Objects().Kept) > 0 {
		t.Error("a deleted machine boots")
	}
}

// TestShrunkSubnet: a change that makes another object wrong is not put in force; those
// beside it are.
func TestShrunkSubnet(t *testing.T) {
	l, _ := liveObjects(t, objectsConfig)
	machine := object("Machine m1", 1, `{"pool": "file", "macs": ["52:54:00:00:00:02"], "ip": "10.29.9.9"}`)
	set(t, l, "Subnet s@1, Machine m1@1", nil, object("Subnet s", 1, `{"cidr": "10.29.0.0/16"}`), machine)
	set(t, l, "Subnet s@1, Tag t@1, Machine m1@1", map[string]string{"Subnet s": "address 10.29.9.9 is in none of the subnets"},
		object("Subnet s", 2, `{"cidr": "10.29.0.0/24"}`), machine, object("Tag t", 1, `{}`))
}

// TestFileAndObjects: a file that takes what objects have is refused while the server runs,
// and counts when it starts.
func TestFileAndObjects(t *testing.T) {
	m1, m2 := machine("m1", "file", "02", "12"), machine("m2", "file", "03", "13")
	l, _ := liveObjects(t, objectsConfig)
	set(t, l, "Machine m1@1, Machine m2@1", nil, m1, m2)
	took := objectsConfig + "  - {name: more, image: debian-12, nodes: [{name: f2, macs: [\"52:54:00:00:00:02\"], ip: 10.28.0.14}]}\n"
	if err := os.WriteFile("drover.yaml", []byte(took), 0o600); err != nil {
		t.Fatal(err)
	}
	fixture.WantText(t, "reload", fmt.Sprint(l.Reload()), `MAC 52:54:00:00:00:02 is already that of node "m1" in Machine m1`)
	if p := resolveMAC(l, "02"); p == nil || p.Node != "m1" {
		t.Errorf("after the refused reload: %+v", p)
	}

	l, _ = liveObjects(t, took, m1, m2)
	if p := resolveMAC(l, "02"); p == nil || p.Node != "f2" {
		t.Errorf("after a start: %+v", p)
	}
	if p := resolveMAC(l, "03"); p == nil || p.Node != "m2" {
		t.Errorf("an object that was in force before the start: %+v", p)
	}
	set(t, l, "Machine m2@1", map[string]string{"Machine m1": `already that of`}, m1, m2)

	// What a file names is in the file.
	if err := os.WriteFile("drover.yaml", []byte(objectsConfig+"  - {name: more, image: debian-12, tags: [t]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	set(t, l, "Tag t@1, Machine m2@1", nil, m2, object("Tag t", 1, `{}`))
	fixture.WantText(t, "reload", fmt.Sprint(l.Reload()), `drover.yaml:6: pool "more": unknown tag "t"`)
}

// TestStoredObjects: what is stored is read as it was.
func TestStoredObjects(t *testing.T) {
	path := t.TempDir() + "/objects.json"
	if err := declared.Save(path, "farm", []*declared.Object{machine("m1", "file", "02", "12")}); err != nil {
		t.Fatal(err)
	}
	fixture.WantMode(t, path, 0o600)
	last, err := declared.Load(path, "farm")
	if err != nil || len(last) != 1 {
		t.Fatalf("got %v, %v", last, err)
	}
	l, _ := liveObjects(t, objectsConfig, last...)
	if p := resolveMAC(l, "02"); p == nil || p.Node != "m1" {
		t.Errorf("got %+v", p)
	}
	if last, err := declared.Load(path, "other"); len(last) > 0 || err != nil {
		t.Errorf("another namespace: got %v, %v", last, err)
	}
	if err := os.WriteFile(path, []byte(`{"namespace": "farm", "objects": [{"kind": "Other"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := declared.Load(path, "farm"); err == nil {
		t.Error("an unknown kind is no error")
	}
}
