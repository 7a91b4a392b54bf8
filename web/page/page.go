// Package page is the page for operators: the machines and their state, the inbox of
// unknown machines, and the forms that add, remove and switch machines.
//
// It shows the data of package api, and changes them through [api.API], as the role of the
// session's token allows. Browsers send the cookie of a session only with requests of the
// page itself. The page escapes and shortens the texts of unknown machines, and shows only
// the last few machines.
//
// The package does not know how sessions and tokens are checked, or how a change is
// stored.
package page

import (
	"bytes"
	"embed"
	"html/template"
	"log/slog"
	"net/http"

	"drover/pools"
	"drover/pools/lograte"
	"drover/web/answer"
	"drover/web/api"
	"drover/web/auth"
)

//go:embed assets
var assets embed.FS

// page handles the requests of the page.
type page struct {
	api   *api.API
	guard *auth.Guard
	html  *template.Template
	lines *lograte.Limiter // of refused logins
}

// Handler returns the handler for the page, its forms and its login.
func Handler(a *api.API, g *auth.Guard) http.Handler {
	p := &page{a, g, template.Must(template.ParseFS(assets, "assets/*.html")), &lograte.Limiter{Log: a.Log}}
	mux := http.NewServeMux()
	mux.Handle("/login", answer.By(a.Log, answer.Methods{"POST": p.login}))
	mux.Handle("/logout", answer.By(a.Log, answer.Methods{"POST": p.logout}))
	mux.Handle("/add", answer.By(a.Log, answer.Methods{"POST": p.add}))
	mux.Handle("/power", answer.By(a.Log, answer.Methods{"POST": p.power}))
	mux.Handle("/forget", answer.By(a.Log, answer.Methods{"POST": p.forget}))
	mux.Handle("/style.css", answer.By(a.Log, answer.Methods{"GET": p.asset("style.css", "text/css; charset=utf-8")}))
	mux.Handle("/page.js", answer.By(a.Log, answer.Methods{"GET": p.asset("page.js", "text/javascript; charset=utf-8")}))
	mux.Handle("/{$}", answer.By(a.Log, answer.Methods{"GET": p.show}))
	mux.Handle("/", answer.By(a.Log, nil))
	return mux
}

// show answers with the page, or with the login when there is no session.
func (p *page) show(w http.ResponseWriter, r *http.Request) error {
	client, ok := p.guard.Session(r)
	switch {
	case !ok:
		return p.render(w, http.StatusOK, "login.html", "")
	case !client.Role.Includes(pools.RoleOperator):
		return p.page(w, r, http.StatusOK, nil)
	}
	return p.page(w, r, http.StatusOK, p.formOf(r.URL.Query()))
}

// page answers with the page, with the form f open unless it is nil.
func (p *page) page(w http.ResponseWriter, r *http.Request, code int, f *form) error {
	v := p.view(r.Context())
	if client, ok := p.guard.Session(r); ok {
		v.Changes = client.Role.Includes(pools.RoleOperator)
	}
	if v.Form = f; f != nil {
		for _, pool := range p.api.Farm.Farm().Config.Pools {
			v.Form.Pools = append(v.Form.Pools, pool.Name)
		}
	}
	return p.render(w, code, "page.html", v)
}

// login starts a session for a client that sends a token, in the body of the POST
// only.
func (p *page) login(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	if err := r.ParseForm(); err != nil {
		return p.render(w, http.StatusBadRequest, "login.html", "That was no login form.")
	}
	if err := p.guard.Login(w, r, r.PostForm.Get("token")); err != nil {
		e := answer.Of(err)
		if e.Code == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "3")
		} else if p.lines.Allow(slog.LevelWarn, "login refused") {
			p.api.Log.Warn("login refused", "client", r.RemoteAddr)
		}
		return p.render(w, e.Code, "login.html", e.Msg)
	}
	p.api.Log.Info("login", "client", r.RemoteAddr)
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

// logout ends the session.
func (p *page) logout(w http.ResponseWriter, r *http.Request) error {
	p.guard.Logout(w, r)
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

// asset returns a handler that answers with an embedded file. It needs no session.
func (p *page) asset(name, contentType string) answer.Handler {
	return func(w http.ResponseWriter, _ *http.Request) error {
		data, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(data) // the client is gone
		return nil
	}
}

// render executes a template and writes the answer. It executes the whole template
// first, so that an error becomes a 500 and not half a page.
func (p *page) render(w http.ResponseWriter, code int, name string, data any) error {
	var b bytes.Buffer
	if err := p.html.ExecuteTemplate(&b, name, data); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = b.WriteTo(w) // the client is gone
	return nil
}
