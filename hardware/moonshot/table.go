package moonshot

import (
	"slices"
	"strconv"
	"strings"

	"drover/hardware/bmc"
	"drover/pools"
)

// table is a table of the command line: a header, a line of dashes (the ruler) that
// defines the columns, and rows.
//
//	Slot ID    Proc Manufacturer      Architecture         Memory Power Health
//	---- ----- ---------------------- -------------------- ------ ----- ------
//	 01  c1n1  Intel Corporation      x86 Architecture     32 GB  On    OK
type table struct {
	line    int // of the ruler
	columns []column
	id      int // the column that holds the slot
	wrap    int // the width of the terminal that wrapped its lines; or notWrapped, atWords
	rows    []row
	other   []line // lines between the rows
	long    bool   // there are more than maxRows rows
}

// Bounds of a table. The time and the memory to read one grow with their product.
const (
	maxWidth   = 1024 // characters in a line of the ruler; the terminal has 511
	maxColumns = 64   // in a line of the ruler
	maxParts   = 8    // lines of a wrapped ruler, or of a wrapped row
	maxRows    = 1440 // a chassis has 360 slots
)

type column struct {
	name     string
	from, to int // to is where the next column begins; a large number for the last
	width    int // of the dashes
}

type row struct {
	line int
	text []rune
	slot pools.Slot // as the ID column has it; it may be out of bounds
}

// The values of table.wrap, in addition to the width of a terminal.
const (
	notWrapped = 0
	atWords    = -1 // as mail programs wrap: at a blank, which is lost
)

// endless is the end of the last column.
const endless = 1 << 30

// wrapWidth returns the width of the terminal that wrapped a ruler after n
// characters. A blank at the end of a line is often lost, so one less than a usual
// width counts as that width.
func wrapWidth(n int) int {
	if slices.Contains([]int{39, 59, 79, 99, 119, 131, 159}, n) {
		return n + 1
	}
	return n
}

// tables returns all tables of a text. rest are the lines that belong to none.
func tables(lines []line) (all []table, rest []line) {
	taken := 0
	for i := 0; i < len(lines); i++ {
		if !isRuler(lines[i]) {
			continue
		}
		rulers := 1 // number of lines of the ruler
		for rulers < maxParts && i+rulers < len(lines) && isDashes(lines[i+rulers]) {
			rulers++
		}
		top, t := newTable(lines, i, rulers, taken)
		end := t.read(lines[i+rulers:])
		if rulers > 1 {
			w := t
			w.wrap = atWords
			w.head(lines, i, rulers, top)
			if n := w.read(lines[i+rulers:]); w.validCells() > t.validCells() {
				t, end = w, n
			}
		}
		rest = append(rest, lines[taken:top]...)
		i += rulers + end
		taken, i = i, i-1
		rest = append(rest, t.tail()...)
		all = append(all, t)
	}
	return all, append(rest, lines[taken:]...)
}

// isRuler reports whether a line is dashes in at least two groups.
func isRuler(l line) bool {
	n := len(strings.Fields(l.String()))
	return isDashes(l) && n >= 2 && n <= maxColumns
}

// isDashes reports whether a line is made of dashes alone.
func isDashes(l line) bool {
	return len(l.text) > 0 && len(l.text) <= maxWidth && strings.Trim(l.String(), "- ") == "" && strings.Contains(l.String(), "-")
}

// newTable reads the ruler at lines[at] and the header above it. top is the
// first line of the table; none before floor belongs to it.
func newTable(lines []line, at, rulers, floor int) (top int, t table) {
	top = at
	for n, i := 0, at-1; n < rulers && i >= floor && at-i < 8; i-- {
		l := lines[i]
		if l.prompt {
			break
		}
		if l.blank() {
			continue
		}
		top, n = i, n+1
		if strings.Contains(" "+lower(l.String())+" ", " id ") {
			break
		}
	}
	t.line = lines[at].no
	if rulers > 1 {
		t.wrap = wrapWidth(len(lines[at].text))
	}
	t.head(lines, at, rulers, top)
	return top, t
}

// head reads the columns from the ruler, and their names from the header.
func (t *table) head(lines []line, at, rulers, top int) {
	ruler := joined(lines[at:at+rulers], t.wrap)
	header := joined(slices.DeleteFunc(slices.Clone(lines[top:at]), line.blank), t.wrap)
	t.columns = nil
	for from := 0; from < len(ruler); {
		if ruler[from] == ' ' {
			from++
			continue
		}
		end := from
		for end < len(ruler) && ruler[end] == '-' {
			end++
		}
		if n := len(t.columns); n > 0 {
			t.columns[n-1].to = from
		}
		t.columns = append(t.columns, column{from: from, to: endless, width: end - from})
		from = end
	}
	for i, c := range t.columns {
		t.columns[i].name = cut(header, c.from, c.to)
	}
}

// validCells counts the cells with a MAC or a power state in a column of such. The better
// of two ways to join wrapped lines has more of them.
func (t *table) validCells() (n int) {
	for _, c := range t.columns {
		name := lower(c.name)
		card, power := c.nic() > 0 || strings.Contains(name, "mac"), strings.Contains(name, "power")
		for _, r := range t.rows {
			_, err := pools.ParseMAC(r.cell(c))
			_, state := bmc.ParseState(r.cell(c))
			if card && err == nil || power && state {
				n++
			}
		}
	}
	return n
}

// joined returns the line that was wrapped into parts.
func joined(parts []line, wrap int) []rune {
	var out []rune
	for i, p := range parts {
		out = append(out, p.text...)
		if wrap == atWords && i < len(parts)-1 {
			out = append(out, ' ')
		}
		for i < len(parts)-1 && len(out) < (i+1)*wrap {
			out = append(out, ' ')
		}
	}
	return out
}

