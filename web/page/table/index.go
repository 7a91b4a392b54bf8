package table

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"drover/internal/natural"
	"drover/internal/wait"
)

// Index is a list with what does not depend on a query, which is made once and when a query needs
// it: the choices of the filters, the orders, and the texts that a search looks in. Many may use
// it at once.
type Index[T any] struct {
	list *List[T]
	all  []T

	mu      sync.Mutex
	options map[string][]string // of the filters with a choice, by column
	orders  map[string][]int32  // indexes in all, by what they are sorted by
	texts   []string
}

// perStep is the number of elements that are looked at between two steps of a [wait.Pace].
const perStep = 100

// maxWords bounds the words of a search. With more it finds nothing, rather than what only some of
// them describe: what is found can be changed at once.
const maxWords = 64

// Index returns the index of a list of elements, which must not change any more.
func (l *List[T]) Index(all []T) *Index[T] {
	return &Index[T]{list: l, all: all, options: map[string][]string{}, orders: map[string][]int32{}}
}

// View returns the part of the list that a query asks for, with rows by a function. It gives way at a
// pace; nil: it does not.
func (x *Index[T]) View(t Table, query url.Values, row func(*T) Row, pace *wait.Pace) Table {
	t.Total, t.Search, t.Q = len(x.all), x.list.Search != nil, query.Get("q")
	x.filters(&t, query, pace)
	part := x.matching(query, x.order(cmp.Or(query.Get("sort"), x.list.Sort), pace), pace)
	t.Matched, t.Filtered = len(part), len(part) < len(x.all)
	x.list.heads(&t, query)
	last := max(1, (len(part)+pageSize-1)/pageSize)
	number, _ := strconv.Atoi(query.Get("page"))
	number = min(max(number, 1), last)
	from := (number - 1) * pageSize
	to := min(from+pageSize, len(part))
	for _, i := range part[from:to] {
		t.Rows = append(t.Rows, row(&x.all[i]))
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
func (x *Index[T]) filters(t *Table, query url.Values, pace *wait.Pace) {
	for i := range x.list.Columns {
		c := &x.list.Columns[i]
		value := query.Get(c.Name)
		if !c.Pick {
			if value != "" && c.Of != nil {
				t.Keep = append(t.Keep, Pair{c.Name, value})
			}
			continue
		}
		options := x.choice(c, pace)
		if value != "" && !slices.Contains(options, value) { // also one that no element has any more
			options = append(slices.Clip(options), value)
			slices.SortFunc(options, natural.Compare)
		}
		if len(options) < 2 && value == "" {
			continue
		}
		t.Filters = append(t.Filters, Filter{Name: c.Name, Value: value, Options: options[:min(len(options), maxOptions)]})
	}
	if sort := query.Get("sort"); sort != "" {
		t.Keep = append(t.Keep, Pair{"sort", sort})
	}
}

// choice returns the values of a column, in their order.
func (x *Index[T]) choice(c *Column[T], pace *wait.Pace) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	options, ok := x.options[c.Name]
	if ok {
		return options
	}
	seen, last := map[string]bool{"": true}, ""
	note := func(v string) bool {
		if v != last && !seen[v] {
			seen[v] = true
			options = append(options, v)
		}
		last = v
		return false
	}
	for i := range x.all {
		if i%perStep == 0 {
			pace.Step()
		}
		c.Of(&x.all[i], note)
	}
	slices.SortFunc(options, natural.Compare)
	x.options[c.Name] = options
	return options
}

// Count returns how many elements have each value of a column: what a filter by it shows.
func (x *Index[T]) Count(column string) map[string]int {
	n := map[string]int{}
	i := slices.IndexFunc(x.list.Columns, func(c Column[T]) bool { return c.Name == column })
	if i < 0 {
		return n
	}
	var seen []string // values of an element
	for at := range x.all {
		seen = seen[:0]
		x.list.Columns[i].Of(&x.all[at], func(v string) bool {
			if !slices.Contains(seen, v) {
				seen = append(seen, v)
				n[v]++
			}
			return false
		})
	}
	return n
}

// matching returns the elements of an order that the query describes.
func (x *Index[T]) matching(query url.Values, order []int32, pace *wait.Pace) []int32 {
	var tests []func(i int32) bool
	for _, c := range x.list.Columns {
		value := query.Get(c.Name)
		if c.Of == nil || value == "" {
			continue
		}
		words := strings.Split(value, ",")
		fits := func(s string) bool { return s == value || slices.Contains(words, s) }
		tests = append(tests, func(i int32) bool { return c.Of(&x.all[i], fits) })
	}
	if x.list.Search != nil && query.Get("q") != "" {
		words := strings.Fields(strings.ToLower(query.Get("q")))
		if len(words) > maxWords {
			return nil
		}
		texts := x.searched(pace)
		for _, word := range words {
			tests = append(tests, func(i int32) bool { return strings.Contains(texts[i], word) })
		}
	}
	if len(tests) == 0 {
		return order
	}
	var part []int32
	for n, i := range order {
		if n%perStep == 0 {
			pace.Step()
		}
		if !slices.ContainsFunc(tests, func(fits func(int32) bool) bool { return !fits(i) }) {
			part = append(part, i)
		}
	}
	return part
}

// searched returns the texts that a search looks in.
func (x *Index[T]) searched(pace *wait.Pace) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.texts == nil {
		x.texts = make([]string, len(x.all))
		for i := range x.all {
			if i%perStep == 0 {
				pace.Step()
			}
			x.texts[i] = x.list.Search(&x.all[i])
		}
	}
	return x.texts
}

