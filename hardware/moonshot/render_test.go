package moonshot_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"drover/hardware/bmc"
	"drover/hardware/moonshot"
	"drover/pools"
)

// look is a format of tables, as chassis and terminals write them.
type look struct {
	health     string // name of the column
	tags, pads bool   // with asset tags; slot numbers as " 01"
	blankSlots bool   // no slot number on the second and later nodes of a cartridge
	upper      bool
	sep        string // of MACs
	eol        string
	wrap       int // 0: not
	noise      bool
	extra      int // additional width of columns, in characters
}

// TestRenderParse: a random inventory, written in a random format, is parsed unchanged.
func TestRenderParse(t *testing.T) {
	const seeds = 300
	for seed := range uint64(seeds) {
		rnd := rand.New(rand.NewPCG(seed, 6))
		want := randomChassis(rnd)
		l := randomLook(rnd)
		if !l.tags {
			for i := range want.Nodes {
				want.Nodes[i].AssetTag = ""
			}
		}
		text := l.list(want) + l.macs(want)
		got, err := moonshot.Parse(text)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if len(got.Problems) > 0 {
			t.Fatalf("seed %d, %+v: got problems %v, want none", seed, l, got.Problems)
		}
		g, w := strings.Split(summary(withoutNotes(got), nil), "\n"), strings.Split(summary(want, nil), "\n")
		for i := range w {
			if i >= len(g) || g[i] != w[i] {
				t.Fatalf("seed %d, %+v:\ngot  %s\nwant %s", seed, l, g[min(i, len(g)-1)], w[i])
			}
		}
		if len(g) != len(w) {
			t.Fatalf("seed %d, %+v: got %d lines, want %d", seed, l, len(g), len(w))
		}
	}
}

func withoutNotes(inv *moonshot.Inventory) *moonshot.Inventory {
	return &moonshot.Inventory{Nodes: inv.Nodes, Empty: inv.Empty}
}

func randomChassis(rnd *rand.Rand) *moonshot.Inventory {
	inv := &moonshot.Inventory{}
	pick := func(words ...string) string { return words[rnd.IntN(len(words))] }
	cards := 1 + rnd.IntN(4)
	for c := 1; c <= pools.Cartridges; c++ {
		if rnd.IntN(4) == 0 {
			inv.Empty = append(inv.Empty, pools.Slot{Cartridge: c, Node: 1})
			continue
		}
		four := rnd.IntN(3) == 0
		for n := 1; n == 1 || four && n <= 4; n++ {
			if n > 1 && rnd.IntN(5) == 0 {
				continue // a gap
			}
			node := moonshot.Node{
				Slot: pools.Slot{Cartridge: c, Node: n}, Maker: pick("Intel Corporation", "AMD", "AppliedMicro"),
				Arch: pick("x86 Architecture", "ARM64"), Memory: pick("8 GB", "32 GB", "128 GB"), Health: pick("OK", "Failed"),
				AssetTag: pick("", "", "rack 3 On hold", "c9n1 On", "příliš", "52:54:00:00:00:01", "-- rack --", "show me", "a>b", "No Asset Information"),
				Power:    bmc.State(pick(string(bmc.On), string(bmc.Off), string(bmc.Unknown))),
			}
			for i := 1; i <= cards; i++ {
				if rnd.IntN(6) > 0 {
					node.NICs = append(node.NICs, moonshot.NIC{
						Number: i, Switch: string("AB"[(i-1)%2]), MAC: pools.MAC{0x94, 0x57, byte(c), byte(n), byte(i), byte(rnd.Uint32())},
					})
				}
			}
			inv.Nodes = append(inv.Nodes, node)
		}
	}
	return inv
}

func randomLook(rnd *rand.Rand) look {
	return look{
		health: []string{"Health", "Status"}[rnd.IntN(2)], tags: rnd.IntN(2) == 0, pads: rnd.IntN(2) == 0,
		blankSlots: rnd.IntN(2) == 0, upper: rnd.IntN(3) == 0, sep: []string{":", "-", ""}[rnd.IntN(3)],
		eol: []string{"\n", "\r\n", "\r\r\n"}[rnd.IntN(3)], wrap: []int{0, 0, 80}[rnd.IntN(3)], noise: rnd.IntN(3) == 0,
		extra: rnd.IntN(3) * rnd.IntN(5),
	}
}

