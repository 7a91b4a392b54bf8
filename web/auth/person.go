package auth

import (
	"context"
	"errors"
	"net/http"
	"time"

	"drover/pools"
	"drover/web/answer"
	"drover/web/auth/oidc"
)

// person is a client without a token: with a certificate, or with a login at the provider. It
// has the role that the config gives its names now.
type person struct {
	kind  Kind
	name  string
	names []string  // of the certificate; of OIDC: its groups
	end   time.Time // zero: unknown
}

// of returns the client for a person.
func (g *Guard) of(r *http.Request, p *person) (Client, bool) {
	grants := g.Grants
	if p.kind == ByOIDC {
		grants = g.Groups
	}
	if grants == nil {
		return Client{}, false
	}
	role, ok := granted(grants(), p.names)
	return Client{Kind: p.kind, Name: p.name, Role: role.Role, Pools: role.Pools, Address: r.RemoteAddr}, ok
}

// BeginLogin sends a browser to the provider, and to next when it is back: path and query of
// this server.
func (g *Guard) BeginLogin(w http.ResponseWriter, r *http.Request, next string) error {
	if g.Provider == nil {
		return answer.NotFound("server.oidc is not set: log in with a token")
	}
	start, err := g.Provider.Begin(r.Context(), next)
	if err != nil {
		return err
	}
	http.SetCookie(w, start.Cookie)
	http.Redirect(w, r, start.URL, http.StatusSeeOther)
	return nil
}

// FinishLogin starts a session for a browser that comes back from the provider, and returns
// whose it is and where it goes next. Logins that fail are limited by address.
func (g *Guard) FinishLogin(w http.ResponseWriter, r *http.Request) (c Client, next string, err error) {
	if g.Provider == nil {
		return c, "", answer.NotFound("server.oidc is not set: log in with a token")
	}
	if g.refused.exceeded(r) {
		return c, "", &answer.Error{Code: http.StatusTooManyRequests, Msg: "Too many attempts. Wait a few seconds."}
	}
	http.SetCookie(w, g.Provider.Forget())
	who, next, err := g.Provider.Finish(context.WithoutCancel(r.Context()), r)
	if e, ok := errors.AsType[*oidc.Error](err); ok && e.Asked {
		g.refused.allow(r)
	}
	if err != nil {
		return c, "", err
	}
	p := person{kind: ByOIDC, name: who.Name}
	for _, group := range who.Groups {
		if _, ok := granted(g.Groups(), []string{group}); ok { // the others need not be kept
			p.names = append(p.names, group)
		}
	}
	c, ok := g.of(r, &p)
	if !ok || !c.Role.Includes(pools.RoleViewer) {
		return c, "", &answer.Error{Code: http.StatusForbidden, Name: answer.CodeForbidden, Msg: "No group of " + p.name + " has a role here that may see the page."}
	}
	g.begin(w, session{of: c.Principal(), person: &p})
	return c, next, nil
}