// item is an element that is sorted.
type item struct {
	at   int32
	last bool
	text string
	key  string // of [natural.AppendKey]
}

// order returns all elements in the order of a column, reversed with a minus: as they come if
// there is no such column, as do those that are equal.
func (x *Index[T]) order(sort string, pace *wait.Pace) []int32 {
	name, reversed := strings.CutPrefix(sort, "-")
	at := slices.IndexFunc(x.list.Columns, func(c Column[T]) bool { return name != "" && c.Name == name && c.Head != "" })
	if at < 0 {
		sort = "" // what people ask for must not fill the memory
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if order, ok := x.orders[sort]; ok {
		return order
	}
	order := make([]int32, len(x.all))
	for i := range order {
		order[i] = int32(i)
	}
	if at >= 0 {
		items, n := x.items(&x.list.Columns[at], pace), 0
		slices.SortFunc(items, func(a, b item) int {
			if n++; n%(8*perStep) == 0 {
				pace.Step()
			}
			return compare(&a, &b, reversed)
		})
		for i := range items {
			order[i] = items[i].at
		}
	}
	x.orders[sort] = order
	return order
}

// items returns all elements with what they are sorted by: the keys are parts of one text.
func (x *Index[T]) items(c *Column[T], pace *wait.Pace) []item {
	items, ends, keys := make([]item, len(x.all)), make([]int, len(x.all)), []byte(nil)
	text := c.Key
	if text == nil {
		text = c.joined
	}
	for i := range x.all {
		if i%perStep == 0 {
			pace.Step()
		}
		v := &x.all[i]
		items[i] = item{at: int32(i), text: text(v), last: x.list.Last != nil && x.list.Last(v)}
		keys = natural.AppendKey(keys, items[i].text)
		ends[i] = len(keys)
	}
	whole, from := string(keys), 0
	for i := range items {
		items[i].key = whole[from:ends[i]]
		from = ends[i]
	}
	return items
}

// joined returns the values of an element as one text.
func (c *Column[T]) joined(v *T) (text string) {
	n := 0
	c.Of(v, func(s string) bool {
		if n++; n > 1 {
			text += ","
		}
		text += s
		return false
	})
	return text
}

// compare compares two elements.
func compare(a, b *item, reversed bool) int {
	if a.last != b.last {
		if a.last {
			return 1
		}
		return -1
	}
	n := strings.Compare(a.key, b.key)
	if n == 0 {
		n = strings.Compare(a.text, b.text)
	}
	switch {
	case n == 0:
		return int(a.at - b.at)
	case reversed:
		return -n
	}
	return n
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
