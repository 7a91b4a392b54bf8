// Package change is the forms of the page that change something: of one machine or of many.
//
// A form shows what it would do before it does it ([Form.Preview]). It has a row in the table
// of actions, which says who may use it, what its inputs are, and what it plans.
//
// What is done is what was shown: a browser sends back the fingerprints of the lines that it
// has seen. If something has changed meanwhile, a form that makes all of its changes or none
// does nothing. The others do the lines that are still the same, and say which ones are not.
// A fingerprint is of the target and of what is done to it, and not of what changes by itself,
// such as the state of a machine.
//
// The package does not know requests, sessions and templates.
package change

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"drover/web/answer"
	"drover/web/api"
	"drover/web/auth"
	"drover/web/page/snapshot"
	"drover/web/page/table"
)

// inputPrefix is in front of the names of a form's inputs.
const inputPrefix = "in-"

// The limits of a form.
const (
	MaxBody  = 8 << 20 // bytes of the answer to it
	maxPicks = 20_000
	maxLines = 100 // of a preview, that are shown without a further click
)

// Form is a form that changes something. API, Shared, Client, Do, Picks and Values must be set.
type Form struct {
	API    *api.API
	Shared *snapshot.Shared
	Client auth.Client
	Do     string
	Picks  []string // what is to be changed: names of nodes, MACs, addresses, ...
	Values url.Values

	Title   string
	Verb    string // on the button
	Warning string
	Fields  []Field
	Lines   []Line // the preview; nil: there is none yet
	Acts    int    // lines that change something
	Error   string
	Blocked bool        // by the error: there is nothing to do
	Done    int         // lines that were done, of a form that was not done as a whole
	Back    string      // where "Cancel" leads
	Next    string      // where the form leads when it is done
	Other   *table.Link // a form for the same, in another way

	action action
	apply  func(ctx context.Context, only func(Line) bool) (undone []Line, err error)
}

// Field is an input of a form.
type Field struct {
	Name, Label, Value, Hint string
	Kind                     string // text, choice, check, lines
	Required                 bool
	Options                  []table.Pair // value and label; of a text: what it may be, as help
}

// Line is what a form would do to one thing.
type Line struct {
	Target  string
	Changes []string // "pool: compute → storage"
	Note    string   // about the target now, which is no part of what is done
	Refused string   // why it stays as it is
}

// refuse adds something that stays as it is.
func (f *Form) refuse(target string, why error) {
	f.Lines = append(f.Lines, Line{Target: target, Refused: answer.Of(why).Msg})
}

// act adds something that changes.
func (f *Form) act(target string, changes ...string) {
	f.Lines = append(f.Lines, Line{Target: target, Changes: changes})
	f.Acts++
}

// value returns the value of an input. Browsers send lines with CR LF, and show them without.
func (f *Form) value(name string) string {
	return strings.ReplaceAll(f.Values.Get(inputPrefix+name), "\r\n", "\n")
}

// may reports whether the client may change the machines of a pool.
func (f *Form) may(pool string) bool { return f.Client.May(pool) == nil }

// Chosen returns what a form of the page has sent as its picks: one field, as browsers and
// servers bound the number of fields.
func Chosen(values url.Values) []string {
	return append(strings.Fields(values.Get("picks")), values["pick"]...)
}

// Chosen returns the picks as one field.
func (f *Form) Chosen() string { return strings.Join(f.Picks, "\n") }

// Open sets what a form shows at first. The error is that of a form that the client cannot
// have.
func (f *Form) Open() error {
	if err := f.begin(); err != nil {
		return err
	}
	if f.Fields = f.action.fields(f); len(f.Fields) == 0 {
		f.preview()
	}
	return nil
}

// begin sets the action of a form, if the client may take it.
func (f *Form) begin() error {
	a, ok := actions()[f.Do]
	if !ok {
		return answer.NotFound("the page has no action %q", f.Do)
	}
	if err := f.Client.Needs(a.role); err != nil {
		return err
	}
	slices.Sort(f.Picks)
	f.Picks = slices.Compact(f.Picks)
	if len(f.Picks) > maxPicks {
		return answer.BadRequest("%d at once: at most %d", len(f.Picks), maxPicks)
	}
	if len(f.Picks) == 0 && a.picks != "" {
		return answer.BadRequest("nothing is chosen: mark %s in the list first", a.picks)
	}
	f.action = a
	f.Title, f.Verb, f.Warning, f.Back, f.Next = a.title, a.verb, a.warning, a.list, a.list
	switch {
	case len(f.Picks) == 1:
		f.Title += " " + f.Picks[0]
		if m := f.Shared.ByName[f.Picks[0]]; m != nil {
			f.Back, f.Next = table.NodePath(m.Name), table.NodePath(m.Name)
		}
	case len(f.Picks) > 1:
		f.Title += fmt.Sprintf(" %d %s", len(f.Picks), a.picks)
	}
	return nil
}

// Preview sets what a form would do with the values of its inputs, and returns the status of
// the answer. The error is that of a form that the client cannot have.
func (f *Form) Preview() (code int, err error) {
	if err := f.begin(); err != nil {
		return 0, err
	}
	f.Fields = f.action.fields(f)
	for i := range f.Fields {
		f.Fields[i].Value = f.value(f.Fields[i].Name)
	}
	return f.preview(), nil
}

