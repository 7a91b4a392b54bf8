package ilosim

import (
	"fmt"
	"strings"
)

// Format is the output format of a chassis manager. The zero Format is the
// firmware of 2021.
type Format struct {
	Old      bool // firmware of 2014: Health, no asset tags, slots as " 01"
	Two      bool // Chassis Manager 2.0
	CRCRLF   bool // lines end with CR CR LF
	Upper    bool // MACs in upper case
	Dashes   bool // MACs with dashes
	Blank    bool // no slot number on the second and later nodes of a cartridge
	Colours  bool
	Async    bool // a message between rows
	NoRuler  bool
	Extra    bool // a column more, and other names
	Wrap     int  // the terminal's width; 0: lines are not wrapped
	Pager    int  // lines to a page of the shell; 0: none
	Prompt   string
	BadBytes bool // a Latin-1 asset tag
}

// ParseFormat reads a list of names: old, two, crcrlf, upper, dashes, blank,
// colours, async, no-ruler, extra, wrap, pager, bad-bytes.
func ParseFormat(words []string) (l Format, err error) {
	for _, w := range words {
		switch w {
		case "old":
			l.Old = true
		case "two":
			l.Two = true
		case "crcrlf":
			l.CRCRLF = true
		case "upper":
			l.Upper = true
		case "dashes":
			l.Dashes = true
		case "blank":
			l.Blank = true
		case "colours":
			l.Colours = true
		case "async":
			l.Async = true
		case "no-ruler":
			l.NoRuler = true
		case "extra":
			l.Extra = true
		case "wrap":
			l.Wrap = 80
		case "pager":
			l.Pager = 24
		case "bad-bytes":
			l.BadBytes = true
		default:
			return l, fmt.Errorf("unknown format %q", w)
		}
	}
	return l, nil
}

// column is a column of a table.
type column struct {
	name  string
	width int
}

// table writes a table with LF.
func (l Format) table(columns []column, rows [][]string) string {
	var b strings.Builder
	b.WriteByte('\n')
	names, dashes := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		names[i], dashes[i] = c.name, strings.Repeat("-", c.width)
	}
	l.row(&b, columns, names)
	if !l.NoRuler {
		l.row(&b, columns, dashes)
	}
	for i, r := range rows {
		if l.Async && i == 1 {
			b.WriteString("*** Chassis event: fan 3 is replaced ***\n")
		}
		l.row(&b, columns, r)
	}
	b.WriteByte('\n')
	return b.String()
}

func (l Format) row(b *strings.Builder, columns []column, cells []string) {
	var line strings.Builder
	for i, cell := range cells {
		fmt.Fprintf(&line, "%-*s", columns[i].width, cell)
		if i < len(cells)-1 {
			line.WriteByte(' ')
		}
	}
	s := []rune(line.String())
	for l.Wrap > 0 && len(s) > l.Wrap {
		b.WriteString(string(s[:l.Wrap]) + "\n")
		s = s[l.Wrap:]
	}
	b.WriteString(string(s) + "\n")
}

// slot writes the two columns that each row begins with.
func (l Format) slot(n *Node) []string {
	number := fmt.Sprintf("%3d", n.Cartridge)
	if l.Old {
		number = fmt.Sprintf(" %02d", n.Cartridge)
	}
	if l.Blank && n.Number > 1 {
		number = ""
	}
	id := n.ID()
	if l.Colours {
		id = "\x1b[1m" + id + "\x1b[0m" + strings.Repeat(" ", 5-len(id))
	}
	return []string{number, id}
}

func (l Format) mac(s string) string {
	if l.Dashes {
		s = strings.ReplaceAll(s, ":", "-")
	}
	if l.Upper {
		s = strings.ToUpper(s)
	}
	return s
}

func (l Format) prompt() string {
	if l.Prompt != "" {
		return l.Prompt
	}
	return "hpiLO-> "
}

// lines gives a text the line ends of the manager.
func (l Format) lines(text string) string {
	if l.CRCRLF {
		return strings.ReplaceAll(text, "\n", "\r\r\n")
	}
	return strings.ReplaceAll(text, "\n", "\r\n")
}
