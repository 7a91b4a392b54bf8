package listing_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/pools"
	"drover/web/answer"
	"drover/web/auth"
	"drover/web/listing"
	"drover/web/route"
)

// machine is an element of the lists of the tests.
type machine struct {
	Name, Pool string
	Tags       []string
	Seen       time.Time
}

var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// machines is a list with all kinds of columns.
var machines = listing.List[machine]{Max: 6, Columns: []listing.Column[machine]{
	{Name: "name", Of: func(m *machine) string { return m.Name }},
	{Name: "pool", Of: func(m *machine) string { return m.Pool }, Words: []string{"compute", "storage"}},
	{Name: "tag", All: func(m *machine) []string { return m.Tags }},
	{Name: "seen", Of: func(m *machine) string { return listing.Time(m.Seen) }, SortOnly: true},
}}

// farm returns the elements that the tests begin with. Their order is none of the list.
func farm() []machine {
	return []machine{
		{"m10", "compute", []string{"gpu", "debug"}, epoch.Add(time.Nanosecond)},
		{"m2", "storage", nil, epoch},
		{"m1", "compute", []string{"gpu"}, epoch.Add(time.Hour)},
		{"a,b", "storage", []string{"x,y"}, epoch.Add(-time.Hour)},
	}
}

// server serves a list by a table, which checks its parameters.
type server struct {
	http.Handler
	token string
}

func serve[T any](t *testing.T, l *listing.List[T], all func() []T) server {
	t.Helper()
	token := strings.Repeat("0", 64)
	guard := auth.New(auth.NewToken(token), nil, false, func() time.Time { return epoch })
	table := []route.Route{{
		Method: "GET", Path: "/list", Role: pools.RoleViewer, Query: l.Parameters(), Status: 200, Answer: []T{},
		Handle: func(w http.ResponseWriter, r *http.Request) error { return l.Answer(w, r, all()) },
	}}
	return server{guard.API(route.Handler(slog.New(slog.DiscardHandler), table)), token}
}

// get returns an answer, and the path of the next page.
func (s server) get(path string) (resp *httptest.ResponseRecorder, next string) {
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
	r.Header.Set("Authorization", "Bearer "+s.token)
	s.ServeHTTP(w, r)
	next = strings.TrimSuffix(strings.TrimPrefix(w.Header().Get("Link"), "<"), `>; rel="next"`)
	return w, next
}

// names returns the names in an answer.
func names(t *testing.T, resp *httptest.ResponseRecorder) string {
	t.Helper()
	var all []machine
	if err := json.Unmarshal(resp.Body.Bytes(), &all); err != nil || resp.Code != 200 {
		t.Fatalf("got %d %s", resp.Code, resp.Body)
	}
	var out []string
	for _, m := range all {
		out = append(out, m.Name)
	}
	return strings.Join(out, " ")
}

// TestFilter: filters select elements, and all of them together.
func TestFilter(t *testing.T) {
	s := serve(t, &machines, farm)
	for query, want := range map[string]string{
		"":                              "m10 m2 m1 a,b",
		"?name=":                        "m10 m2 m1 a,b",
		"?name=m1":                      "m1",
		"?name=m1,m2,nobody":            "m2 m1",
		"?name=a,b":                     "a,b", // a name with a comma is found as a whole
		"?name=M1":                      "",
		"?name=m":                       "",
		"?name=%00":                     "",
		"?pool=compute":                 "m10 m1",
		"?tag=gpu":                      "m10 m1",
		"?tag=debug,x,y":                "m10",
		"?tag=x,y":                      "a,b",
		"?tag=gpu&pool=storage":         "",
		"?tag=gpu&pool=compute&name=m1": "m1",
	} {
		resp, next := s.get("/list" + query)
		if got := names(t, resp); got != want || next != "" {
			t.Errorf("%q: got %q and %q, want %q", query, got, next, want)
		}
	}
	empty := serve(t, &machines, func() []machine { return nil })
	for _, query := range []string{"", "?name=x", "?sort=name", "?limit=1"} {
		if resp, _ := empty.get("/list" + query); resp.Code != 200 || strings.TrimSpace(resp.Body.String()) != "[]" {
			t.Errorf("%q of an empty list: got %d %s, want []", query, resp.Code, resp.Body)
		}
	}
}

