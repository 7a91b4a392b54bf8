// Package listing selects a part of a list for an answer of the REST API: the elements that
// a filter in the query describes, sorted, and in pages that a cursor continues.
//
// The package does not know the elements.
package listing

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"drover/internal/natural"
	"drover/web/answer"
	"drover/web/route"
)

// Column is a property of the elements of a list. Its name is the parameter of the filter.
type Column[T any] struct {
	Name string
	Of   func(*T) string
	// All returns the values of a property that can have several, in place of Of.
	All func(*T) []string
	// Words are the only values of the property; nil: any text.
	Words []string
	// SortOnly marks a property without a filter.
	SortOnly bool
}

// List is a list of the API. Its first column is the order of pages that name none, and
// together with the column they are sorted by it decides where a page ends.
type List[T any] struct {
	Columns []Column[T]
	Max     int  // elements of a page
	Newest  bool // the order is that of the first column, reversed
}

// Parameters returns the parameters of the list.
func (l *List[T]) Parameters() (all []route.Parameter) {
	var names []string
	for _, c := range l.Columns {
		names = append(names, c.Name, "-"+c.Name)
		switch {
		case c.SortOnly:
		case c.Words != nil:
			all = append(all, route.Parameter{Name: c.Name, About: "only elements with this " + c.Name, Kind: route.Word, Words: c.Words})
		default:
			all = append(all, route.Parameter{Name: c.Name, About: "only elements with this " + c.Name + ", or with one of several, separated by commas"})
		}
	}
	return append(
		all,
		route.Parameter{Name: "sort", About: "the order, reversed with a minus", Kind: route.Word, Words: names},
		route.Parameter{Name: "limit", About: "elements of a page", Kind: route.Count, Max: l.Max},
		route.Parameter{Name: "cursor", About: "where the page begins: from the header Link of the page before"},
	)
}

// Answer answers with the elements of all that the query asks for. If there are more, the
// header Link (RFC 8288) has the address of the next page. Without sort, limit and cursor
// the order is that of all.
func (l *List[T]) Answer(w http.ResponseWriter, r *http.Request, all []T) error {
	query := r.URL.Query()
	part := l.Filter(query, all)
	if !Paged(query) {
		answer.JSON(w, http.StatusOK, part)
		return nil
	}
	page, next, err := l.page(query, part)
	if err != nil {
		return err
	}
	if next != "" {
		query.Set("cursor", next)
		w.Header().Set("Link", "<"+r.URL.Path+"?"+query.Encode()+`>; rel="next"`)
	}
	answer.JSON(w, http.StatusOK, page)
	return nil
}

// Paged reports whether a query asks for a page or an order.
func Paged(query url.Values) bool {
	return query.Get("sort") != "" || query.Get("limit") != "" || query.Get("cursor") != ""
}

// Filter returns the elements that a query describes. It changes all, and returns no nil:
// an empty list is [] rather than null.
func (l *List[T]) Filter(query url.Values, all []T) []T {
	if all == nil {
		return []T{}
	}
	fits := l.Fits(query)
	return slices.DeleteFunc(all, func(v T) bool { return !fits(&v) })
}

// Fits returns a function that reports whether a query describes an element.
func (l *List[T]) Fits(query url.Values) func(*T) bool {
	type filter struct {
		*Column[T]
		want  string
		words []string
	}
	var filters []filter
	for i := range l.Columns {
		c := &l.Columns[i]
		if want := query.Get(c.Name); want != "" && !c.SortOnly {
			filters = append(filters, filter{c, want, strings.Split(want, ",")})
		}
	}
	return func(v *T) bool {
		for _, f := range filters {
			if !slices.ContainsFunc(f.values(v), func(s string) bool { return s == f.want || slices.Contains(f.words, s) }) {
				return false
			}
		}
		return true
	}
}

func (c *Column[T]) values(v *T) []string {
	if c.All != nil {
		return c.All(v)
	}
	return []string{c.Of(v)}
}

// key returns the value of an element by which it is sorted.
func (c *Column[T]) key(v *T) string { return strings.Join(c.values(v), ",") }

// cursor is the place where a page ends.
type cursor struct {
	Sort  string `json:"s"`
	Value string `json:"v"` // of the last element
	Key   string `json:"k"` // of the last element, by the first column
	Equal int    `json:"n"` // elements of that value and key that were in pages before
}

// item is an element with the values that decide where it is.
type item[T any] struct {
	element    T
	value, key string
}

// page returns the elements of the page that a query asks for, and the cursor of the next.
func (l *List[T]) page(query url.Values, all []T) (page []T, next string, err error) {
	sort := query.Get("sort")
	if sort == "" {
		if sort = l.Columns[0].Name; l.Newest {
			sort = "-" + sort
		}
	}
	after, err := readCursor(query.Get("cursor"), sort)
	if err != nil {
		return nil, "", err
	}
	limit, _ := strconv.Atoi(query.Get("limit")) // the table has checked it
	if limit == 0 {
		limit = l.Max
	}
	items, compare := l.sorted(sort, all)
	page = []T{}
	at := cursor{Sort: sort}
	if after != nil {
		at = *after
		first, _ := slices.BinarySearchFunc(items, item[T]{value: after.Value, key: after.Key}, compare)
		items = items[first:]
		for n := 0; n < after.Equal && len(items) > 0 && items[0].value == after.Value && items[0].key == after.Key; n++ {
			items = items[1:]
		}
	}
	for _, it := range items {
		if len(page) == limit {
			return page, at.String(), nil
		}
		if it.value != at.Value || it.key != at.Key {
			at.Value, at.Key, at.Equal = it.value, it.key, 0
		}
		at.Equal++
		page = append(page, it.element)
	}
	return page, "", nil
}

// sorted returns the elements in an order, and the comparison of that order.
func (l *List[T]) sorted(sort string, all []T) ([]item[T], func(a, b item[T]) int) {
	name, reversed := strings.CutPrefix(sort, "-")
	by := slices.IndexFunc(l.Columns, func(c Column[T]) bool { return c.Name == name }) // the table has checked it
	items := make([]item[T], len(all))
	for i := range all {
		items[i] = item[T]{all[i], l.Columns[by].key(&all[i]), l.Columns[0].key(&all[i])}
	}
	sign := 1
	if reversed {
		sign = -1
	}
	compare := func(a, b item[T]) int {
		return sign * cmp.Or(natural.Compare(a.value, b.value), natural.Compare(a.key, b.key))
	}
	slices.SortStableFunc(items, compare)
	return items, compare
}

// String returns the cursor as it is sent.
func (c cursor) String() string {
	b, _ := json.Marshal(c) // texts and a number
	return base64.RawURLEncoding.EncodeToString(b)
}

// readCursor returns the cursor of a query, which must be of the same order.
func readCursor(s, sort string) (*cursor, error) {
	if s == "" {
		return nil, nil
	}
	c := &cursor{}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(b, c)
	}
	if err != nil || c.Sort != sort {
		return nil, answer.BadParameter("cursor", "take it from the header Link of the page before, with its sort", "cursor %q is none of this list and order", s)
	}
	return c, nil
}

// Time returns a time as a text whose order is that of times.
func Time(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000000Z") }
