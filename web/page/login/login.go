// Package login is the way into the page for operators: with a token of the API, the
// browser's certificate, or by a provider of OpenID Connect.
//
// The package does not know how sessions are checked, or how a template becomes an answer.
package login

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"drover/internal/lograte"
	"drover/web/answer"
	"drover/web/auth"
	"drover/web/auth/oidc"
)

// providerPath leads to the provider of OpenID Connect. It is a link and not a form, because
// the page's forms lead to the page alone (Content-Security-Policy).
const providerPath = "/login/oidc"

// form is the content of the login.
type form struct {
	Error       string
	Next        string // where to go after it: path and query of this server
	Provider    string // host of the provider; empty: there is none
	Certificate string // who the browser's certificate is of; empty: it has none with a role
}

// Login handles the requests that begin and end sessions. The fields must be set.
type Login struct {
	Guard  *auth.Guard
	Log    *slog.Logger
	Lines  *lograte.Limiter // of refused logins
	Render func(w http.ResponseWriter, code int, template string, data any) error
}

// Routes adds the paths of the login.
func (l *Login) Routes(mux *http.ServeMux) {
	for path, methods := range map[string]answer.Methods{
		"/login": {"POST": l.login}, providerPath: {"GET": l.toProvider}, oidc.CallbackPath: {"GET": l.fromProvider}, "/logout": {"POST": l.logout},
	} {
		mux.Handle(path, answer.By(l.Log, methods))
	}
}

// Ask answers with the login, with a problem if there is one. After it the browser goes to what
// it has asked for, if that was a view.
func (l *Login) Ask(w http.ResponseWriter, r *http.Request, code int, problem string) error {
	form := form{Error: problem}
	if r.Method == http.MethodGet {
		form.Next = localPath(r.URL.RequestURI())
	}
	return l.ask(w, r, code, form)
}

func (l *Login) ask(w http.ResponseWriter, r *http.Request, code int, f form) error {
	if provider := l.Guard.Provider; provider != nil {
		f.Provider = provider.Host()
	}
	if c, ok := l.Guard.Certified(r); ok {
		f.Certificate = c.Name
	}
	return l.Render(w, code, "login", f)
}

// login starts a session for a client that sends a token, in the body of the POST only, or
// says that its certificate counts.
func (l *Login) login(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	if err := r.ParseForm(); err != nil {
		return l.ask(w, r, http.StatusBadRequest, form{Error: "That was no login form."})
	}
	next := localPath(r.PostForm.Get("next"))
	var client auth.Client
	var err error
	if r.PostForm.Get("with") == "certificate" {
		client, err = l.Guard.LoginCertified(w, r)
	} else {
		client, err = l.Guard.Login(w, r, r.PostForm.Get("token"))
	}
	if err != nil {
		return l.refused(w, r, next, err)
	}
	l.Log.Info("login", "client", client.String())
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}

// toProvider sends the browser to the provider.
func (l *Login) toProvider(w http.ResponseWriter, r *http.Request) error {
	next := localPath(r.URL.Query().Get("next"))
	if err := l.Guard.BeginLogin(w, r, next); err != nil {
		return l.refused(w, r, next, err)
	}
	return nil
}

// fromProvider starts a session for a browser that the provider sends back. It answers with a
// page that goes on, and not with a redirect: browsers send the strict cookie of the session
// only with what a page of this server asks for.
func (l *Login) fromProvider(w http.ResponseWriter, r *http.Request) error {
	client, next, err := l.Guard.FinishLogin(w, r)
	if err != nil {
		return l.refused(w, r, "/", err)
	}
	l.Log.Info("login", "client", client.String())
	return l.Render(w, http.StatusOK, "arrived", form{Next: localPath(next)})
}

// refused answers with the login and the reason why one failed.
func (l *Login) refused(w http.ResponseWriter, r *http.Request, next string, err error) error {
	e := answer.Of(err)
	if e.Code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "3")
	} else if l.Lines.Allow(slog.LevelWarn, "login refused") {
		l.Log.Warn("login refused", "client", r.RemoteAddr, "err", err)
	}
	return l.ask(w, r, e.Code, form{Error: e.Msg, Next: next})
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
func (l *Login) logout(w http.ResponseWriter, r *http.Request) error {
	l.Guard.Logout(w, r)
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}
