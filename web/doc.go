// Package web is the listener for people and their tools: the REST API, the
// page, the metrics and the health checks. It is apart from the one that nodes
// talk to (package httpboot), on an address that nodes need not reach.
//
//	GET    /healthz               the process answers
//	GET    /readyz                503 and a list while anything is not ready
//	GET    /metrics               what Metrics writes
//	GET    /api/v1/nodes          every node, declared or added
//	POST   /api/v1/nodes          add one: an element of a pool's nodes plus "pool"
//	GET    /api/v1/nodes/{name}
//	PATCH  /api/v1/nodes/{name}   JSON merge patch (RFC 7386)
//	DELETE /api/v1/nodes/{name}
//	POST   /api/v1/nodes:batch    several changes of nodes, all of them or none
//	GET    /api/v1/chassis        chassis of the config, and what became of asking them
//	POST   /api/v1/chassis/{name}/sync  ask one now
//	GET    /api/v1/power          power jobs, the newest first; /{id} is one
//	POST   /api/v1/power          switch machines
//	GET    /api/v1/audit          who did what, the newest first; ?node= and ?limit=
//	GET    /api/v1/boots          timelines, newest first; ?node= and ?limit=
//	GET    /api/v1/leases         leased addresses and those in quarantine; ?pool= and ?state=
//	DELETE /api/v1/leases/{address}  end a lease, or lift a quarantine
//	GET    /api/v1/unknown        machines of no node that asked, the last one first
//	DELETE /api/v1/unknown/{mac}  forget one
//	GET    /                      the page
//	POST   /add, /forget, /power  the page's forms
//	POST   /login, /logout        the page's session
//
// An error is {"error": "...", "where": "drover.yaml:41"}; where is there when
// a line of the operator's file is in the way.
//
// Everything but the health checks wants the API token, as a bearer token or,
// for reading, through a session that the page's login made. A browser gets
// only the session's random cookie: the token itself is never stored by it and
// is in no URL. A form of the page that changes something wants the token
// again, so that a session that was left open, or taken, can only read.
//
// What an unknown machine says of itself is whatever its sender likes: the
// page bounds and escapes it, and shows the last few machines only.
//
// The package does not know how a node is checked or stored, what makes the
// server ready, why an address is leased, or what is measured: it is given a
// farm, a change of it, lists of boots, leases and unknown machines, and two
// functions.
package web
