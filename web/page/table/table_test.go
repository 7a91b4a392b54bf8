package table_test

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"drover/web/page/table"
)

// machine is an element of the lists of the tests.
type machine struct {
	Name, Pool string
	Tags       []string
	Size       int
}

// list is a list with all kinds of columns.
func list() *table.List[machine] {
	return &table.List[machine]{
		Sort:   "name",
		Search: func(m *machine) string { return strings.ToLower(m.Name + "\n" + m.Pool) },
		Last:   func(m *machine) bool { return m.Pool == "retired" },
		Columns: []table.Column[machine]{
			{Name: "name", Head: "Name", Of: table.One(func(m *machine) string { return m.Name })},
			{Name: "pool", Head: "Pool", Of: table.One(func(m *machine) string { return m.Pool }), Pick: true},
			{Name: "tag", Of: table.Many(func(m *machine) []string { return m.Tags }), Pick: true},
			{Name: "size", Head: "Size", Key: func(m *machine) string { return fmt.Sprintf("%020d", m.Size) }},
			{Head: "Action"},
		},
		Row: func(m *machine) table.Row {
			row := table.Row{Key: m.Name}
			if m.Pool != "retired" {
				row.Pick = m.Name
			}
			return row
		},
	}
}

func farm() []machine {
	return []machine{
		{"m10", "compute", []string{"gpu", "debug"}, 9}, {"m2", "storage", nil, 100}, {"m1", "compute", []string{"gpu"}, 20},
		{"M0", "retired", nil, 1}, {"a,b", "storage", []string{"x,y"}, 3},
	}
}

// view returns a view of a query.
func view(t *testing.T, query string, all []machine) table.Table {
	t.Helper()
	q, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	return list().View(table.Table{Path: "/x"}, q, all)
}

// keys returns the rows of a table.
func keys(v table.Table) string {
	var all []string
	for _, r := range v.Rows {
		all = append(all, r.Key)
	}
	return strings.Join(all, " ")
}

// TestQuery: filters and search select, sort orders, and values that mean nothing have no effect
// or select nothing. None of them ends the program.
func TestQuery(t *testing.T) {
	const usual, asTheyCome = "a,b m1 m2 m10 M0", "m10 m2 m1 M0 a,b"
	for query, want := range map[string]string{
		"":                          usual,
		"pool=compute":              "m1 m10",
		"pool=compute,storage":      "a,b m1 m2 m10",
		"tag=gpu&pool=compute":      "m1 m10",
		"tag=x,y":                   "a,b",
		"name=a,b":                  "a,b",
		"name=m0":                   "",
		"size=9":                    usual, // it is no filter
		"q=M1":                      "m1 m10",
		"q=m1 COMP":                 "m1 m10",
		"q=m 1 0":                   "m10",
		"q=nothing":                 "",
		"q=%20%20":                  usual,
		"sort=name":                 usual,
		"sort=-name":                "m10 m2 m1 a,b M0", // the last ones stay last
		"sort=size":                 "a,b m10 m1 m2 M0",
		"sort=-size":                "m2 m1 m10 a,b M0",
		"sort=pool":                 "m10 m1 m2 a,b M0",
		"sort=-pool&q=m":            "m2 m10 m1 M0",
		"sort=tag":                  asTheyCome, // it has no head
		"sort=nme":                  asTheyCome,
		"sort=--name":               asTheyCome,
		"sort=-":                    asTheyCome,
		"page=0":                    usual,
		"page=-1":                   usual,
		"page=2":                    usual,
		"page=x":                    usual,
		"page=99999999999999999":    usual,
		"page=-9223372036854775808": usual,
		"=x&nope=y":                 usual,
		"pool=" + "%3Cscript%3E":    "",
		"pool=%00":                  "",
		"q=%ff%fe":                  "",
		"pool=compute&pool=storage": "m1 m10", // the first value counts
	} {
		if got := keys(view(t, query, farm())); got != want {
			t.Errorf("%q: got %q, want %q", query, got, want)
		}
	}
}

