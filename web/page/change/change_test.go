package change_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/web/answer"
	"drover/web/auth"
	"drover/web/page/change"
)

// good is a form that changes something.
type good struct {
	do, picks string
	inputs    []string
	did       string // the calls that it makes
	next      string // where it leads
	reader    bool   // it is no operator's, but an admin's
}

// all has a form of each action: a new one needs its own here.
var all = []good{
	{"add", "", []string{"name", "n6", "pool", "compute", "macs", "02-00-00-00-00-06", "ip", " 10.28.0.16 "}, "store n6", "/nodes/n6", false},
	{"list", "", []string{"pool", "compute", "nodes", "name,mac,ip\r\nx1,02:00:00:00:00:01,10.28.0.61\r\n"}, "store x1", "/nodes", false},
	{"adopt", mac.String(), []string{"pool", "compute", "name", "x{{.Index}}", "first", "7"}, "store x7, forget " + mac.String(), "/nodes", false},
	{"edit", "n3", []string{"name", "n9", "pool", "compute", "macs", "02:00:00:00:00:03", "ip", "10.28.0.13"}, "store n9, remove n3", "/nodes/n9", false},
	{"move", "n3 n4", []string{"pool", "storage"}, "store n3, store n4", "/nodes", false},
	{"tag", "n3", []string{"remove", "debug"}, "store n3", "/nodes/n3", false},
	{"remove", "n3", nil, "remove n3", "/nodes", false},
	{"next", "m1 m2", []string{"next", "local"}, "next boot of m1: local, next boot of m2: local", "/nodes", false},
	{"power", "m2 m1", []string{"action", "off"}, "switch m1 m2 off", "/power", false},
	{"boots", "m1", nil, "forget boots of m1", "/nodes/m1", false},
	{"forget", mac.String(), nil, "forget " + mac.String(), "/unknown", false},
	{"release", addr.String(), nil, "end " + addr.String(), "/leases", false},
	{"read", "hw", nil, "read hw", "/chassis", false},
	{"reload", "", nil, "reload", "/config", true},
}

// preview returns a form with its preview.
func (g *good) preview(t *testing.T, w *world, by auth.Client) *change.Form {
	t.Helper()
	f := w.form(by, g.do, g.picks, g.inputs...)
	if code, err := f.Preview(); err != nil || code != http.StatusOK || f.Error != "" {
		t.Fatalf("got %d %q, %v", code, f.Error, err)
	}
	return f
}

// each calls do for each action, in a world of its own.
func each(t *testing.T, do func(t *testing.T, w *world, g *good)) {
	t.Helper()
	for i := range all {
		t.Run(all[i].do, func(t *testing.T) { do(t, newWorld(t), &all[i]) })
	}
}

// did fails the test unless these calls were made, in any order.
func (w *world) did(t *testing.T, want string) {
	t.Helper()
	got, calls := slices.Sorted(slices.Values(w.calls)), strings.Split(want, ", ")
	slices.Sort(calls)
	if strings.Join(got, ", ") != strings.Join(calls, ", ") {
		t.Errorf("it did %q, want %q", got, want)
	}
}

// TestShownThenDone: opening and previewing a form does nothing. It does what its preview has
// shown, and says where to go.
func TestShownThenDone(t *testing.T) {
	each(t, func(t *testing.T, w *world, g *good) {
		if err := w.form(admin, g.do, g.picks).Open(); err != nil {
			t.Fatal(err)
		}
		f := g.preview(t, w, admin)
		if f.Acts == 0 || f.Acts != len(f.Lines) || f.Title == "" || f.Verb == "" {
			t.Errorf("the preview is %+v", f)
		}
		w.did(t, "")
		f.Values.Set("seen", f.Seen())
		if code := f.Apply(t.Context()); code != 0 || f.Next != g.next {
			t.Errorf("got %d %q, then %s", code, f.Error, f.Next)
		}
		w.did(t, g.did)
	})
}

// TestReloadHeld: a form says that the change of the file waits, and is no success.
func TestReloadHeld(t *testing.T) {
	w := newWorld(t)
	w.held = &pools.HeldConfig{Why: pools.HeldByBrake}
	f := w.form(admin, "reload", "")
	if _, err := f.Preview(); err != nil {
		t.Fatal(err)
	}
	f.Values.Set("seen", f.Seen())
	if code := f.Apply(t.Context()); code != http.StatusConflict || !strings.Contains(f.Error, "drover reload --yes") {
		t.Errorf("got %d %q", code, f.Error)
	}
}

