package moonshot

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"drover/hardware/bmc"
	"drover/internal/printable"
	"drover/pools"
)

// Parse reads the output of "show node list" and "show node macaddr all", in any order.
// It also reads "show node info", "show node power" and "show blades". Other text between
// them, such as banners and prompts, is skipped.
//
// A text without any MACs is an error that wraps [bmc.ErrUnreadable], or
// [bmc.ErrRefused] when the chassis denies the user the command.
func Parse(text string) (*Inventory, error) {
	if len(text) > bmc.MaxAnswer {
		return nil, fmt.Errorf("%w: %d bytes, more than %d: that is no output of a chassis", bmc.ErrUnreadable, len(text), bmc.MaxAnswer)
	}
	p, rest, err := parseTables(text)
	if err != nil {
		return nil, err
	}
	p.blocks(rest)
	if !p.macs {
		return nil, p.nothing(rest)
	}
	return p.inventory(), nil
}

// parseTables reads all tables of a text. rest are the lines that belong to none.
func parseTables(text string) (p *parser, rest []line, err error) {
	p = &parser{nodes: map[pools.Slot]*found{}}
	all, rest := tables(clean(text))
	for _, t := range all {
		if err := p.table(t); err != nil {
			return nil, nil, err
		}
	}
	return p, rest, nil
}

// parser collects the content of several outputs by slot.
type parser struct {
	nodes    map[pools.Slot]*found
	list     bool // the text has a table of nodes
	macs     bool // the text has a table of MACs, or blades
	problems []Note
	warnings []Note
}

// maxNotes bounds the problems of a text, and its warnings.
const maxNotes = 1000

// found is the content of the text about one slot.
type found struct {
	node   Node
	listed int // line in the list; 0: none
	macs   int // line of its MACs; 0: none
	empty  bool
	bad    bool // a row of it was rejected
}

func (p *parser) at(s pools.Slot) *found {
	f := p.nodes[s]
	if f == nil {
		f = &found{node: Node{Slot: s, Power: bmc.Unknown}}
		p.nodes[s] = f
	}
	return f
}

func (p *parser) problem(no int, s pools.Slot, format string, args ...any) {
	p.problems = withNote(p.problems, Note{no, s, fmt.Sprintf(format, args...)})
	if s.Valid() {
		p.at(s).bad = true
	}
}

func (p *parser) warn(no int, s pools.Slot, format string, args ...any) {
	p.warnings = withNote(p.warnings, Note{no, s, fmt.Sprintf(format, args...)})
}

// withNote appends a note, and says once that there are more than maxNotes.
func withNote(notes []Note, n Note) []Note {
	switch len(notes) {
	case maxNotes:
		return notes
	case maxNotes - 1:
		n = Note{Line: n.Line, Text: "there are more such lines, which are left out"}
	}
	return append(notes, n)
}

// table reads a table according to its header.
func (p *parser) table(t table) error {
	switch kind := t.kind(); kind {
	case "list", "macs":
		if t.long {
			return fmt.Errorf("%w: line %d: a table of more than %d rows: no chassis has as many nodes", bmc.ErrUnreadable, t.line, maxRows)
		}
		cards := t.nics()
		if len(t.rows) == 0 && len(t.other) > 0 {
			return fmt.Errorf("%w: line %d: %q names no slot such as c12n1, nor does any other row of its table", bmc.ErrUnreadable, t.other[0].no, printable.Line(t.other[0].String(), maxShown))
		}
		for _, r := range p.rows(t) {
			if kind == "list" {
				p.listRow(t, r)
			} else {
				p.macRow(t, r, cards)
			}
		}
		p.list, p.macs = p.list || kind == "list", p.macs || kind == "macs"
		return nil
	case "other":
		return nil
	}
	var names []string
	for _, c := range t.columns {
		names = append(names, c.name)
	}
	if len(t.rows) == 0 {
		return nil // not a table of nodes
	}
	return fmt.Errorf("%w: line %d: a table with the columns %q: neither a list of nodes nor their MACs", bmc.ErrUnreadable, t.line, names)
}

// kind returns "list" for a table of nodes, "macs" for a table of their MACs, "other" for
// a known table that is not needed, and "" for an unknown one.
func (t table) kind() string {
	has := func(words ...string) bool {
		return slices.ContainsFunc(t.columns, func(c column) bool {
			return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(lower(c.name), w) })
		})
	}
	switch {
	case slices.ContainsFunc(t.columns, func(c column) bool { return c.nic() > 0 }):
		return "macs"
	case has("management address"):
		return "other" // of the iLO of each node, not of the node
	case has("power", "manufacturer", "architecture", "health"):
		return "list"
	case len(t.nics()) > 0:
		return "macs"
	}
	return ""
}

