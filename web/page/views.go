package page

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"drover/pools"
	"drover/web/answer"
	"drover/web/auth"
	"drover/web/page/table"
)

// view is one kind of page.
type view struct {
	path     string // "/nodes"; a name follows it if named
	named    bool
	title    string // in the navigation; empty: it is not there
	template string
	poll     time.Duration // the page refreshes so often
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

// The intervals of refreshing. What changes with each step of a boot is asked for within a
// second.
const (
	liveEvery = 500 * time.Millisecond // one machine
	listEvery = 2 * time.Second
	slowEvery = 5 * time.Second
)

// allViews returns the views in the order of the navigation.
func (p *page) allViews() []*view {
	return []*view{
		{path: "/", title: "Overview", template: "overview", poll: listEvery, content: p.overview},
		{path: "/nodes", title: "Nodes", template: "list", poll: listEvery, content: p.nodes},
		{path: "/nodes", named: true, template: "node", poll: liveEvery, content: p.node},
		{path: "/unknown", title: "Unknown", template: "list", poll: listEvery, content: p.unknown},
		{path: "/pools", title: "Pools", template: "list", poll: slowEvery, content: p.pools},
		{path: "/tags", title: "Tags", template: "list", poll: slowEvery, content: p.tags},
		{path: "/clusters", title: "Clusters", template: "list", poll: slowEvery, content: p.clusters},
		{path: "/images", title: "Images", template: "list", poll: slowEvery, content: p.images},
		{path: "/chassis", title: "Chassis", template: "chassis", poll: slowEvery, content: p.chassis},
		{path: "/leases", title: "Leases", template: "list", poll: listEvery, content: p.leases},
		{path: "/power", title: "Power", template: "list", poll: listEvery, content: p.power},
		{path: "/audit", title: "Audit", template: "list", poll: slowEvery, content: p.audit},
		{path: "/config", title: "Config", template: "config", poll: slowEvery, content: p.config},
	}
}

// request is what the content of a page is made from.
type request struct {
	*shared
	path   string
	name   string // of a named view
	query  url.Values
	client auth.Client
}

// mayChange reports whether the client may change anything.
func (r *request) mayChange() bool { return r.client.Role.Includes(pools.RoleOperator) }

// may reports whether the client may change the machines of a pool.
func (r *request) may(pool string) bool { return r.mayChange() && r.client.May(pool) == nil }

// frame is what all pages have around their content.
type frame struct {
	Title   string
	Nav     []navItem
	Poll    int64 // milliseconds; 0: the page does not refresh
	Client  string
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
		if !ok {
			return p.login.Ask(w, r, http.StatusOK, "")
		}
		snap := p.snapshot()
		body, err := snap.rendered(keyOf(r, client), func() ([]byte, error) {
			req := &request{snap, r.URL.Path, r.PathValue("name"), r.URL.Query(), client}
			content, err := v.content(req)
			if err != nil {
				return nil, err
			}
			return p.execute(v.template, p.frame(req, v, content))
		})
		if err != nil {
			return p.fail(w, r, client, err)
		}
		tag := tagOf(body)
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
		write(w, http.StatusOK, body)
		return nil
	}
}

// keyOf returns what a rendered page depends on beside the snapshot.
func keyOf(r *http.Request, c auth.Client) string {
	return fmt.Sprintf("%q %q %q %s?%s", c.Name, c.Role, c.Pools, r.URL.Path, r.URL.RawQuery)
}

// titled is a content with a title of its own.
type titled interface{ title() string }

func (p *page) frame(r *request, v *view, content any) frame {
	f := frame{
		Title: v.title, Poll: v.poll.Milliseconds(), Client: string(r.client.Role), Farm: r.Farm.Source, Version: p.api.Version,
		Find: r.path != "/nodes", Content: content,
	}
	if r.client.Name != "" {
		f.Client = r.client.Name + ", " + f.Client
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
			item.N = len(r.Unknowns)
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
	req := &request{shared: p.snapshot(), path: r.URL.Path, client: client}
	f := p.frame(req, &view{title: http.StatusText(e.Code)}, failure{e.Code, e.Msg})
	f.Poll = 0
	return p.render(w, e.Code, "failure", f)
}

// maxText bounds a text that comes from elsewhere, in bytes.
const maxText = 300