// TestOtherInputs: an input is a part of what was seen, also one that no line shows.
func TestOtherInputs(t *testing.T) {
	w := newWorld(t)
	f := w.form(admin, "power", "m1 m2", "action", "off", "parallel", "1")
	if _, err := f.Preview(); err != nil {
		t.Fatal(err)
	}
	seen := f.Seen()
	f = w.form(admin, "power", "m1 m2", "action", "off")
	if _, err := f.Preview(); err != nil {
		t.Fatal(err)
	}
	f.Values.Set("seen", seen)
	if code := f.Apply(t.Context()); code != http.StatusConflict {
		t.Errorf("got %d", code)
	}
	w.did(t, "")
}

// TestNotShown: what a browser has not seen is not done: nothing at all, another form, or half of
// a fingerprint.
func TestNotShown(t *testing.T) {
	each(t, func(t *testing.T, w *world, g *good) {
		other := w.form(admin, "next", "m2", "next", "rescue")
		if _, err := other.Preview(); err != nil {
			t.Fatal(err)
		}
		shown := g.preview(t, w, admin).Seen()
		if len(shown) < 11 || other.Seen() == "" {
			t.Fatalf("the fingerprints are %q and %q", shown, other.Seen())
		}
		for what, seen := range map[string]string{
			"nothing": "", "another form": other.Seen(), "a part": shown[1:11], "noise": strings.Repeat("\x00", 1000), "another order": shown[1:] + shown[:1],
			"more than there is": shown + other.Seen(),
		} {
			f := g.preview(t, w, admin)
			if f.Values.Set("seen", seen); what == "more than there is" && (g.do == "next" || g.do == "power" || g.do == "boots" || g.do == "forget" || g.do == "release" || g.do == "read") {
				continue // they do what is still the same
			}
			if code := f.Apply(t.Context()); code != http.StatusConflict || !strings.Contains(f.Error, "no longer what you have seen") {
				t.Errorf("%s: got %d %q", what, code, f.Error)
			}
		}
		w.did(t, "")
	})
}

// TestRights: a client that may only read has no form, an operator has all but one, and one of
// other pools changes nothing.
func TestRights(t *testing.T) {
	each(t, func(t *testing.T, w *world, g *good) {
		for _, tt := range []struct {
			by  auth.Client
			may bool
		}{
			{viewer, false}, {auth.Client{}, false}, {auth.Client{Role: pools.RoleMetrics}, false}, {operator, !g.reader}, {admin, true},
		} {
			f := w.form(tt.by, g.do, g.picks, g.inputs...)
			_, err := f.Preview()
			if opened := w.form(tt.by, g.do, g.picks).Open(); (err == nil) != tt.may || (opened == nil) != tt.may {
				t.Errorf("%s: got %v and %v", tt.by.Role, err, opened)
			}
			if err != nil && answer.Of(err).Code != http.StatusForbidden {
				t.Errorf("%s: got %v", tt.by.Role, err)
			}
		}
		f := w.form(storage, g.do, g.picks, g.inputs...)
		code, err := f.Preview()
		if f.Values.Set("seen", f.Seen()); err == nil && !f.Blocked {
			if f.Acts > 0 {
				t.Errorf("another pool: %d %+v", code, f.Lines)
			}
			code = f.Apply(t.Context())
		}
		if err == nil && code == 0 {
			t.Error("another pool: it is done")
		}
		w.did(t, "")
	})
}

// TestFails: a form whose changes are not stored says so, and that nothing is done. The log has
// the cause of an error of the server.
func TestFails(t *testing.T) {
	each(t, func(t *testing.T, w *world, g *good) {
		f := g.preview(t, w, admin)
		f.Values.Set("seen", f.Seen())
		w.fails = fmt.Errorf("%w: disk full", pools.ErrNotStored)
		code := f.Apply(t.Context())
		if g.do == "boots" || g.do == "forget" {
			return // these have no error
		}
		if code < 400 || f.Error == "" || f.Done != 0 {
			t.Errorf("got %d %q, done %d", code, f.Error, f.Done)
		}
		if code >= 500 {
			fixture.WantText(t, "the log", w.log.String(), "change not made", "disk full", "do="+g.do)
		}
		w.did(t, "")
	})
}