// TestSort: numbers in names count by their value, a minus reverses, and times sort by their
// nanoseconds.
func TestSort(t *testing.T) {
	s := serve(t, &machines, farm)
	for query, want := range map[string]string{
		"?sort=name":              "a,b m1 m2 m10",
		"?sort=-name":             "m10 m2 m1 a,b",
		"?sort=pool":              "m1 m10 a,b m2",
		"?sort=-pool":             "m2 a,b m10 m1",
		"?sort=tag":               "m2 m1 m10 a,b",
		"?sort=seen":              "a,b m2 m10 m1",
		"?sort=-seen&limit=1":     "m1",
		"?sort=seen&pool=compute": "m10 m1",
		"?limit=2":                "a,b m1",
	} {
		resp, _ := s.get("/list" + query)
		if got := names(t, resp); got != want {
			t.Errorf("%q: got %q, want %q", query, got, want)
		}
	}
	newest := machines
	newest.Newest = true
	resp, _ := serve(t, &newest, farm).get("/list?limit=2")
	if got := names(t, resp); got != "m10 m2" {
		t.Errorf("the newest first: got %q", got)
	}
}

// cursor returns a cursor that a client has made itself.
func cursor(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// TestRefused: a parameter that means nothing is an error with its name, and not a list.
func TestRefused(t *testing.T) {
	s := serve(t, &machines, farm)
	_, next := s.get("/list?limit=1&sort=pool")
	u, err := url.Parse(next)
	if err != nil {
		t.Fatal(err)
	}
	byPool := u.Query().Get("cursor")
	if byPool == "" {
		t.Fatalf("no cursor in %q", next)
	}
	for query, field := range map[string]string{
		"limit=0":                            "limit",
		"limit=-1":                           "limit",
		"limit=7":                            "limit", // more than the list allows
		"limit=1e1":                          "limit",
		"limit=99999999999999999999":         "limit",
		"sort=nme":                           "sort",
		"sort=--name":                        "sort",
		"sort=-":                             "sort",
		"sort=name,pool":                     "sort",
		"pool=tape":                          "pool",
		"pool=compute,storage":               "pool", // it is a word
		"seen=2026-11-20":                    "seen", // it only sorts
		"Name=m1":                            "Name",
		"name=m1&name=m2":                    "name",
		"cursor=x":                           "cursor",
		"cursor=%00":                         "cursor",
		"cursor=" + byPool:                   "cursor", // of another order
		"sort=-pool&cursor=" + byPool:        "cursor",
		"sort=name&cursor=" + byPool:         "cursor",
		"cursor=" + cursor("[]"):             "cursor",
		"cursor=" + cursor("null"):           "cursor",
		"cursor=" + cursor(`{"s":"name"}{}`): "cursor",
		"cursor=" + cursor(`{"s":"name","n":"x"}`):    "cursor",
		"cursor=" + cursor(`{"s":"name","n":1e99}`):   "cursor",
		"cursor=" + strings.Repeat(cursor("["), 2000): "cursor",
	} {
		resp, next := s.get("/list?" + query)
		var p answer.Problem
		if err := json.Unmarshal(resp.Body.Bytes(), &p); err != nil || resp.Code != 400 || p.Code != answer.CodeParameter || p.Field != field || next != "" {
			t.Errorf("%.60s: got %d %s, want an error of %s", query, resp.Code, resp.Body, field)
		}
	}
}

// TestHostileCursor: a cursor of another list, or one that a client has made up, is no more than
// a place in the order: the filter still holds, and no element comes twice.
func TestHostileCursor(t *testing.T) {
	s := serve(t, &machines, farm)
	for text, want := range map[string]string{
		`{"s":"name"}`:                             "m1 m10",
		`{"s":"name","v":"m1","k":"m1","n":1}`:     "m10",
		`{"s":"name","v":"m1","k":"m1","n":-5}`:    "m1 m10",
		`{"s":"name","v":"m1","k":"m1","n":1000}`:  "m10",
		`{"s":"name","v":"b","k":"of another"}`:    "m1 m10",
		`{"s":"name","v":"zzz","k":"zzz","n":1}`:   "",
		`{"s":"name","v":"\u0000","k":"\uffff"}`:   "m1 m10",
		`{"s":"name","pool":"storage","limit":99}`: "m1 m10",
	} {
		resp, next := s.get("/list?pool=compute&cursor=" + cursor(text))
		if got := names(t, resp); got != want || next != "" {
			t.Errorf("%s: got %q and %q, want %q", text, got, next, want)
		}
	}
}

// TestPages: the pages of a list are the list, whatever its order, and a page is never longer
// than its limit. Elements that no column tells apart are in exactly one page each.
func TestPages(t *testing.T) {
	var many []machine
	for i := range 23 {
		many = append(many, machine{fmt.Sprintf("m%d", i/2), []string{"compute", "storage"}[i%2], nil, epoch})
	}
	s := serve(t, &machines, func() []machine { return slices.Clone(many) })
	for _, sort := range []string{"name", "-name", "pool", "-tag", "seen"} {
		for limit := 1; limit <= machines.Max; limit++ {
			count, pages := map[string]int{}, 0
			for path := fmt.Sprintf("/list?sort=%s&limit=%d", sort, limit); path != ""; pages++ {
				var resp *httptest.ResponseRecorder
				resp, path = s.get(path)
				var page []machine
				if err := json.Unmarshal(resp.Body.Bytes(), &page); err != nil || len(page) == 0 || len(page) > limit {
					t.Fatalf("sort %s, limit %d: a page of %d, %v", sort, limit, len(page), err)
				}
				for _, m := range page {
					count[m.Name+m.Pool]++
				}
			}
			for _, m := range many {
				if n := count[m.Name+m.Pool]; n != 1 {
					t.Errorf("sort %s, limit %d: %s of %s is there %d times", sort, limit, m.Name, m.Pool, n)
				}
			}
			if want := (len(many) + limit - 1) / limit; pages != want {
				t.Errorf("sort %s, limit %d: %d pages, want %d", sort, limit, pages, want)
			}
		}
	}
}

// TestChangedBetweenPages: an element that stays is in one of the pages, whatever comes and goes.
func TestChangedBetweenPages(t *testing.T) {
	all := []machine{{Name: "m1"}, {Name: "m2"}, {Name: "m3"}, {Name: "m4"}, {Name: "m5"}}
	s := serve(t, &machines, func() []machine { return slices.Clone(all) })
	resp, next := s.get("/list?limit=2")
	if got := names(t, resp); got != "m1 m2" {
		t.Fatalf("the first page is %q", got)
	}
	all = []machine{{Name: "m0"}, {Name: "m1"}, {Name: "m4"}, {Name: "m5"}, {Name: "m6"}} // m2, where the page ended, is gone
	resp, next = s.get(next)
	if got := names(t, resp); got != "m4 m5" {
		t.Errorf("the second page is %q", got)
	}
	resp, next = s.get(next)
	if got := names(t, resp); got != "m6" || next != "" {
		t.Errorf("the last page is %q, and then %q", got, next)
	}
}

// TestNext: the address of the next page has all that the query had.
func TestNext(t *testing.T) {
	s := serve(t, &machines, farm)
	_, next := s.get("/list?pool=compute&limit=1&sort=-name&tag=gpu")
	u, err := url.Parse(next)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if u.Path != "/list" || q.Get("pool") != "compute" || q.Get("limit") != "1" || q.Get("sort") != "-name" || q.Get("tag") != "gpu" || q.Get("cursor") == "" {
		t.Errorf("got %q", next)
	}
}

// TestTime: texts of times sort as the times do, of any zone.
func TestTime(t *testing.T) {
	east := time.FixedZone("", 2*60*60)
	times := []time.Time{{}, epoch.Add(-time.Second), epoch, epoch.In(east).Add(time.Nanosecond), epoch.Add(time.Second / 2), epoch.In(east).Add(time.Hour)}
	for i := 1; i < len(times); i++ {
		if a, b := listing.Time(times[i-1]), listing.Time(times[i]); a >= b {
			t.Errorf("%s is not before %s", a, b)
		}
	}
}
