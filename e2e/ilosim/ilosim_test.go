package ilosim_test

import (
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/e2e/ilosim"
)

// TestOutput compares the simulator's output with recordings of real chassis.
func TestOutput(t *testing.T) {
	for _, tt := range []struct {
		name     string
		format   ilosim.Format
		commands []string
	}{
		{"2014", ilosim.Format{Old: true}, []string{"show node list", "show node macaddr c1n1", "show node power c1n1", "show node info c1n1", "show firmware"}},
		{"2021", ilosim.Format{}, []string{"show node list", "show node macaddr all", "show node power c1n1,c2n1", "set node bootonce pxe c1n1", "set node power on C1N1", "show node power c1n1", "set node power off force c1n9"}},
		{"2.0", ilosim.Format{Two: true}, []string{"show firmware", "show node mgmtaddr4 all", "show chassis autopower"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := ilosim.New(1, 1, 1, 4)
			c.Format = tt.format
			c.Edit("c1n1", func(n *ilosim.Node) {
				n.Model, n.MACs = "ProLiant m500 Server Cartridge", []string{"a0:1d:48:b5:04:34", "a0:1d:48:b5:04:35", "a0:1d:48:b5:04:36", "a0:1d:48:b5:04:37"}
			})
			c.Put(ilosim.Node{Cartridge: 2, Number: 1, Empty: true})
			var b strings.Builder
			for _, command := range tt.commands {
				b.WriteString("hpiLO-> " + command + "\n" + c.Run(command))
			}
			file := "testdata/" + tt.name + ".golden"
			fixture.Golden(t, file, b.String())
		})
	}
}

// TestNodeLists covers the grammar of lists of nodes.
func TestNodeLists(t *testing.T) {
	c := ilosim.New(1, 9, 2, 1)
	for _, tt := range []struct{ list, want string }{
		{"c1n1", "c1n1"}, {"c1,5,9n1", "c1n1 c5n1 c9n1"}, {"c1n2,c2n1", "c1n2 c2n1"}, {"c1n3", "-"}, {"c1", "-"}, {"web", "-"}, {"", "-"},
	} {
		ids, ok := c.Pick(tt.list)
		got := strings.Join(ids, " ")
		if !ok {
			got = "-"
		}
		if got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.list, got, tt.want)
		}
	}
	if ids, ok := c.Pick("all"); !ok || len(ids) != 18 {
		t.Errorf("all: got %d nodes", len(ids))
	}
}