// TestManyWords: a search of thousands of words takes no time, and finds nothing rather than more
// than was asked for.
func TestManyWords(t *testing.T) {
	for n, want := range map[int]string{64: "m1 m2 m10 M0", 65: "", 8000: ""} {
		query := url.Values{"q": {strings.Repeat("m ", n)}}
		if got := keys(view(t, query.Encode(), farm())); got != want {
			t.Errorf("%d words: got %q, want %q", n, got, want)
		}
	}
}

// TestCounts: a table says how much of the list it shows.
func TestCounts(t *testing.T) {
	for _, tt := range []struct {
		query                    string
		matched, total, from, to int
		filtered                 bool
	}{
		{"", 5, 5, 1, 5, false}, {"pool=compute", 2, 5, 1, 2, true}, {"pool=x", 0, 5, 0, 0, true},
	} {
		v := view(t, tt.query, farm())
		if v.Matched != tt.matched || v.Total != tt.total || v.From != tt.from || v.To != tt.to || v.Filtered != tt.filtered {
			t.Errorf("%q: got %d of %d, %d to %d, filtered %t", tt.query, v.Matched, v.Total, v.From, v.To, v.Filtered)
		}
	}
	if v := view(t, "q=x&sort=-name&page=7", nil); v.Total != 0 || v.From != 0 || v.Rows != nil || v.Next != "" || v.Previous != "" {
		t.Errorf("an empty list: %+v", v)
	}
}

// TestPages: the pages of a list are the list, each element once, and none is long.
func TestPages(t *testing.T) {
	var all []machine
	for i := range 250 {
		all = append(all, machine{Name: fmt.Sprintf("m%d", i), Pool: "compute", Tags: []string{"gpu"}})
	}
	seen := map[string]bool{}
	next, pages := "/x?sort=-name&tag=gpu", 0
	for next != "" {
		_, query, _ := strings.Cut(next, "?")
		v := view(t, query, slices.Clone(all))
		if len(v.Rows) > 100 || pages > 3 {
			t.Fatalf("page %d has %d rows", pages+1, len(v.Rows))
		}
		for _, r := range v.Rows {
			if seen[r.Key] {
				t.Errorf("%s comes twice", r.Key)
			}
			seen[r.Key] = true
		}
		if (v.Previous == "") != (pages == 0) {
			t.Errorf("page %d: before it is %q", pages+1, v.Previous)
		}
		next, pages = v.Next, pages+1
	}
	if len(seen) != len(all) || pages != 3 {
		t.Errorf("%d elements in %d pages", len(seen), pages)
	}
	if v := view(t, "page=99", all); keys(v) == "" || v.From != 201 || v.Next != "" {
		t.Errorf("behind the last page: from %d, next %q", v.From, v.Next)
	}
}

// TestFilters: a filter offers the values that there are, and the one that is chosen.
func TestFilters(t *testing.T) {
	v := view(t, "", farm())
	if got := fmt.Sprint(v.Filters); got != "[{pool  [compute retired storage]} {tag  [debug gpu x,y]}]" {
		t.Errorf("got %s", got)
	}
	v = view(t, "pool=gone&name=m1&sort=-size&q=m&page=2&nope=1", farm())
	if got := fmt.Sprintf("%v %v %s", v.Filters, v.Keep, v.Q); got != "[{pool gone [compute gone retired storage]} {tag  [debug gpu x,y]}] [{name m1} {sort -size}] m" {
		t.Errorf("got %s", got)
	}
	if one := view(t, "", farm()[1:2]); one.Filters != nil {
		t.Errorf("nothing to choose: %v", one.Filters)
	}
	var many []machine
	for i := range 2000 {
		many = append(many, machine{Pool: fmt.Sprintf("p%d", i)})
	}
	if n := len(view(t, "", many).Filters[0].Options); n != 500 {
		t.Errorf("a choice of %d", n)
	}
}