// TestPicks: what is chosen is there once, in order, bounded, and there is something.
func TestPicks(t *testing.T) {
	for _, g := range all {
		w := newWorld(t)
		if g.picks == "" {
			continue
		}
		if err := w.form(admin, g.do, "").Open(); answer.Of(err).Code != 400 || !strings.Contains(err.Error(), "nothing is chosen") {
			t.Errorf("%s of nothing: got %v", g.do, err)
		}
		f := w.form(admin, g.do, "")
		for i := range 20_001 {
			f.Picks = append(f.Picks, fmt.Sprint("x", i))
		}
		if err := f.Open(); answer.Of(err).Code != 400 {
			t.Errorf("%s of 20 001: got %v", g.do, err)
		}
	}
	f := newWorld(t).form(admin, "remove", "n4 n3 n4")
	if err := f.Open(); err != nil || f.Title != "Remove 2 nodes" || f.Chosen() != "n3\nn4" {
		t.Errorf("got %q of %q, %v", f.Title, f.Chosen(), err)
	}
	for query, want := range map[string]string{"": "", "pick=a&pick=b": "a b", "picks=a%0ab%0d%0a+c&pick=d": "a b c d", "picks=%20": ""} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(change.Chosen(q), " "); got != want {
			t.Errorf("%q: got %q", query, got)
		}
	}
	for _, do := range []string{"", "explode", "Add", "add ", "__proto__"} {
		if _, err := newWorld(t).form(admin, do, "n3").Preview(); answer.Of(err).Code != 404 {
			t.Errorf("%q: got %v", do, err)
		}
	}
}

// TestChangedMeanwhile: a form of the kind "all or none" does nothing when one line is another one
// now. The others do what is still the same, and say what is not.
func TestChangedMeanwhile(t *testing.T) {
	w := newWorld(t)
	f := w.form(admin, "move", "n3 n4", "pool", "storage")
	if _, err := f.Preview(); err != nil {
		t.Fatal(err)
	}
	seen := f.Seen()
	gone := w.form(admin, "remove", "n4")
	if _, err := gone.Preview(); err != nil {
		t.Fatal(err)
	}
	gone.Values.Set("seen", gone.Seen())
	if code := gone.Apply(t.Context()); code != 0 {
		t.Fatalf("got %d", code)
	}
	f = w.form(admin, "move", "n3 n4", "pool", "storage")
	if _, err := f.Preview(); err != nil {
		t.Fatal(err)
	}
	f.Values.Set("seen", seen)
	if code := f.Apply(t.Context()); code != http.StatusConflict {
		t.Errorf("a move: got %d", code)
	}
	w.did(t, "remove n4")

	w = newWorld(t)
	f = w.form(admin, "next", "m1 m2 nobody", "next", "local")
	if _, err := f.Preview(); err != nil || f.Acts != 2 {
		t.Fatalf("%d lines, %v", f.Acts, err)
	}
	seen = f.Seen()
	w.next["m2"] = pools.NextRescue
	f = w.form(admin, "next", "m1 m2 nobody", "next", "local")
	if _, err := f.Preview(); err != nil {
		t.Fatal(err)
	}
	f.Values.Set("seen", seen)
	if code := f.Apply(t.Context()); code != http.StatusOK || f.Done != 1 || f.Error != "Done: 1. Not done: 2, see below." {
		t.Errorf("got %d, done %d: %s", code, f.Done, f.Error)
	}
	fixture.WantText(t, "the report", fmt.Sprintf("%+v", f.Lines), "it has changed since you have seen it", "nobody")
	w.did(t, "next boot of m1: local")
}

// TestLeaseOfAnother: an address that has become that of another machine is not freed.
func TestLeaseOfAnother(t *testing.T) {
	w := newWorld(t)
	f := w.form(admin, "release", addr.String())
	if _, err := f.Preview(); err != nil {
		t.Fatal(err)
	}
	f.Values.Set("seen", f.Seen())
	w.lease[5]++
	if code := f.Apply(t.Context()); code != http.StatusConflict || !strings.Contains(f.Error, "not leased to "+mac.String()+" any more") {
		t.Errorf("got %d %q", code, f.Error)
	}
	w.did(t, "")
}