func (f *Form) preview() (code int) {
	if err := f.action.plan(f); err != nil {
		f.Blocked = true
		return f.fail(err)
	}
	return http.StatusOK
}

// fail sets the error of a form, and returns the status of the answer.
func (f *Form) fail(err error) int {
	e := answer.Of(err)
	if e.Code >= http.StatusInternalServerError {
		f.API.Log.Error("change not made", "do", f.Do, "err", err)
	}
	f.Error = e.Msg
	return e.Code
}

// Apply does what the preview of a form has shown, after [Form.Preview]. It returns 0 if all of
// that is done, else the status of the answer, which says what is done and what is not.
func (f *Form) Apply(ctx context.Context) int {
	seen, mark := f.seen(), f.marker()
	same := 0
	for _, l := range f.Lines {
		if l.Refused == "" && seen[mark(l)] {
			same++
		}
	}
	if same == 0 || f.action.whole && (same < len(seen) || same < f.Acts) {
		f.Error = "This is no longer what you have seen: something has changed. Read it again."
		return http.StatusConflict
	}
	undone, err := f.apply(ctx, func(l Line) bool { return seen[mark(l)] })
	switch {
	case err != nil:
		return f.fail(err)
	case len(undone) == 0 && same == len(seen):
		return 0
	}
	f.report(same-len(undone), undone, func(l Line) bool { return seen[mark(l)] })
	return http.StatusOK
}

// report sets the lines to what is not done.
func (f *Form) report(done int, undone []Line, tried func(Line) bool) {
	f.Done, f.Acts = done, 0
	for _, l := range f.Lines {
		switch {
		case l.Refused != "":
			undone = append(undone, l)
		case !tried(l):
			undone = append(undone, Line{Target: l.Target, Refused: "it has changed since you have seen it"})
		}
	}
	f.Lines, f.Fields, f.Warning = undone, nil, ""
	f.Error = fmt.Sprintf("Done: %d. Not done: %d, see below.", done, len(undone))
}

// fingerprintSize is that of a fingerprint as text.
const fingerprintSize = 11

// marker returns the function that returns the fingerprint of a line of the form.
func (f *Form) marker() func(Line) string {
	inputs := map[string]string{}
	for _, field := range f.Fields {
		inputs[field.Name] = f.value(field.Name)
	}
	form, _ := json.Marshal([]any{f.Do, inputs}) // texts
	return func(l Line) string {
		line, _ := json.Marshal([]any{l.Target, l.Changes}) // texts
		sum := sha256.Sum256(slices.Concat(form, line))
		return base64.RawURLEncoding.EncodeToString(sum[:8])
	}
}

// Seen returns the fingerprints of the lines that change something, as one text.
func (f *Form) Seen() string {
	var b strings.Builder
	mark := f.marker()
	for _, l := range f.Lines {
		if l.Refused == "" {
			b.WriteString(mark(l))
		}
	}
	return b.String()
}

// seen returns the fingerprints that the browser has sent.
func (f *Form) seen() map[string]bool {
	all := map[string]bool{}
	for s := f.Values.Get("seen"); len(s) >= fingerprintSize; s = s[fingerprintSize:] {
		all[s[:fingerprintSize]] = true
	}
	return all
}

// First and Rest are the lines that are shown at once, and with a click.
func (f *Form) First() []Line { return f.Lines[:min(len(f.Lines), maxLines)] }

// Rest returns the lines after [Form.First].
func (f *Form) Rest() []Line { return f.Lines[len(f.First()):] }

// mayPools returns the names of the pools whose machines the client may change.
func (f *Form) mayPools() (names []table.Pair) {
	for _, pool := range f.Shared.Farm.Config.Pools {
		if f.may(pool.Name) {
			names = append(names, table.Pair{Name: pool.Name, Value: pool.Name})
		}
	}
	return names
}

// together sets what is done to all lines of a form or to none.
func (f *Form) together(do func() error) {
	f.apply = func(context.Context, func(Line) bool) ([]Line, error) { return nil, do() }
}

// each plans something that is done to each thing for itself. errs say why some of them stay,
// what says what would be done to the others. do gets the ones that are still as they were
// shown, and returns an error for each, in their order.
func each[T any](f *Form, targets []string, things []T, errs []error, what func(T) []string, do func(context.Context, []T) []error) {
	byTarget := map[string]T{}
	for i, target := range targets {
		if errs[i] != nil {
			f.refuse(target, errs[i])
			continue
		}
		f.act(target, what(things[i])...)
		byTarget[target] = things[i]
	}
	f.apply = func(ctx context.Context, only func(Line) bool) (undone []Line, _ error) {
		var chosen []T
		var lines []Line
		for _, l := range f.Lines {
			if l.Refused == "" && only(l) {
				chosen, lines = append(chosen, byTarget[l.Target]), append(lines, l)
			}
		}
		for i, err := range do(ctx, chosen) {
			if err == nil {
				continue
			}
			e := answer.Of(err)
			if e.Code >= http.StatusInternalServerError {
				f.API.Log.Error("change not made", "do", f.Do, "target", lines[i].Target, "err", err)
			}
			undone = append(undone, Line{Target: lines[i].Target, Refused: e.Msg})
			if len(undone) == len(chosen) {
				return nil, err
			}
		}
		return undone, nil
	}
}
