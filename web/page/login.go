package page

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"drover/web/answer"
	"drover/web/auth"
)

// providerPath leads to the provider of OpenID Connect. It is a link and not a form, because
// the page's forms lead to the page alone (Content-Security-Policy).
const providerPath = "/login/oidc"

// loginForm is the content of the login.
type loginForm struct {
	Error       string
	Next        string // where to go after it: path and query of this server
	Provider    string // host of the provider; empty: there is none
	Certificate string // who the browser's certificate is of; empty: it has none with a role
}

// askLogin answers with the login.
func (p *page) askLogin(w http.ResponseWriter, r *http.Request, code int, form loginForm) error {
	if provider := p.guard.Provider; provider != nil {
		form.Provider = provider.Host()
	}
	if c, ok := p.guard.Certified(r); ok {
		form.Certificate = c.Name
	}
	return p.render(w, code, "login", form)
}

// login starts a session for a client that sends a token, in the body of the POST only, or
// says that its certificate counts.
func (p *page) login(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	if err := r.ParseForm(); err != nil {
		return p.askLogin(w, r, http.StatusBadRequest, loginForm{Error: "That was no login form."})
	}
	next := localPath(r.PostForm.Get("next"))
	var client auth.Client
	var err error
	if r.PostForm.Get("with") == "certificate" {
		client, err = p.guard.LoginCertified(w, r)
	} else {
		client, err = p.guard.Login(w, r, r.PostForm.Get("token"))
	}
	if err != nil {
		return p.loginRefused(w, r, next, err)
	}
	p.api.Log.Info("login", "client", client.String())
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}

// toProvider sends the browser to the provider.
func (p *page) toProvider(w http.ResponseWriter, r *http.Request) error {
	next := localPath(r.URL.Query().Get("next"))
	if err := p.guard.BeginLogin(w, r, next); err != nil {
		return p.loginRefused(w, r, next, err)
	}
	return nil
}

// fromProvider starts a session for a browser that the provider sends back. It answers with a
// page that goes on, and not with a redirect: browsers send the strict cookie of the session
// only with what a page of this server asks for.
func (p *page) fromProvider(w http.ResponseWriter, r *http.Request) error {
	client, next, err := p.guard.FinishLogin(w, r)
	if err != nil {
		return p.loginRefused(w, r, "/", err)
	}
	p.api.Log.Info("login", "client", client.String())
	return p.render(w, http.StatusOK, "arrived", loginForm{Next: localPath(next)})
}

// loginRefused answers with the login and the reason why one failed.
func (p *page) loginRefused(w http.ResponseWriter, r *http.Request, next string, err error) error {
	e := answer.Of(err)
	if e.Code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "3")
	} else if p.lines.Allow(slog.LevelWarn, "login refused") {
		p.api.Log.Warn("login refused", "client", r.RemoteAddr, "err", err)
	}
	return p.askLogin(w, r, e.Code, loginForm{Error: e.Msg, Next: next})
}

// localPath returns path and query of a reference to this server; "/" for others.
func localPath(ref string) string {
	u, err := url.Parse(ref)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(u.Path, "//") || strings.Contains(ref, `\`) {
		return "/"
	}
	return (&url.URL{Path: u.Path, RawQuery: u.RawQuery}).String()
}

// logout ends the session.
func (p *page) logout(w http.ResponseWriter, r *http.Request) error {
	p.guard.Logout(w, r)
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}
