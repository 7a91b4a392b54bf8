package auth

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"drover/pools"
	"drover/web/answer"
)

// Kind is by what a client is known.
type Kind string

// The kinds of clients.
const (
	ByToken  Kind = "" // also with a session that began with one
	BySocket Kind = "socket"

	ByCertificate Kind = "certificate"
	ByOIDC        Kind = "oidc" // a login at the provider; also the session
)

// Client is the sender of a request.
type Client struct {
	Kind    Kind
	Name    string // of its token, its user, or the person; empty: it has the server's own token
	Role    pools.Role
	Pools   []string // whose nodes it may change; empty: all
	Session bool     // it is a browser
	Address string   // address:port
}

// String returns the client for the audit: "token ci from 10.0.0.5:1234".
func (c Client) String() string {
	kind := cmp.Or(string(c.Kind), "token")
	if c.Session && c.Kind == ByToken {
		kind = "page"
	}
	if c.Name != "" {
		kind += " " + c.Name
	}
	return kind + " from " + c.Address
}

// Needs returns an error with status 403 if the client's role does not include role.
func (c Client) Needs(role pools.Role) error {
	if c.Role.Includes(role) {
		return nil
	}
	return &answer.Error{
		Code: http.StatusForbidden, Name: answer.CodeForbidden, Remedy: fmt.Sprintf("use a token with the role %s", role),
		Msg: fmt.Sprintf("this needs the role %s, and the %s has the role %s", role, cmp.Or(c.Kind, "token"), c.Role),
	}
}

// Principal returns whom a share of what there is for all counts for: the token, the person, or
// the user of the socket. It is the same for all of its sessions and connections.
func (c Client) Principal() string { return string(c.Kind) + " " + c.Name }

// SeesSecrets reports whether the client may read what can be secret: an admin who is no
// browser.
func (c Client) SeesSecrets() bool { return !c.Session && c.Role.Includes(pools.RoleAdmin) }

// Limited reports whether the client may change the nodes of some pools only.
func (c Client) Limited() bool { return len(c.Pools) > 0 }

// May returns an error with status 403 if the client must not change the nodes of a pool.
// The empty pool is that of a machine without one.
func (c Client) May(pool string) error {
	if !c.Limited() || slices.Contains(c.Pools, pool) {
		return nil
	}
	return &answer.Error{
		Code: http.StatusForbidden, Name: answer.CodeForbidden, Remedy: "use a token or a login for that pool",
		Msg: fmt.Sprintf("%s %q is for machines of the pools %q, and not for those of %q", cmp.Or(c.Kind, "token"), c.Name, c.Pools, pool),
	}
}

// clientKey is the key of an [authenticated] client in the context of its request.
type clientKey struct{}

// authenticated is a client with its guard.
type authenticated struct {
	Client
	guard *Guard
}

// ClientOf returns the client of a request that [Guard.API] has passed on.
func ClientOf(r *http.Request) (Client, bool) {
	a, ok := r.Context().Value(clientKey{}).(authenticated)
	return a.Client, ok
}

// InForce reports whether the client of a long request would be let in again, as it was when
// the request began.
func InForce(r *http.Request) bool {
	a, ok := r.Context().Value(clientKey{}).(authenticated)
	if !ok {
		return false
	}
	now, ok := a.guard.Client(r)
	return ok && now.Role == a.Role && now.Session == a.Session
}