// rows returns the rows of a table with a valid slot, each once. Other rows, and lines
// between rows, become notes.
func (p *parser) rows(t table) []row {
	for _, l := range t.other {
		if l.blank() {
			continue
		}
		words := strings.Fields(l.String())
		if slot, ok := pools.ParseSlot(words[0]); ok {
			p.problem(l.no, slot, "the row does not begin where the ruler on line %d has its columns: paste it with its blanks", t.line)
			continue
		}
		p.warn(l.no, pools.Slot{}, "left out, it is no row of the table: %q", printable.Line(l.String(), maxShown))
	}
	seen := map[pools.Slot]row{}
	return slices.DeleteFunc(t.rows, func(r row) bool {
		first, twice := seen[r.slot]
		seen[r.slot] = r
		number := ""
		if t.id == 1 {
			number = r.cell(t.columns[0])
		}
		switch {
		case !r.slot.Valid():
			p.problem(r.line, r.slot, "no chassis has this slot: it is c1 to c%d, n1 to n%d", pools.Cartridges, pools.NodesEach)
			return true
		case twice && slices.Equal(strings.Fields(string(first.text)), strings.Fields(string(r.text))):
			return true
		case twice:
			p.problem(r.line, r.slot, "there is another row of it on line %d", first.line)
			return true
		}
		if n, err := strconv.Atoi(number); err == nil && n != r.slot.Cartridge {
			p.warn(r.line, r.slot, "the slot column says %d", n)
		}
		return false
	})
}

// inventory assembles the result.
func (p *parser) inventory() *Inventory {
	inv := &Inventory{Nodes: []Node{}}
	for slot, f := range p.nodes {
		switch {
		case f.bad:
			continue
		case f.empty && len(f.node.NICs) == 0:
			inv.Empty = append(inv.Empty, slot)
			continue
		case f.empty:
			p.warn(f.macs, slot, "it has MACs, but the list of nodes calls it empty")
		case p.list && f.listed == 0 && f.macs > 0 && len(f.node.NICs) == 0:
			continue // a slot that was never in the list, and has no MAC
		case p.list && f.listed == 0 && f.macs > 0:
			p.warn(f.macs, slot, "it has MACs, but is not in the list of nodes")
		case f.macs == 0:
			p.warn(f.listed, slot, "it has no row in the table of MACs")
		}
		inv.Nodes = append(inv.Nodes, f.node)
	}
	slices.SortFunc(inv.Nodes, func(a, b Node) int { return a.Compare(b.Slot) })
	slices.SortFunc(inv.Empty, pools.Slot.Compare)
	byLine := func(a, b Note) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Slot.Compare(b.Slot)
	}
	slices.SortStableFunc(p.problems, byLine)
	slices.SortStableFunc(p.warnings, byLine)
	inv.Problems, inv.Warnings = p.problems, p.warnings
	return inv
}

// nothing returns the error of a text without MACs.
func (p *parser) nothing(rest []line) error {
	if err := refusal(rest); err != nil {
		return err
	}
	if p.list {
		return fmt.Errorf("%w: there is a list of nodes, but no table of their MACs (is the output of show node macaddr all missing?)", bmc.ErrUnreadable)
	}
	for _, l := range rest {
		if strings.Contains(lower(l.String()), "slot id") {
			return fmt.Errorf("%w: line %d: a header without a line of dashes under it, which says where columns begin (paste the whole output)", bmc.ErrUnreadable, l.no)
		}
	}
	return fmt.Errorf("%w: no table of MACs (want the output of show node list and show node macaddr all)", bmc.ErrUnreadable)
}

// refusal finds the message of a command line that rejects a command.
func refusal(lines []line) error {
	for _, l := range lines {
		switch s := lower(l.String()); {
		case strings.HasPrefix(s, "invalid "):
			return fmt.Errorf("%w: line %d: the chassis says %q", bmc.ErrUnreadable, l.no, printable.Line(l.String(), maxShown))
		case strings.Contains(s, "not authorized"), strings.Contains(s, "access denied"), strings.Contains(s, "privilege"),
			strings.Contains(s, "account") && strings.Contains(s, "locked"):
			return fmt.Errorf("%w: line %d: the chassis says %q", bmc.ErrRefused, l.no, printable.Line(l.String(), maxShown))
		}
	}
	return nil
}
