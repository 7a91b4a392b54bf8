// Package page is the page for operators: an overview, lists of everything that the server
// knows, one view for each machine, and forms that change and switch machines.
//
// It shows the data of package api, and changes them through [api.API], as the role of the
// session's token allows. Filters, order and place in a list are in the URL. Browsers send
// the cookie of a session only with requests of the page itself. Without JavaScript
// everything works, and nothing refreshes. With it each open page has a stream that tells when it
// has changed (see [page.stream]); htmx then asks for the page again (package asset).
//
// Machines, clusters and chassis send some of the texts. Templates escape them, views
// shorten them, and what is left of them that does not print is replaced in the whole page
// (see [page.render]). Contents of files, scripts and environments, which may be secret, are
// not shown.
//
// Many open pages cost little: views read one snapshot of all machines, and a view that
// several pages show is rendered once for a snapshot, for all with the same rights
// ([snapshot.Cache]). So views know a reader's rights, and not the name.
//
// The package does not know how sessions and tokens are checked, or how a change is
// stored.
package page

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"sync"

	"drover/internal/lograte"
	"drover/internal/printable"
	"drover/internal/wait"
	"drover/pools"
	"drover/pools/config"
	"drover/web/answer"
	"drover/web/api"
	"drover/web/auth"
	"drover/web/page/login"
	"drover/web/page/snapshot"
	"drover/web/share"
)

//go:embed templates
var templates embed.FS

// Sources are what the page shows beside the data of the API. A part whose function is nil
// is left out.
type Sources struct {
	// Explain returns what a machine would get if it asked now.
	Explain func(mac pools.MAC) Explanation
	// Config returns the state of the config file.
	Config func() config.Status
	// Console returns the lines that the kernel of a machine has sent in a boot; listening is
	// false if this server receives none.
	Console func(mac pools.MAC, boot string) (lines []ConsoleLine, listening bool)
}

// page handles the requests of the page.
type page struct {
	Sources
	api   *api.API
	guard *auth.Guard
	html  *template.Template
	login *login.Login
	views []*view
	cache snapshot.Cache
	limit share.Limit // of streams
}

// Handler returns the handler for the page, its forms and its login.
func Handler(a *api.API, g *auth.Guard, s Sources) http.Handler {
	p := &page{
		Sources: s, api: a, guard: g, html: template.Must(template.New("").Funcs(cellFuncs).ParseFS(templates, "templates/*.html")),
		cache: snapshot.Cache{API: a}, limit: share.Limit{Most: maxStreams},
	}
	p.login = &login.Login{Guard: g, Log: a.Log, Lines: &lograte.Limiter{Log: a.Log}, Render: p.render}
	p.views = p.allViews()
	mux := http.NewServeMux()
	p.login.Routes(mux)
	for _, v := range p.views {
		mux.Handle(v.pattern(), answer.By(a.Log, answer.Methods{"GET": p.show(v)}))
		mux.Handle(streamPath+v.pattern(), answer.By(a.Log, answer.Methods{"GET": p.stream(v)}))
	}
	mux.Handle(changePath, answer.By(a.Log, answer.Methods{"GET": p.openChange, "POST": p.postChange}))
	for path, file := range assetHandlers() {
		mux.Handle(path, answer.By(a.Log, answer.Methods{"GET": file}))
	}
	mux.Handle("/", answer.By(a.Log, nil))
	return mux
}

// buffers are idle ones, for the results of templates.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// render executes a template and writes the answer.
func (p *page) render(w http.ResponseWriter, code int, name string, data any) error {
	body, err := p.execute(name, data, nil)
	if err != nil {
		return err
	}
	begin(w, code)
	_, _ = w.Write(body) // the client is gone
	return nil
}

// execute returns the result of a template, without characters that do not print. It
// executes the whole template first, so that an error becomes a 500 and not half a page.
func (p *page) execute(name string, data any, pace *wait.Pace) ([]byte, error) {
	b := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(b)
	b.Reset()
	if err := p.html.ExecuteTemplate(wait.Writer{To: b, Pace: pace}, name, data); err != nil {
		return nil, err
	}
	out := bytes.NewBuffer(make([]byte, 0, b.Len()))
	_, err := printable.Writer{To: out}.Write(b.Bytes())
	return out.Bytes(), err
}

// begin writes the header of a page.
func begin(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
}