// table writes rows under a header.
func (l look) table(command string, names []string, widths []int, rows [][]string) string {
	var b strings.Builder
	write := func(cells []string) {
		s := ""
		for i, c := range cells {
			pad := max(0, widths[i]-len([]rune(c)))
			if i == len(cells)-1 {
				pad = 0
			}
			s += c + strings.Repeat(" ", pad) + " "
		}
		s = strings.TrimRight(s, " ")
		for r := []rune(s); l.wrap > 0 && len(r) > l.wrap; r = []rune(s) {
			b.WriteString(string(r[:l.wrap]) + l.eol)
			s = string(r[l.wrap:])
		}
		b.WriteString(s + l.eol)
	}
	b.WriteString("hpiLO-> " + command + l.eol + l.eol)
	write(names)
	dashes := make([]string, len(widths))
	for i, w := range widths {
		dashes[i] = strings.Repeat("-", w)
	}
	write(dashes)
	for i, r := range rows {
		if l.noise && i%7 == 3 {
			b.WriteString("-- More --\r          \r")
		}
		write(r)
	}
	b.WriteString(l.eol)
	return b.String()
}

func (l look) slot(s pools.Slot) []string {
	number := fmt.Sprintf("%3d", s.Cartridge)
	if l.pads {
		number = fmt.Sprintf(" %02d", s.Cartridge)
	}
	if l.blankSlots && s.Node > 1 {
		number = ""
	}
	id := s.String()
	if l.upper {
		id = strings.ToUpper(id)
	}
	return []string{number, id}
}

func (l look) list(inv *moonshot.Inventory) string {
	names := []string{"Slot", "ID", "Proc Manufacturer", "Architecture", "Memory", "Power", l.health}
	widths := []int{4, 5, 22 + l.extra, 20, 6 + l.extra, 5, 8}
	if l.tags {
		names, widths = append(names, "Node Asset Tag"), append(widths, 14)
	}
	var rows [][]string
	for _, s := range inv.Empty {
		rows = append(rows, append(l.slot(s), "N/A", "No Asset Information"))
	}
	for _, n := range inv.Nodes {
		power := map[bmc.State]string{bmc.On: "On", bmc.Off: "Off", bmc.Unknown: "?"}[n.Power]
		r := append(l.slot(n.Slot), n.Maker, n.Arch, n.Memory, power, n.Health)
		if l.tags {
			r = append(r, n.AssetTag)
		}
		rows = append(rows, r)
	}
	return l.table("show node list", names, widths, rows)
}

func (l look) macs(inv *moonshot.Inventory) string {
	cards := 1
	for _, n := range inv.Nodes {
		for _, nic := range n.NICs {
			cards = max(cards, nic.Number)
		}
	}
	names, widths := []string{"Slot", "ID"}, []int{4, 5}
	for i := 1; i <= cards; i++ {
		names, widths = append(names, fmt.Sprintf("NIC %d (Switch %c)", i, "AB"[(i-1)%2])), append(widths, 17+l.extra)
	}
	var rows [][]string
	absent := slices.Repeat([]string{"N/A"}, cards)
	for _, s := range inv.Empty {
		rows = append(rows, append(l.slot(s), absent...))
	}
	for _, n := range inv.Nodes {
		r := append(l.slot(n.Slot), absent...)
		for _, nic := range n.NICs {
			text := strings.ReplaceAll(nic.MAC.String(), ":", l.sep)
			if l.upper {
				text = strings.ToUpper(text)
			}
			r[1+nic.Number] = text
		}
		rows = append(rows, r)
	}
	return l.table("show node macaddr all", names, widths, rows)
}

// FuzzParse: no text causes a panic, or a node with an invalid slot or MAC.
func FuzzParse(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 4 {
		l, inv := randomLook(rnd), randomChassis(rnd)
		inv.Nodes, inv.Empty = inv.Nodes[:2], inv.Empty[:1]
		f.Add(l.list(inv) + l.macs(inv))
	}
	f.Add("show blades b1\nNIC 1 MAC (Switch A): 9c:8c:6e:00:00:01\n")
	f.Add("ID Power\n-- -- -----\nc1n1\n- --\n")
	f.Add("Cartridge #1\n Node #9\n Power State: On\n")
	f.Fuzz(func(t *testing.T, text string) {
		inv, err := moonshot.Parse(text)
		if err != nil {
			return
		}
		seen := map[pools.Slot]bool{}
		for _, n := range inv.Nodes {
			if _, ok := pools.ParseSlot(n.String()); !ok || seen[n.Slot] {
				t.Errorf("node %s: %v, there before: %t", n.Slot, err, seen[n.Slot])
			}
			seen[n.Slot] = true
			macs := map[pools.MAC]bool{}
			for _, nic := range n.NICs {
				m := nic.MAC
				if m.IsZero() || m[0]&1 != 0 || macs[m] {
					t.Errorf("node %s has the MAC %s", n.Slot, m)
				}
				macs[m] = true
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 1))
	inv := randomChassis(rnd)
	l := look{health: "Health", sep: ":", eol: "\r\n"}
	text := l.list(inv) + l.macs(inv)
	for b.Loop() {
		if _, err := moonshot.Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}
