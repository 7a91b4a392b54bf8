package web

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
)

//go:embed assets
var assets embed.FS

// page is the page for people, and the login to it.
type page struct {
	server *Server
	guard  *guard
	html   *template.Template
}

func newPage(s *Server, g *guard) *page {
	return &page{s, g, template.Must(template.ParseFS(assets, "assets/*.html"))}
}

// show answers with the page, or with the login when there is no session.
func (p *page) show(w http.ResponseWriter, r *http.Request) error {
	if !p.guard.hasSession(r) {
		return p.render(w, http.StatusOK, "login.html", "")
	}
	return p.page(w, r, http.StatusOK, p.formOf(r.URL.Query()))
}

// page answers with the page, with a form open when there is one.
func (p *page) page(w http.ResponseWriter, r *http.Request, code int, f *form) error {
	v := p.server.view(r.Context())
	if v.Form = f; f != nil {
		for _, pool := range p.server.Farm.Farm().Config.Pools {
			v.Form.Pools = append(v.Form.Pools, pool.Name)
		}
	}
	return p.render(w, code, "page.html", v)
}

// login begins a session for who knows the API token. The token is in the body
// of the POST alone.
func (p *page) login(w http.ResponseWriter, r *http.Request) error {
	if !p.guard.limit.allow(r) {
		w.Header().Set("Retry-After", "3")
		return p.render(w, http.StatusTooManyRequests, "login.html", "Too many attempts. Wait a few seconds.")
	}
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	if err := r.ParseForm(); err != nil {
		return p.render(w, http.StatusBadRequest, "login.html", "That was no login form.")
	}
	if !p.guard.token.matches(r.PostForm.Get("token")) {
		p.server.Log.Warn("login refused", "client", r.RemoteAddr)
		return p.render(w, http.StatusForbidden, "login.html", "That is not the token.")
	}
	http.SetCookie(w, p.guard.cookie(p.guard.sessions.begin(), int(sessionLife.Seconds())))
	p.server.Log.Info("login", "client", r.RemoteAddr)
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

// logout ends the session.
func (p *page) logout(w http.ResponseWriter, r *http.Request) error {
	if c, err := r.Cookie(p.guard.cookieName()); err == nil {
		p.guard.sessions.finish(c.Value)
	}
	http.SetCookie(w, p.guard.cookie("", -1))
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

// asset answers with a file that every visitor may have.
func (p *page) asset(name, contentType string) handler {
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

// render builds the whole answer first, so that a mistake in a template is a
// 500 and not half a page.
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
