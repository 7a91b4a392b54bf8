package page

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"drover/internal/wait"
	"drover/pools"
	"drover/web/answer"
	"drover/web/auth"
	"drover/web/page/snapshot"
	"drover/web/page/table"
	"drover/web/share"
	"drover/web/watch"
)

// view is one kind of page.
type view struct {
	path     string // "/nodes"; a name follows it if named
	named    bool
	title    string // in the navigation; empty: it is not there
	template string
	every    time.Duration // the page refreshes at most so often; 0: never
	content  func(*request) (any, error)
}

func (v *view) pattern() string {
	switch {
	case v.named:
		return v.path + "/{name}"
	case v.path == "/":
		return "/{$}"
	}
	return v.path
}

// The intervals of refreshing. What changes with each step of a boot is shown within a second.
const (
	liveEvery = 500 * time.Millisecond // one machine
	listEvery = 2 * time.Second
	slowEvery = 5 * time.Second
)

// allViews returns the views in the order of the navigation.
func (p *page) allViews() []*view {
	return []*view{
		{path: "/", title: "Overview", template: "overview", every: listEvery, content: p.overview},
		{path: "/nodes", title: "Nodes", template: "list", every: listEvery, content: p.nodes},
		{path: "/nodes", named: true, template: "node", every: liveEvery, content: p.node},
		{path: "/unknown", title: "Unknown", template: "list", every: listEvery, content: p.unknown},
		{path: "/pools", title: "Pools", template: "list", every: slowEvery, content: p.pools},
		{path: "/tags", title: "Tags", template: "list", every: slowEvery, content: p.tags},
		{path: "/clusters", title: "Clusters", template: "list", every: slowEvery, content: p.clusters},
		{path: "/images", title: "Images", template: "list", every: slowEvery, content: p.images},
		{path: "/chassis", title: "Chassis", template: "chassis", every: slowEvery, content: p.chassis},
		{path: "/leases", title: "Leases", template: "list", every: listEvery, content: p.leases},
		{path: "/power", title: "Power", template: "list", every: listEvery, content: p.power},
		{path: "/audit", title: "Audit", template: "list", every: slowEvery, content: p.audit},
		{path: "/config", title: "Config", template: "config", every: slowEvery, content: p.config},
	}
}

// request is what the content of a page is made from.
type request struct {
	shared *snapshot.Shared
	path   string
	name   string // of a named view
	query  url.Values
	client auth.Client
	pace   *wait.Pace // of rendering; nil: it is not awaited in turn
}

// pools returns the pools that the client may see, in the order of the config.
func (r *request) pools() (all []*pools.Pool) {
	for i := range r.shared.Farm.Config.Pools {
		if p := &r.shared.Farm.Config.Pools[i]; r.client.May(p.Name) == nil {
			all = append(all, p)
		}
	}
	return all
}

// mayChange reports whether the client may change anything.
func (r *request) mayChange() bool { return r.client.Role.Includes(pools.RoleOperator) }

// may reports whether the client may change the machines of a pool.
func (r *request) may(pool string) bool { return r.mayChange() && r.client.May(pool) == nil }

// frame is what all pages have around their content.
type frame struct {
	Title   string
	Nav     []navItem
	Every   int64  // milliseconds: the page refreshes at most so often; 0: never
	Stream  string // URL of its stream
	Client  any    // the reader's name and role, or [snapshot.ReaderMark]
	Farm    string // name of the config file
	Version string
	Find    bool // it has a search of nodes; the list of nodes has its own
	Content any
}

// navItem is a link of the navigation.
type navItem struct {
	Title, Path string
	Current     bool
	N           int // shown beside it; 0: nothing
}

// show returns the handler of a view.
func (p *page) show(v *view) answer.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		client, ok := p.guard.Session(r)
		switch {
		case !ok && r.Header.Get("HX-Request") != "":
			w.Header().Set("HX-Refresh", "true") // htmx loads the page again, and so the login
			return nil
		case !ok:
			return p.login.Ask(w, r, http.StatusOK, "")
		}
		content, err := p.rendered(v, r, client)
		if err != nil {
			return p.fail(w, r, client, err)
		}
		tag := content.Tag(reader(client))
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
		begin(w, http.StatusOK)
		_ = content.For(reader(client), w) // the client is gone
		return nil
	}
}

