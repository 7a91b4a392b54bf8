// Package table selects and sorts the elements of a list as the query of a URL says, and
// returns one page of a table of them.
//
// The package does not know the elements, nor how a table looks.
package table

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"drover/pools/natural"
)

// List is a kind of list: its columns, and how it is searched. Filters, order and place are
// in the query of its URL.
type List[T any] struct {
	Columns []Column[T]
	Search  func(*T) string // the text that a search looks in, in lower case; nil: there is none
	Row     func(*T) Row
	Sort    string // the usual order; empty: as the elements come
}

// Column is a property of the elements of a list.
type Column[T any] struct {
	Name string            // in the query
	Head string            // of the table; empty: it is only a filter
	Of   func(*T) []string // its values
	Key  func(*T) string   // for the order, if that is not that of the values
	Pick bool              // there is a filter with a choice of the values
}

// One returns the values of a property that has only one.
func One[T any](of func(*T) string) func(*T) []string {
	return func(v *T) []string { return []string{of(v)} }
}

// pageSize is the number of rows of a page.
const pageSize = 100

// maxOptions bounds the choice of a filter.
const maxOptions = 500

// Table is a list as a page shows it.
type Table struct {
	Name     string // the heading
	Intro    string
	Path     string
	Search   bool
	Q        string
	Filters  []Filter
	Keep     []Pair // the rest of the query, for forms
	Filtered bool   // not all elements are shown
	Heads    []Head
	Rows     []Row
	Matched  int // elements that the filters leave
	Total    int
	From, To int
	Previous string
	Next     string
	Actions  []Pair // of the chosen rows: value of "do", and label
	Add      *Link  // leads to a form
	Empty    string // in place of the rows
}

type (
	// Pair is a name with a value.
	Pair struct{ Name, Value string }
	// Link is a text that leads to a URL.
	Link struct{ Text, URL string }
	// Filter is a filter with a choice.
	Filter struct {
		Name, Value string
		Options     []string
	}
	// Head is the head of a column. Its URL sorts by it.
	Head struct{ Text, URL, Sorted string }
	// Row is a row of a table. Key names it, also among the refreshes. Pick is the value of
	// its checkbox; empty: it has none.
	Row struct {
		Key, Class, Pick string
		Cells            []Cell
	}
	// Cell is a cell of a table: one line, and smaller ones below it.
	Cell struct {
		Text, URL string
		State     string // as a word with its colour
		Steps     [2]int // reached, and all; a bar
		Sub       []string
		Code      bool
		Buttons   []Link
	}
)

// The longest texts of cells that stay in one line, in bytes: of words, and of a name.
const (
	wholeWords = 24
	wholeName  = 48
)

// Whole reports whether the text of a cell stays in one line: a name with a hyphen is easily
// read as two.
func (c Cell) Whole() bool {
	return c.Text != "" && (len(c.Text) <= wholeWords || len(c.Text) <= wholeName && !strings.Contains(c.Text, " "))
}

// View returns the part of a list that a query asks for.
func (l *List[T]) View(t Table, query url.Values, all []T) Table {
	t.Total, t.Search, t.Q = len(all), l.Search != nil, query.Get("q")
	l.filters(&t, query, all)
	part := l.Filter(query, all)
	t.Matched, t.Filtered = len(part), len(part) < len(all)
	l.heads(&t, query)
	part = l.sorted(query.Get("sort"), part)
	last := max(1, (len(part)+pageSize-1)/pageSize)
	number, _ := strconv.Atoi(query.Get("page"))
	number = min(max(number, 1), last)
	from := (number - 1) * pageSize
	to := min(from+pageSize, len(part))
	for i := from; i < to; i++ {
		t.Rows = append(t.Rows, l.Row(&part[i]))
	}
	t.From, t.To = min(from+1, to), to
	if number > 1 {
		t.Previous = With(t.Path, query, "page", strconv.Itoa(number-1))
	}
	if number < last {
		t.Next = With(t.Path, query, "page", strconv.Itoa(number+1))
	}
	return t
}

