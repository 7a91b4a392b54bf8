// Package table selects and sorts the elements of a list as the query of a URL says, and
// returns one page of a table of them.
//
// The package does not know the elements, nor how a table looks.
package table

import (
	"net/url"
	"slices"
)

// List is a kind of list: its columns, and how it is searched. Filters, order and place are
// in the query of its URL.
type List[T any] struct {
	Columns []Column[T]
	Search  func(*T) string // the text that a search looks in, in lower case; nil: there is none
	Row     func(*T) Row
	Sort    string        // the usual order; empty: as the elements come
	Last    func(*T) bool // is behind the others in every order; nil: no element is
}

// Column is a property of the elements of a list.
type Column[T any] struct {
	Name string          // in the query
	Head string          // of the table; empty: it is only a filter
	Of   Values[T]       // its values
	Key  func(*T) string // for the order, if that is not that of the values
	Pick bool            // there is a filter with a choice of the values
}

// Values are the values of a property. The function calls fits with each until one fits, and
// reports whether one did.
type Values[T any] func(v *T, fits func(string) bool) bool

// One returns the values of a property that has only one.
func One[T any](of func(*T) string) Values[T] {
	return func(v *T, fits func(string) bool) bool { return fits(of(v)) }
}

// Many returns the values of a property that has several.
func Many[T any](of func(*T) []string) Values[T] {
	return func(v *T, fits func(string) bool) bool { return slices.ContainsFunc(of(v), fits) }
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
		Links     []Link // after the text
		Buttons   []Link
	}
)

// View returns the part of a list that a query asks for.
func (l *List[T]) View(t Table, query url.Values, all []T) Table {
	return l.Index(all).View(t, query, l.Row, nil)
}

// Picks returns what can be chosen of the elements that the query describes.
func (l *List[T]) Picks(query url.Values, all []T) (picks []string) {
	x := l.Index(all)
	for _, i := range x.matching(query, x.order("", nil), nil) {
		if pick := l.Row(&all[i]).Pick; pick != "" {
			picks = append(picks, pick)
		}
	}
	return picks
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