// rendered returns a view as all with a client's rights see it now.
func (p *page) rendered(v *view, r *http.Request, client auth.Client) (*snapshot.Page, error) {
	snap := p.cache.Get(client)
	path := strings.TrimPrefix(r.URL.Path, streamPath)
	key := fmt.Sprintf("%q %q %s?%s", client.Role, client.Pools, path, r.URL.RawQuery)
	return snap.Rendered(key, func(pace *wait.Pace) ([]byte, error) {
		rights := auth.Client{Role: client.Role, Pools: client.Pools}
		req := &request{snap, path, r.PathValue("name"), r.URL.Query(), rights, pace}
		content, err := v.content(req)
		if err != nil {
			return nil, err
		}
		f := p.frame(req, v, content)
		f.Client, f.Every = snapshot.ReaderMark, v.every.Milliseconds()
		f.Stream = (&url.URL{Path: streamPath + path, RawQuery: r.URL.RawQuery}).String()
		return p.execute(v.template, f, pace)
	})
}

// streamPath is in front of the path of a view for its stream.
const streamPath = "/events"

// The limits of streams, of open pages that somebody sees. A browser has at most six connections
// to a server, and needs some for the rest.
const (
	maxStreams     = 256
	maxStreamsEach = 224 // of a principal
	maxStreamsHere = 4   // of a session
)

// stream returns the handler of the stream of a view, which tells its page when to ask for it
// again. It has nothing else of the view.
func (p *page) stream(v *view) answer.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		client, ok := p.guard.Session(r)
		switch {
		case !ok && r.Header.Get("HX-Request") != "":
			watch.Changed(w) // its page asks, and becomes the login
			return nil
		case !ok:
			return auth.ErrNoToken
		}
		s := watch.Revisions{Limit: &p.limit, Every: v.every, Of: []share.Share{
			{Client: client.Principal(), Most: maxStreamsEach}, {Client: "session " + p.guard.SessionID(r), Most: maxStreamsHere},
		}}
		s.Look = func() (string, bool) {
			client, ok := p.guard.Session(r)
			if !ok {
				return "", false
			}
			content, err := p.rendered(v, r, client)
			if err != nil {
				return strconv.Itoa(answer.Of(err).Code), true // the page gets the error itself
			}
			return content.Tag(reader(client)), true
		}
		return s.Serve(w, r)
	}
}

// reader returns who reads a page, as each of its pages says.
func reader(c auth.Client) string {
	if c.Name == "" {
		return string(c.Role)
	}
	return c.Name + ", " + string(c.Role)
}

// titled is a content with a title of its own.
type titled interface{ title() string }

func (p *page) frame(r *request, v *view, content any) frame {
	f := frame{
		Title: v.title, Client: reader(r.client), Farm: r.shared.Farm.Source, Version: p.api.Version,
		Find: r.path != "/nodes", Content: content,
	}
	switch c := content.(type) {
	case titled:
		f.Title = c.title()
	case table.Table:
		f.Title = c.Name
	}
	for _, other := range p.views {
		if other.title == "" {
			continue
		}
		item := navItem{Title: other.title, Path: other.path, Current: other.path == v.path}
		if other.path == "/unknown" {
			item.N = len(r.shared.Unknowns)
		}
		f.Nav = append(f.Nav, item)
	}
	return f
}

// failure is the content of a page in place of an error.
type failure struct {
	Code int
	Msg  string
}

// fail answers with an error as a page.
func (p *page) fail(w http.ResponseWriter, r *http.Request, client auth.Client, err error) error {
	e := answer.Of(err)
	if e.Code >= http.StatusInternalServerError {
		p.api.Log.Error("page not served", "path", r.URL.Path, "err", err)
	}
	req := &request{shared: p.cache.Get(client), path: r.URL.Path, client: client}
	return p.render(w, e.Code, "failure", p.frame(req, &view{title: http.StatusText(e.Code)}, failure{e.Code, e.Msg}))
}

// maxText bounds a text that comes from elsewhere, in bytes.
const maxText = 300