// TestBadInputs: inputs that mean nothing are an error with its reason, and block the form.
func TestBadInputs(t *testing.T) {
	for _, tt := range []struct {
		do, picks string
		inputs    []string
		want      string
	}{
		{"add", "", []string{"name", "n6"}, "choose a pool"},
		{"add", "", []string{"name", " ", "pool", "compute"}, "no name"},
		{"add", "", []string{"name", "n6", "pool", "nope"}, "unknown pool"},
		{"add", "", []string{"name", "n6", "pool", "compute", "ip", "10.28.0.256"}, "is not an IP address"},
		{"add", "", []string{"name", "n6\x00", "pool", "compute", "macs", "02:00:00:00:00:06"}, "n6"},
		{"add", "", []string{"name", "m1", "pool", "compute", "macs", "02:00:00:00:00:06"}, "declared in"},
		{"list", "", []string{"nodes", "name\nx1\n"}, "has no pool"},
		{"list", "", []string{"pool", "compute", "nodes", "name,mac\nx1,zz\n"}, "nodes.csv:2"},
		{"list", "", []string{"pool", "compute", "nodes", "nodes: [{name: x1, nope: 1}]"}, "nope"},
		{"list", "", []string{"pool", "compute", "nodes", ""}, "empty"},
		{"adopt", mac.String(), []string{"name", "x"}, "choose a pool"},
		{"adopt", mac.String(), []string{"pool", "compute", "name", "{{.Exec}}"}, "other words"},
		{"adopt", mac.String(), []string{"pool", "compute", "name", "x", "first", "-1"}, "not a number"},
		{"move", "n3", nil, "choose a pool"},
		{"tag", "n3", nil, "name a tag"},
		{"tag", "n3", []string{"add", "nope"}, "unknown tag"},
		{"next", "m1", []string{"next", "format"}, "format"},
		{"power", "m1", nil, "choose what to do"},
		{"power", "m1", []string{"action", "off", "parallel", "0"}, "not a number of machines"},
		{"power", "m1", []string{"action", "off", "parallel", "x"}, "not a number of machines"},
	} {
		w := newWorld(t)
		f := w.form(admin, tt.do, tt.picks, tt.inputs...)
		code, err := f.Preview()
		if err != nil || code < 400 || code >= 500 || !f.Blocked || !strings.Contains(f.Error, tt.want) {
			t.Errorf("%s %q: got %d %q, %v, want %q", tt.do, tt.inputs, code, f.Error, err, tt.want)
		}
		w.did(t, "")
	}
}

// TestRefusedLines: things that cannot be changed stay, each with its reason.
func TestRefusedLines(t *testing.T) {
	for _, tt := range []struct {
		do, pick string
		inputs   []string
		want     string
	}{
		{"move", "m1", []string{"pool", "storage"}, "declared in"}, {"remove", "m1", nil, "declared in"}, {"edit", "m1", []string{"name", "x", "pool", "compute"}, "declared in"},
		{"remove", "nobody", nil, "no such node"}, {"tag", "nobody", []string{"add", "debug"}, "no such node"}, {"next", "nobody", []string{"next", "local"}, "no such node"},
		{"power", "nobody", []string{"action", "on"}, "no such node"}, {"boots", "m2", nil, "no boot of node"}, {"read", "nope", nil, "no such chassis"},
		{"forget", "x", nil, "not a MAC address"}, {"forget", "02:00:00:00:00:99", nil, "no unknown machine"}, {"adopt", "x", []string{"pool", "compute", "name", "x"}, "not a MAC address"},
		{"release", "x", nil, "is not an IP address"}, {"release", "10.28.72.11", nil, "no lease of 10.28.72.11"},
		{"tag", "n3", []string{"add", "debug"}, "it is so already"}, {"next", "m1", []string{"next", "none"}, "it is so already"},
	} {
		w := newWorld(t)
		f := w.form(admin, tt.do, tt.pick, tt.inputs...)
		if code, err := f.Preview(); err != nil || code != 200 || f.Acts != 0 || len(f.Lines) != 1 || !strings.Contains(f.Lines[0].Refused, tt.want) || f.Seen() != "" {
			t.Errorf("%s %s: got %d %+v, %v, want %q", tt.do, tt.pick, code, f.Lines, err, tt.want)
			continue
		}
		if code := f.Apply(t.Context()); code != http.StatusConflict {
			t.Errorf("%s %s: got %d", tt.do, tt.pick, code)
		}
		w.did(t, "")
	}
}

// TestLongPreview: a preview shows a hundred lines at once, and has the rest.
func TestLongPreview(t *testing.T) {
	w := newWorld(t)
	var text strings.Builder
	text.WriteString("name,mac,ip\n")
	for i := range 250 {
		fmt.Fprintf(&text, "x%d,02:00:00:00:01:%02x,10.28.9.%d\n", i, i, i+1)
	}
	f := w.form(admin, "list", "", "pool", "compute", "nodes", text.String())
	if code, err := f.Preview(); err != nil || code != 200 || len(f.First()) != 100 || len(f.Rest()) != 150 || f.Rest()[0].Target != "x100" {
		t.Errorf("got %d %q, %d and %d lines, %v", code, f.Error, len(f.First()), len(f.Rest()), err)
	}
}
