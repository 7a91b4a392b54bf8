package nodefile_test

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/migrate/nodefile"
	"drover/pools"
	"drover/pools/config/mistake"
)

// nodes returns nodes of which the second has all that a table has, and the third more.
func nodes(t *testing.T) []pools.PoolNode {
	t.Helper()
	mac := func(text string) pools.MAC {
		m, err := pools.ParseMAC(text)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	all := []pools.PoolNode{{Pool: "web"}, {Pool: "db"}, {Pool: "db"}}
	all[0].Name = "m1"
	all[1].Name, all[1].MACs, all[1].Tags, all[1].Ignore = "m2", []pools.MAC{mac("02:00:00:00:00:01"), mac("02:00:00:00:00:02")}, []string{"a", "b"}, true
	all[1].IP, all[1].IP6 = netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::2")
	all[2].Name, all[2].MACs, all[2].Lease = "m3", []pools.MAC{mac("02:00:00:00:00:03")}, pools.Infinite
	return all
}

// TestRoundTrip: what is written is read as it was, as YAML in whole, as a table in its columns.
func TestRoundTrip(t *testing.T) {
	all := nodes(t)
	var list, table strings.Builder
	if err := nodefile.WriteList(&list, all); err != nil {
		t.Fatal(err)
	}
	more, err := nodefile.WriteTable(&table, all)
	if err != nil || fmt.Sprint(more) != "[m3]" {
		t.Errorf("nodes with more than a table has: %q, %v, want m3", more, err)
	}
	for file, text := range map[string]string{"nodes.yaml": list.String(), "nodes.csv": table.String()} {
		entries, err := nodefile.Read(file, []byte(text))
		if err != nil || len(entries) != len(all) {
			t.Fatalf("%s: %d entries, %v\n%s", file, len(entries), err, text)
		}
		for i, want := range all {
			if got := entries[i].Onto(&want); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: got  %+v\nwant %+v", file, got, want)
			}
		}
		if got := nodefile.Pools(entries); len(got) != 2 || !got["web"] || !got["db"] {
			t.Errorf("%s: pools %v", file, got)
		}
	}
	list.Reset()
	if err := nodefile.WriteList(&list, nil); err != nil {
		t.Fatal(err)
	}
	if entries, err := nodefile.Read("x.yaml", []byte(list.String())); err != nil || len(entries) != 0 || !strings.Contains(list.String(), "[]") {
		t.Errorf("no nodes: %q, %d entries, %v", list.String(), len(entries), err)
	}
}

// TestOnto: a table changes the fields that it has a column for, also to nothing, and no other.
func TestOnto(t *testing.T) {
	old := nodes(t)[1]
	old.Lease = pools.Infinite
	for _, tt := range []struct{ table, want string }{
		{"name,pool\nm2,web\n", "web m2 [02:00:00:00:00:01 02:00:00:00:00:02] 10.0.0.2 fd00::2 [a b] true"},
		{"name,tags\nm2,\n", "db m2 [02:00:00:00:00:01 02:00:00:00:00:02] 10.0.0.2 fd00::2 [] true"},
		{"name,mac,ip,ip6,ignore\nm2,02:00:00:00:00:09,-,,\n", "db m2 [02:00:00:00:00:09] invalid IP invalid IP [a b] false"},
		{"hostname;mac1;mac2\nm2;02:00:00:00:00:08;02:00:00:00:00:09\n", "db m2 [02:00:00:00:00:08 02:00:00:00:00:09] 10.0.0.2 fd00::2 [a b] true"},
	} {
		entries, err := nodefile.Read("t.csv", []byte(tt.table))
		if err != nil || len(entries) != 1 {
			t.Errorf("%s%d entries, %v", tt.table, len(entries), err)
			continue
		}
		n := entries[0].Onto(&old)
		if got := fmt.Sprint(n.Pool, " ", n.Name, " ", n.MACs, " ", n.IP, " ", n.IP6, " ", n.Tags, " ", n.Ignore); got != tt.want || n.Lease != old.Lease {
			t.Errorf("%sgot  %s, lease %v\nwant %s", tt.table, got, n.Lease, tt.want)
		}
		if fresh := entries[0].Onto(nil); fresh.Name != "m2" || fresh.Lease != 0 {
			t.Errorf("%sas a new node: %+v", tt.table, fresh)
		}
	}
}

