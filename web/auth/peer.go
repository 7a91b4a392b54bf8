package auth

import (
	"context"
	"net/http"

	"drover/pools"
)

// Peer is a process of this host that has connected by the unix socket. All have one role:
// the permissions of the socket say who connects.
type Peer struct {
	Name string // of its user
	Role pools.Role
}

type peerKey struct{}

// WithPeer returns a context for the requests of a connection by the socket.
func WithPeer(ctx context.Context, p Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

// peer returns the client of a request by the socket that sends no token. One that sends a
// token has that of the token, or none.
func (g *Guard) peer(r *http.Request) (Client, bool) {
	p, ok := r.Context().Value(peerKey{}).(Peer)
	if !ok || r.Header.Get("Authorization") != "" {
		return Client{}, false
	}
	return Client{Kind: BySocket, Name: p.Name, Role: p.Role, Address: "this host"}, true
}