// TestHeads: the head of a column sorts by it, and then the other way round. It keeps the filters,
// and leads to the first page.
func TestHeads(t *testing.T) {
	for _, tt := range []struct{ query, name, sorted, url string }{
		{"", "Name", "ascending", "/x?sort=-name"},
		{"", "Size", "", "/x?sort=size"},
		{"sort=-name&page=3", "Name", "descending", "/x?sort=name"},
		{"sort=size&pool=compute", "Size", "ascending", "/x?pool=compute&sort=-size"},
		{"q=%22%3E%3Cscript%3E", "Pool", "", "/x?q=%22%3E%3Cscript%3E&sort=pool"},
		{"", "Action", "", ""},
	} {
		heads := view(t, tt.query, farm()).Heads
		i := slices.IndexFunc(heads, func(h table.Head) bool { return h.Text == tt.name })
		if i < 0 || heads[i] != (table.Head{Text: tt.name, URL: tt.url, Sorted: tt.sorted}) {
			t.Errorf("%q: got %+v", tt.query, heads)
		}
	}
}

// TestPicks: all that a query describes can be chosen at once, whatever the page is, and nothing
// else.
func TestPicks(t *testing.T) {
	for query, want := range map[string]string{
		"": "m10 m2 m1 a,b", "pool=compute&page=9&sort=-name": "m10 m1", "q=m": "m10 m2 m1", "pool=retired": "", "pool=nope": "",
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(list().Picks(q, farm()), " "); got != want {
			t.Errorf("%q: got %q, want %q", query, got, want)
		}
	}
}

// TestCount: the numbers are those that a filter by the value would show.
func TestCount(t *testing.T) {
	x := list().Index(append(farm(), machine{Name: "twice", Tags: []string{"gpu", "gpu"}}))
	if got, want := x.Count("tag"), map[string]int{"gpu": 3, "debug": 1, "x,y": 1}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := x.Count("no such column"); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// TestTogether: many use one index at a time, each with its own query.
func TestTogether(t *testing.T) {
	x := list().Index(farm())
	var wait sync.WaitGroup
	for i := range 40 {
		wait.Go(func() {
			sort, want := "name", "a,b m1 m2 m10"
			if i%2 > 0 {
				sort, want = "-name", "m10 m2 m1 a,b"
			}
			v := x.View(table.Table{}, url.Values{"sort": {sort}, "pool": {"compute,storage"}, "q": {"m"}}, list().Row, nil)
			if got := keys(v); got != strings.TrimSpace(strings.Replace(want, "a,b", "", 1)) {
				t.Errorf("%s: got %q", sort, got)
			}
		})
	}
	wait.Wait()
}

// TestWith: a URL is that of this path, whatever the values are.
func TestWith(t *testing.T) {
	for _, tt := range []struct {
		got, want string
	}{
		{table.With("/x", nil), "/x"},
		{table.With("/x", url.Values{"a": {"1", "2"}, "b": {""}, "c": nil}), "/x?a=1"},
		{table.With("/x", url.Values{"a": {"1"}, "page": {"3"}}, "a", "2", "page", ""), "/x?a=2"},
		{table.With("/x", url.Values{"a": {"1"}}, "a", ""), "/x"},
		{table.With("/x", url.Values{"a": {"&b=1#\"<>"}}, "odd"), "/x?a=%26b%3D1%23%22%3C%3E"},
		{table.To("/nodes", "pool", "a b", "state", "stuck"), "/nodes?pool=a+b&state=stuck"},
		{table.NodePath("../x?y#z"), "/nodes/..%2Fx%3Fy%23z"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
	query := url.Values{"a": {"1", "2"}}
	table.With("/x", query, "a", "", "b", "1")
	if got := query.Encode(); got != "a=1&a=2" {
		t.Errorf("the query has become %q", got)
	}
}