// filters sets the filters with a choice, and the other parameters.
func (l *List[T]) filters(t *Table, query url.Values, all []T) {
	for _, c := range l.Columns {
		value := query.Get(c.Name)
		if !c.Pick {
			if value != "" && c.Of != nil {
				t.Keep = append(t.Keep, Pair{c.Name, value})
			}
			continue
		}
		seen := map[string]bool{}
		for i := range all {
			for _, v := range c.Of(&all[i]) {
				seen[v] = true
			}
		}
		if value != "" {
			seen[value] = true // also one that no element has any more
		}
		delete(seen, "")
		if len(seen) < 2 && value == "" {
			continue
		}
		f := Filter{Name: c.Name, Value: value}
		for v := range seen {
			f.Options = append(f.Options, v)
		}
		slices.SortFunc(f.Options, natural.Compare)
		f.Options = f.Options[:min(len(f.Options), maxOptions)]
		t.Filters = append(t.Filters, f)
	}
	if sort := query.Get("sort"); sort != "" {
		t.Keep = append(t.Keep, Pair{"sort", sort})
	}
}

// Picks returns what can be chosen of the elements that the query describes.
func (l *List[T]) Picks(query url.Values, all []T) (picks []string) {
	part := l.Filter(query, all)
	for i := range part {
		if pick := l.Row(&part[i]).Pick; pick != "" {
			picks = append(picks, pick)
		}
	}
	return picks
}

// Filter returns the elements that the query describes.
func (l *List[T]) Filter(query url.Values, all []T) []T {
	var tests []func(*T) bool
	for _, c := range l.Columns {
		value := query.Get(c.Name)
		if c.Of == nil || value == "" {
			continue
		}
		words := strings.Split(value, ",")
		tests = append(tests, func(v *T) bool {
			return slices.ContainsFunc(c.Of(v), func(s string) bool { return s == value || slices.Contains(words, s) })
		})
	}
	for word := range strings.FieldsSeq(strings.ToLower(query.Get("q"))) {
		if l.Search != nil {
			tests = append(tests, func(v *T) bool { return strings.Contains(l.Search(v), word) })
		}
	}
	if len(tests) == 0 {
		return all
	}
	var part []T
	for i := range all {
		if !slices.ContainsFunc(tests, func(fits func(*T) bool) bool { return !fits(&all[i]) }) {
			part = append(part, all[i])
		}
	}
	return part
}

// heads sets the heads of the columns.
func (l *List[T]) heads(t *Table, query url.Values) {
	sort := cmp.Or(query.Get("sort"), l.Sort)
	for _, c := range l.Columns {
		if c.Head == "" {
			continue
		}
		h := Head{Text: c.Head}
		if c.Of != nil || c.Key != nil {
			next := c.Name
			switch sort {
			case c.Name:
				h.Sorted, next = "ascending", "-"+c.Name
			case "-" + c.Name:
				h.Sorted = "descending"
			}
			h.URL = With(t.Path, query, "sort", next, "page", "")
		}
		t.Heads = append(t.Heads, h)
	}
}

// sorted returns elements in the order of a column, reversed with a minus. Equal ones stay
// as they come.
func (l *List[T]) sorted(sort string, all []T) []T {
	name, reversed := strings.CutPrefix(cmp.Or(sort, l.Sort), "-")
	i := slices.IndexFunc(l.Columns, func(c Column[T]) bool { return name != "" && c.Name == name && c.Head != "" })
	if i < 0 {
		return all
	}
	c := l.Columns[i]
	type item struct {
		at  int
		key string
	}
	items := make([]item, len(all))
	for i := range all {
		items[i].at = i
		if c.Key != nil {
			items[i].key = c.Key(&all[i])
		} else {
			items[i].key = strings.Join(c.Of(&all[i]), ",")
		}
	}
	slices.SortStableFunc(items, func(a, b item) int {
		if reversed {
			a, b = b, a
		}
		return natural.Compare(a.key, b.key)
	})
	out := make([]T, len(all))
	for i, it := range items {
		out[i] = all[it.at]
	}
	return out
}

// With returns the URL of a path and a query with other values. An empty value removes a
// parameter. A change of anything but the page leads to the first page.
func With(path string, query url.Values, set ...string) string {
	out := url.Values{}
	for name, values := range query {
		if len(values) > 0 && values[0] != "" {
			out[name] = values[:1]
		}
	}
	for i := 0; i+1 < len(set); i += 2 {
		if out.Del(set[i]); set[i+1] != "" {
			out.Set(set[i], set[i+1])
		}
	}
	if len(out) == 0 {
		return path
	}
	return path + "?" + out.Encode()
}

// NodePath returns the URL of the view of a machine.
func NodePath(name string) string { return "/nodes/" + url.PathEscape(name) }

// To returns the URL of a list with one filter or more.
func To(path string, set ...string) string { return With(path, nil, set...) }