// read takes the rows of the table that lines begin with, and returns how many
// lines belong to it. The table ends at a prompt, and before the header of the
// next one.
func (t *table) read(lines []line) int {
	t.rows, t.other, t.long = nil, nil, false
	end := slices.IndexFunc(lines, func(l line) bool { return l.prompt || isRuler(l) })
	if end < 0 {
		end = len(lines)
	} else if isRuler(lines[end]) {
		for end > 0 && !lines[end-1].blank() && !t.isRow(lines[end-1].text) {
			end-- // the header of the next table
		}
	}
	t.id = t.idColumn(lines[:end])
	for i := 0; i < end; i++ {
		l := lines[i]
		slot, text, ok := t.rowStart(l.text)
		if !ok {
			t.other = append(t.other, l)
			continue
		}
		if t.long = len(t.rows) == maxRows; t.long {
			break
		}
		r := row{line: l.no, slot: slot, text: text}
		if t.wrap != notWrapped {
			parts := []line{{text: text}}
			for i+1 < end && len(parts) < maxParts && t.continues(lines[i+1], lines[i]) {
				i++
				parts = append(parts, lines[i])
			}
			r.text = joined(parts, t.wrap)
		}
		t.rows = append(t.rows, r)
	}
	return end
}

// idColumn returns the index of the column with the slots: 0 or 1, whichever has more of
// them. A slot behind its number counts for column 1, in any position.
func (t *table) idColumn(lines []line) int {
	if len(t.columns) < 2 {
		return 0
	}
	var n [2]int
	for _, l := range lines {
		_, numbered := numberedSlot(l.text)
		for i := range n {
			if _, ok := pools.ParseSlot(cut(l.text, t.columns[i].from, t.columns[i].to)); ok || numbered && i == 1 {
				n[i]++
			}
		}
	}
	if n[0] > n[1] {
		return 0
	}
	return 1
}

// numberedSlot reads the beginning of a row such as "12 c12n1".
func numberedSlot(text []rune) (pools.Slot, bool) {
	words := strings.Fields(string(text[:min(len(text), 40)]))
	if len(words) < 2 {
		return pools.Slot{}, false
	}
	slot, ok := pools.ParseSlot(words[1])
	_, err := strconv.Atoi(words[0])
	return slot, ok && err == nil
}

// isRow reports whether a line is a row of a table of nodes: one of its first two words
// is a slot.
func (t *table) isRow(text []rune) bool {
	words := strings.Fields(string(text))
	return slices.ContainsFunc(words[:min(2, len(words))], func(w string) bool { _, ok := pools.ParseSlot(w); return ok })
}

// tail removes the lines behind the last row, which belong to the text after the
// table, and returns them.
func (t *table) tail() []line {
	last := 0
	for _, r := range t.rows {
		last = r.line
	}
	n := slices.IndexFunc(t.other, func(l line) bool { return l.no > last && (len(t.rows) > 0 || l.blank()) })
	if len(t.rows) == 0 && n < 0 {
		return nil // lines right under the ruler belong to the table
	}
	if n < 0 {
		return nil
	}
	tail := slices.Clone(t.other[n:])
	t.other = t.other[:n]
	return tail
}

// continues reports whether l continues the row of the line before it. That line must
// reach the last column that begins within the width of the terminal. It need not fill
// the terminal, because blanks at its end may be lost.
func (t *table) continues(l, before line) bool {
	reach := 0
	for _, c := range t.columns {
		if c.from < t.wrap {
			reach = c.from
		}
	}
	_, _, starts := t.rowStart(l.text)
	return !starts && !l.blank() && !isDashes(l) && len(before.text) > reach
}

// rowStart reports whether a line starts a row: its ID column has a slot such as c12n1.
// Pasting may lose the blanks at the start of a line. A row that still has its slot
// number is then shifted back into its columns.
func (t *table) rowStart(text []rune) (slot pools.Slot, moved []rune, ok bool) {
	id := t.columns[t.id]
	if slot, ok := pools.ParseSlot(cut(text, id.from, id.to)); ok {
		return slot, text, true
	}
	if slot, ok = numberedSlot(text); !ok || t.id != 1 {
		return pools.Slot{}, nil, false
	}
	at := slices.IndexFunc(text, func(r rune) bool { return r == 'c' || r == 'C' })
	return slot, shifted(text, id.from-at), true
}

// shifted returns text moved to the right by blanks, or to the left as far as it begins
// with blanks.
func shifted(text []rune, by int) []rune {
	if by >= 0 {
		return append([]rune(strings.Repeat(" ", by)), text...)
	}
	for by < 0 && len(text) > 0 && text[0] == ' ' {
		text, by = text[1:], by+1
	}
	return text
}

// cell returns the text of a row in a column.
func (r row) cell(c column) string { return cut(r.text, c.from, c.to) }

// overflows reports whether a cell is too long for its column, so that the cells behind
// it are shifted.
func (r row) overflows(t table) bool {
	return slices.ContainsFunc(t.columns, func(c column) bool {
		return c.from > 0 && c.from <= len(r.text) && r.text[c.from-1] != ' '
	})
}

// behindID returns the row behind the column that holds the slot.
func (r row) behindID(t table) string { return cut(r.text, t.columns[t.id].to, endless) }

// cut returns a part of a line, trimmed.
func cut(text []rune, from, to int) string {
	from, to = min(from, len(text)), min(to, len(text))
	return strings.TrimSpace(string(text[from:to]))
}
