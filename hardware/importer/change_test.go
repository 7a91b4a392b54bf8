package importer_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"drover/hardware/importer"
	"drover/hardware/moonshot"
	"drover/pools"
)

func mac(t *testing.T, s string) pools.MAC {
	t.Helper()
	m, err := pools.ParseMAC("94:57:a5:00:00:" + s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// chassisOf returns an inventory from text such as "c1n1=01,02 c2n1= c3n1!": a node with
// MACs, one without, and a row that was refused.
func chassisOf(t *testing.T, text string) *moonshot.Inventory {
	t.Helper()
	inv := &moonshot.Inventory{}
	for word := range strings.FieldsSeq(text) {
		id, macs, _ := strings.Cut(strings.TrimSuffix(word, "!"), "=")
		slot, ok := pools.ParseSlot(id)
		if !ok {
			t.Fatalf("%q is no slot", id)
		}
		if strings.HasSuffix(word, "!") {
			inv.Problems = append(inv.Problems, moonshot.Note{Slot: slot, Text: "torn"})
			continue
		}
		n := moonshot.Node{Slot: slot}
		for i, m := range strings.FieldsFunc(macs, func(r rune) bool { return r == ',' }) {
			n.NICs = append(n.NICs, moonshot.NIC{Number: i + 1, Switch: string("AB"[i%2]), MAC: mac(t, m)})
		}
		inv.Nodes = append(inv.Nodes, n)
	}
	return inv
}

// storedOf returns stored nodes from text such as "m1c1n1=01,02 other=03@drover.yaml".
func storedOf(t *testing.T, text string) importer.Stored {
	t.Helper()
	s := importer.Stored{Fixed: func(n pools.NodeInfo) string {
		if n.Declared() {
			return "it is declared in " + n.Source.Position()
		}
		return ""
	}}
	for i, word := range strings.Fields(text) {
		word, where, _ := strings.Cut(word, "@")
		name, macs, _ := strings.Cut(word, "=")
		n := pools.NodeInfo{PoolNode: pools.PoolNode{Pool: "old", Node: pools.Node{Name: name, IP: netip.AddrFrom4([4]byte{10, 28, 0, byte(i + 1)})}}}
		for m := range strings.SplitSeq(macs, ",") {
			n.MACs = append(n.MACs, mac(t, m))
		}
		if where != "" {
			n.Source = pools.Origin{File: where, Line: 7}
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

func TestCompare(t *testing.T) {
	for _, tt := range []struct {
		name, chassis, stored string
		options               importer.Options
		want                  string // lines, or part of the error
		err                   error
	}{
		{name: "a new chassis", chassis: "c1n1=01,02 c2n1=03", want: "+ m1c1n1 [01 02]\n+ m1c2n1 [03]"},
		{name: "again", chassis: "c1n1=01,02", stored: "m1c1n1=01,02", want: "= m1c1n1 [01 02]"},
		{name: "an exchanged cartridge", chassis: "c1n1=11,12", stored: "m1c1n1=01,02", want: "~ m1c1n1 [11 12] macs 01 02 -> 11 12"},
		{name: "two cartridges exchanged", chassis: "c3n1=04 c4n1=03", stored: "m1c3n1=03 m1c4n1=04", want: "~ m1c3n1 [04] macs 03 -> 04\n~ m1c4n1 [03] macs 04 -> 03"},
		{name: "switched off, without MACs", chassis: "c1n1= c2n1=", stored: "m1c1n1=01", want: "? m1c1n1 no network card has a MAC: what is stored stays\n? m1c2n1 no network card has a MAC"},
		{name: "a row that was refused", chassis: "c1n1! c2n1=02 c3n1!", stored: "m1c1n1=01", want: "? m1c1n1 torn\n+ m1c2n1 [02]\n? m1c3n1 torn"},
		{name: "a MAC twice in the chassis", chassis: "c1n1=01 c2n1=01 c3n1=03", want: "! m1c1n1 MAC 01 is of m1c1n1 and m1c2n1 in this chassis\n! m1c2n1 MAC 01 is of m1c1n1 and m1c2n1 in this chassis\n+ m1c3n1 [03]"},
		{name: "a MAC of a node added by hand", chassis: "c1n1=01", stored: "web7=01", want: `! m1c1n1 MAC 01 is already that of node "web7"`},
		{name: "a MAC of a node in the file", chassis: "c1n1=01", stored: "web7=01@drover.yaml", want: `! m1c1n1 MAC 01 is already that of node "web7" in drover.yaml:7`},
		{name: "the node is in the file", chassis: "c1n1=01 c2n1=03", stored: "m1c1n1=01@drover.yaml m1c2n1=02@drover.yaml", want: "= m1c1n1 [01]\n! m1c2n1 macs 02 -> 03, but it is declared in drover.yaml:7"},
		{name: "exchanged with one in the file", chassis: "c1n1=02 c2n1=01", stored: "m1c1n1=01 m1c2n1=02@drover.yaml",
			want: `! m1c1n1 MAC 02 is already that of node "m1c2n1" in drover.yaml:7` + "\n! m1c2n1 macs 02 -> 01, but it is declared in drover.yaml:7"},
		{name: "a chain that ends at a fixed node", chassis: "c1n1=02 c2n1=03 c3n1=", stored: "m1c1n1=01 m1c2n1=02 m1c3n1=03",
			want: `! m1c1n1 MAC 02 stays with node "m1c2n1", which is not changed` + "\n" + `! m1c2n1 MAC 03 is already that of node "m1c3n1", whose own cards have no MAC` + "\n? m1c3n1 no network card has a MAC: what is stored stays"},
		{name: "one is gone", chassis: "c1n1=01 c2n1=02", stored: "m1c1n1=01 m1c2n1=02 m1c3n1=03", want: "= m1c1n1 [01]\n= m1c2n1 [02]\n- m1c3n1 it is not in the chassis"},
		{name: "one is gone, and is marked", chassis: "c1n1=01 c2n1=02", stored: "m1c1n1=01 m1c2n1=02 m1c3n1=03", options: importer.Options{Prune: true}, want: "= m1c1n1 [01]\n= m1c2n1 [02]\n- m1c3n1 [03] ignored it is not in the chassis: it is to be ignored from now on"},
		{name: "a cartridge was moved to an empty slot", chassis: "c1n1=01 c3n1=02", stored: "m1c1n1=01 m1c2n1=02",
			want: "= m1c1n1 [01]\n- m1c2n1 it is not in the chassis\n" + `! m1c3n1 MAC 02 is already that of node "m1c2n1", which is not in the chassis any more (remove that node, and import again)`},
		{name: "most are gone", chassis: "c1n1=01", stored: "m1c1n1=01 m1c2n1=02 m1c3n1=03", err: importer.ErrLost, want: "m1 had 3 nodes, 2 of them are not there"},
		{name: "all are gone", chassis: "", stored: "m1c1n1=01", err: importer.ErrLost},
		{name: "half is gone", chassis: "c1n1=01", stored: "m1c1n1=01 m1c2n1=02", want: "= m1c1n1 [01]\n- m1c2n1 it is not in the chassis"},
		{name: "most are gone, and that is right", chassis: "c1n1=01", stored: "m1c1n1=01 m1c2n1=02 m1c3n1=03", options: importer.Options{Force: true}, want: "= m1c1n1 [01]\n- m1c2n1 it is not in the chassis\n- m1c3n1 it is not in the chassis"},
		{name: "other chassis are not missed", chassis: "c1n1=01", stored: "m2c1n1=02 m2c2n1=03 web=04", want: "+ m1c1n1 [01]"},
		{name: "nodes that are not selected are not missing", chassis: "c1n1=01", stored: "m1c1n1=01 m1c2n1=02 m1c3n1=03", options: importer.Options{Select: selection(t, "c1")}, want: "= m1c1n1 [01]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			namer, err := importer.NewNamer(pools.Chassis{Name: "m1", Pool: "compute"}, false)
			if err != nil {
				t.Fatal(err)
			}
			changes, err := namer.Compare(chassisOf(t, tt.chassis), storedOf(t, tt.stored), tt.options)
			if tt.err != nil {
				if !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.want) || changes != nil {
					t.Errorf("got %v, want %v with %q", err, tt.err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, c := range changes {
				line := c.Kind.Mark() + " " + c.Name
				if c.New != nil {
					line += fmt.Sprint(" ", c.New.MACs)
					if c.New.Ignore {
						line += " ignored"
					}
				}
				if c.Why != "" {
					line += " " + c.Why
				}
				lines = append(lines, short(line))
			}
			if got := strings.Join(lines, "\n"); got != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

// short shortens MACs to their last byte, and removes the brackets of their lists.
func short(line string) string {
	line = strings.ReplaceAll(line, "94:57:a5:00:00:", "")
	before, after, found := strings.Cut(line, "macs ")
	if !found {
		return line
	}
	return before + "macs " + strings.NewReplacer("[", "", "]", "").Replace(after)
}

func selection(t *testing.T, text string) pools.Selection {
	t.Helper()
	s, err := pools.ParseSelection(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestNaming renders good and bad templates.
func TestNaming(t *testing.T) {
	for _, tt := range []struct {
		name string
		n    pools.Chassis
		want string // of c12n1 with cards 01 on A and 02 on B, or part of the error
	}{
		{"default", pools.Chassis{Name: "m1"}, "m1c12n1 [01 02] <nil> []"},
		{"all of it", pools.Chassis{Name: "m1", NameTemplate: "n{{.Slot}}", IPTemplate: "10.28.{{add 100 .Cartridge}}.{{mul 2 .Node}}", Tags: []string{"moonshot", "in-{{.Chassis}}"}}, "nc12n1 [01 02] 10.28.112.2 [moonshot in-m1]"},
		{"the first card", pools.Chassis{Name: "m1", NIC: "1"}, "m1c12n1 [01] <nil> []"},
		{"switch B", pools.Chassis{Name: "m1", NIC: "b"}, "m1c12n1 [02] <nil> []"},
		{"no card", pools.Chassis{Name: "m1", NIC: "C"}, `NIC "C": want all`},
		{"one name for a cartridge", pools.Chassis{Name: "m1", NameTemplate: "m{{.Cartridge}}"}, `gives c1n1 and c1n2 one name, "m1"`},
		{"a serial number", pools.Chassis{Name: "m1", NameTemplate: "{{.Serial}}"}, "it knows .Chassis, .Cartridge, .Node and .Slot"},
		{"no DNS label", pools.Chassis{Name: "M_1"}, "no DNS label"},
		{"no template", pools.Chassis{Name: "m1", NameTemplate: "{{"}, "name template"},
		{"no IP template", pools.Chassis{Name: "m1", IPTemplate: "{{.X"}, "IP template"},
		{"no address", pools.Chassis{Name: "m1", IPTemplate: "10.28.{{mul 100 .Cartridge}}.1"}, `"10.28.1200.1", which is no address`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			namer, err := importer.NewNamer(tt.n, false)
			var imported []importer.ImportedNode
			if err == nil {
				imported, err = namer.Nodes(chassisOf(t, "c12n1=01,02"))
			}
			got := fmt.Sprint(err)
			if err == nil {
				ip := "<nil>"
				if imported[0].IP.IsValid() {
					ip = imported[0].IP.String()
				}
				got = strings.ReplaceAll(fmt.Sprint(imported[0].Name, " ", imported[0].MACs, " ", ip, " ", imported[0].Tags), "94:57:a5:00:00:", "")
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestRecordedSlots: a recorded slot identifies a node with any name. Tags of the
// operator stay.
func TestRecordedSlots(t *testing.T) {
	stored := storedOf(t, "web1=01 m1c2n1=02 m1c3n1=03@drover.yaml other=04")
	stored.Nodes[0].ChassisSlot = pools.ChassisSlot{Chassis: "m1", Slot: "c1n1"}
	stored.Nodes[0].Tags = []string{"debug", "moonshot"}
	stored.Nodes[3].ChassisSlot = pools.ChassisSlot{Chassis: "m2", Slot: "c4n1"}
	stored.Nodes[3].Name = "m1c4n1" // the name that c4n1 would get, in another chassis
	namer, err := importer.NewNamer(pools.Chassis{Name: "m1", Pool: "compute", Tags: []string{"moonshot"}}, true)
	if err != nil {
		t.Fatal(err)
	}
	changes, err := namer.Compare(chassisOf(t, "c1n1=01 c2n1=02 c3n1=03 c4n1=05 c5n1=06"), stored, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range changes {
		line := c.Kind.Mark() + " " + c.Name + " " + c.Why
		if c.New != nil {
			line += fmt.Sprint(" ", c.New.ChassisSlot, " ", c.New.Tags)
		}
		lines = append(lines, line)
	}
	want := `~ web1 tags [debug moonshot] -> [moonshot debug] chassis m1 c1n1 [moonshot debug]
~ m1c2n1 tags [] -> [moonshot], it is in chassis m1 c2n1 chassis m1 c2n1 [moonshot]
= m1c3n1   []
! m1c4n1 node "m1c4n1" is in chassis m2 c4n1
+ m1c5n1  chassis m1 c5n1 [moonshot]`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