// TestRefused: each mistake of a file is reported, with its line, and nothing of the file is used.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		file, text string
		want       []string
	}{
		{"a.csv", "", []string{"an empty table"}},
		{"a.csv", "pool,mac\nweb,02:00:00:00:00:01\n", []string{"no column has the names of the nodes"}},
		{"a.csv", "name,colour\nm1,red\n", []string{`unknown column "colour"`}},
		{"a.csv", "name,ip,ipaddress\nm1,,\n", []string{"two columns have the ip"}},
		{"a.csv", "name,pool\nm1\nm2,\n,web\nm3,web,x\n", []string{`a.csv:2: node "m1" has no pool`, `a.csv:3: node "m2" has no pool`, "a.csv:4: a node without a name", "a.csv:5: 3 values in 2 columns"}},
		{"a.csv", "name,pool,mac,ip,ip6,ignore\nm1,web,x,,,\nm2,web,,fd00::1,,\nm3,web,,,10.0.0.1,\nm4,web,,,,perhaps\n",
			[]string{"a.csv:2: column mac", `a.csv:3: column ip: "fd00::1" is not an IPv4 address`, `a.csv:4: column ip6: "10.0.0.1" is not an IPv6 address`, `a.csv:5: column ignore: "perhaps"`}},
		{"a.csv", "name,pool\nm1,web\nm1,web\n", []string{`a.csv:3: node "m1" is there twice, first in line 2`}},
		{"a.csv", "name,mac\nm1,02:00:00:00:00:01\nm2,02-00-00-00-00-01\n", []string{"the MAC 02:00:00:00:00:01 is there twice, first in line 2"}},
		{"a.tsv", "name\tpool\nm1\t\n", []string{`a.tsv:2: node "m1" has no pool`}},
		{"a.yaml", "nodes:\n- {name: m1}\n- {pool: web}\n- {pool: web, name: m1}\n", []string{`a.yaml:2: node "m1" has no name or no pool`, "a.yaml:3", `node "m1" is there twice`}},
		{"a.yaml", "nodes: {m1: {pool: web}}\n", []string{"nodes"}},
		{"a.yaml", "nodes: [{pool: web, name: m1, colour: red}]\n", []string{"colour"}},
		{"a.yaml", "nodes: [{pool: web, name: m1, ip: 10.0.0.999}]\n", []string{"10.0.0.999"}},
		{"a.yaml", "machines: []\n", []string{"machines"}},
		{"a.json", `{"nodes": [`, []string{"a.json"}},
		{"a.yaml", "a: &a [*a]\n", []string{"a.yaml"}},
		{"a.yaml", strings.Repeat("[", 20_000), []string{"a.yaml"}},
	} {
		entries, err := nodefile.Read(tt.file, []byte(tt.text))
		if err == nil {
			t.Errorf("%s %.60q: %d entries, no error", tt.file, tt.text, len(entries))
			continue
		}
		fixture.WantText(t, tt.text[:min(len(tt.text), 60)], err.Error(), tt.want...)
		if nodefile.IsTable(tt.file) {
			continue // its mistakes may be of the whole file
		}
		if _, ok := errors.AsType[mistake.Errors](err); !ok {
			t.Errorf("%.60q: %T is no mistake of a file", tt.text, err)
		}
	}
}

// TestIsList: a list of nodes is told from objects and configs.
func TestIsList(t *testing.T) {
	for text, want := range map[string]bool{
		"nodes: []\n": true, `{"nodes": [{"name": "m1"}]}`: true, "": false, "[]": false, "x": false, "pools: []\n": false,
		"kind: Machine\nnodes: []\n": false, "nodes: null\n": true,
	} {
		if got, err := nodefile.IsList("f", []byte(text)); got != want || err != nil {
			t.Errorf("%q: got %t, %v, want %t", text, got, err, want)
		}
	}
	if _, err := nodefile.IsList("f", []byte("a: [")); err == nil {
		t.Error("no error about a text that is no YAML")
	}
	for name, want := range map[string]bool{"a.csv": true, "a.CSV": true, "b.tsv": true, "csv": false, "a.csv.yaml": false, "-": false} {
		if got := nodefile.IsTable(name); got != want {
			t.Errorf("%s: got table %t, want %t", name, got, want)
		}
	}
}
