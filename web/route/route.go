// Package route is the form of the table of the REST API: a [Route] for each method of each
// path, with its parameters, body, answer and role. [Handler] serves the routes of a table
// and checks requests by it; web/openapi documents it.
//
// The package does not know the routes, or how clients are authenticated.
package route

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"time"

	"drover/pools"
	"drover/web/answer"
	"drover/web/auth"
	"drover/web/compress"
	"drover/web/share"
)

// Route is a method of a path.
type Route struct {
	Method, Path string
	Summary      string // a sentence without its full stop
	Role         pools.Role

	// Secret marks an answer that the session of a browser is not enough for.
	Secret bool
	Query  []Parameter // further parameters of the query, besides dryRun
	// Body is a zero value of the type of the body; nil: there is none. Patch marks a
	// JSON merge patch (RFC 7386) of it.
	Body  any
	Patch bool
	// Conditional marks a path that takes If-Match, and answers with an ETag.
	Conditional bool

	// Watch marks a list whose changes can be watched: the parameter watch.
	Watch bool

	Status int   // of a good answer
	Answer any   // a zero value of its type; nil: it has no body
	Errors []int // further statuses, besides those that any request can have

	Handle answer.Handler
}

// Changes reports whether the route changes something.
func (r *Route) Changes() bool { return r.Method != http.MethodGet }

// Parameters returns all parameters of the query.
func (r *Route) Parameters() []Parameter {
	all := slices.Clip(r.Query)
	if r.Changes() {
		all = append(all, Parameter{Name: DryRun, About: "check the request, and change nothing", Kind: Bool})
	}
	if r.Watch {
		all = append(all, Parameter{Name: watch, About: "the list and then its changes, as server-sent events", Kind: Bool})
	}
	return all
}

// watch is the parameter that asks for the changes of a list.
const watch = "watch"

// IsWatch reports whether a request is for the changes of a list.
func IsWatch(r *http.Request) bool {
	only, _ := strconv.ParseBool(r.URL.Query().Get(watch))
	return only
}

// DryRun is the parameter that asks a request which changes something to check the change
// alone.
const DryRun = "dryRun"

// IsDryRun reports whether a request must not change anything.
func IsDryRun(r *http.Request) bool {
	only, _ := strconv.ParseBool(r.URL.Query().Get(DryRun))
	return only
}

// Kind is the form of a parameter.
type Kind int

// The kinds of parameters.
const (
	Text  Kind = iota
	Bool       // true or false
	Count      // a number from 1 to Max
	Time       // as of RFC 3339
	Word       // one of Words
)

// Parameter is a parameter of the query.
type Parameter struct {
	Name, About string
	Kind        Kind
	Max         int
	Words       []string
}

// check returns an error for a value that is not of the kind. Empty is as if it were not
// there, but for a Bool: "?dryRun" must not make the change.
func (p *Parameter) check(s string) error {
	switch {
	case s == "" && p.Kind == Bool:
		return answer.BadParameter(p.Name, "write "+p.Name+"=true, or leave it out", "%s has no value: want true or false", p.Name)
	case s == "":
	case p.Kind == Bool && s != "true" && s != "false":
		return answer.BadParameter(p.Name, "write true or false", "%s %q: want true or false", p.Name, s)
	case p.Kind == Count:
		if n, err := strconv.Atoi(s); err != nil || n < 1 || n > p.Max {
			return answer.BadParameter(p.Name, "", "%s %q: want a number from 1 to %d", p.Name, s, p.Max)
		}
	case p.Kind == Time:
		if _, err := time.Parse(time.RFC3339, s); err != nil {
			return answer.BadParameter(p.Name, "write 2026-11-20T12:00:00Z", "%s %q: want a time such as 2026-11-20T12:00:00Z", p.Name, s)
		}
	case p.Kind == Word && !slices.Contains(p.Words, s):
		return answer.BadParameter(p.Name, "", "%s %q: want one of %q", p.Name, s, p.Words)
	}
	return nil
}

// Handler returns the handler for the routes of a table. It answers 404 and 405 for other
// requests.
func Handler(log *slog.Logger, table []Route) http.Handler {
	lists := &share.Limit{Most: maxLists}
	paths := map[string]answer.Methods{}
	for i := range table {
		r := &table[i]
		if paths[r.Path] == nil {
			paths[r.Path] = answer.Methods{}
		}
		paths[r.Path][r.Method] = func(w http.ResponseWriter, req *http.Request) error { return r.serve(w, req, lists) }
	}
	mux := http.NewServeMux()
	for path, methods := range paths {
		mux.Handle(path, answer.By(log, methods))
	}
	mux.Handle("/", answer.By(log, nil))
	return mux
}

// Lists under way, which can take tens of megabytes each until a client has read them.
const (
	maxLists     = 32
	maxListsEach = 8 // of a principal

	listPatience = 10 * time.Second // until there is a place
)

// isList reports whether the answer is a list, which can be long.
func (r *Route) isList() bool {
	return !r.Changes() && r.Answer != nil && reflect.TypeOf(r.Answer).Kind() == reflect.Slice
}

// serve checks a request by the table, and then handles it.
func (r *Route) serve(w http.ResponseWriter, req *http.Request, lists *share.Limit) error {
	client, ok := auth.ClientOf(req)
	if !ok || client.Session && (r.Changes() || r.Secret) {
		return auth.ErrNoToken
	}
	if err := client.Needs(r.Role); err != nil {
		return err
	}
	if err := r.checkQuery(req.URL.RawQuery); err != nil {
		return err
	}
	if req.Header.Values("If-Match") != nil && !r.Conditional {
		return answer.BadParameter("If-Match", "leave it out", "%s %s takes no If-Match", r.Method, r.Path)
	}
	if r.isList() && !IsWatch(req) {
		ctx, cancel := context.WithTimeout(req.Context(), listPatience)
		defer cancel()
		release, ok := lists.Wait(ctx, share.Share{Client: client.Principal(), Most: maxListsEach})
		if !ok {
			w.Header().Set("Retry-After", "5")
			return &answer.Error{Code: http.StatusServiceUnavailable, Msg: "too many lists at a time", Remedy: "read the answers faster, or in pages (limit)"}
		}
		defer release()
	}
	if !r.Secret && !r.Changes() && !IsWatch(req) {
		var end func()
		w, end = compress.Writer(w, req)
		defer end()
	}
	return r.Handle(w, req)
}

// checkQuery returns an error for a query with a parameter that is not known, that is there
// twice, or whose value is wrong.
func (r *Route) checkQuery(raw string) error {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return answer.BadRequest("the query is not one: %v", err)
	}
	known := map[string]Parameter{}
	var names []string
	for _, p := range r.Parameters() {
		known[p.Name], names = p, append(names, p.Name)
	}
	for key, values := range query {
		p, ok := known[key]
		switch {
		case !ok:
			return answer.BadParameter(key, "", "unknown parameter %q (there are %q)", key, names)
		case len(values) > 1:
			return answer.BadParameter(key, "send it once", "parameter %q is there %d times", key, len(values))
		}
		if err := p.check(values[0]); err != nil {
			return err
		}
	}
	return nil
}
