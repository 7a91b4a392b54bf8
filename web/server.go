package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"

	"drover/pools"
	"drover/pools/boots"
)

// Farm gives the farm in force.
type Farm interface {
	Farm() *pools.Farm
}

// Changer changes the nodes of the farm. Its refusals are [pools.ErrExists],
// [pools.ErrNotFound], a [*config.DeclaredError] and [config.Errors]; any other
// error means that the change could not be stored.
type Changer interface {
	AddNode(n pools.PoolNode) error
	UpdateNode(name string, edit func(pools.PoolNode) (pools.PoolNode, error)) error
	RemoveNode(name string) error
	// ChangeNodes makes several changes, all of them or none. It refuses with
	// [pools.ErrChanged] too.
	ChangeNodes(changes []pools.NodeChange) error
}

// Boots lists the boots that are known, the newest first. The list is the
// caller's, the steps in it are not.
type Boots interface {
	List() []boots.Record
}

// Problem is a part of the server that is not ready.
type Problem struct {
	Part    string `json:"part"`    // "image debian-12"
	Problem string `json:"problem"` // what is wrong, and what to do

	// Warning is a problem that keeps no machine from booting: the server is
	// ready all the same.
	Warning bool `json:"warning,omitempty"`
}

// Server is the listener for people. Farm, Nodes, Boots and Token must be set;
// the zero value of everything else works.
type Server struct {
	Farm  Farm
	Nodes Changer
	Boots Boots
	Token Token

	// Addr is where [Server.Listen] listens; default "127.0.0.1:8443".
	Addr string
	// TLS serves HTTPS; nil serves plain HTTP, which is for loopback only.
	TLS *tls.Config

	// Metrics answers /metrics; nil answers 404.
	Metrics http.Handler
	// Ready lists what is not ready; nil means that all is.
	Ready func(ctx context.Context) []Problem
	// Leases are those of all pools; nil: there are none.
	Leases Leases
	// Unknowns are the machines of no node that asked for an address; nil:
	// there are none.
	Unknowns Unknowns
	// NextBoots are what nodes do once; nil: nothing.
	NextBoots NextBoots
	// CheckImage tells what is wrong with a reference to an image; nil: nothing
	// ever is.
	CheckImage func(ref string) error
	// Hardware, Power and Audit manage machines; nil: nobody does.
	Hardware Hardware
	Power    Power
	Audit    Audit
	// Moves are the nodes on their way out of a cluster; nil: there are none.
	Moves func() []pools.Move
	// Tokens are the shared join tokens of clusters; nil: there are none.
	Tokens Tokens
	Log    *slog.Logger // default: none
	Now    func() time.Time
}

// Bounds of what clients can take.
const (
	maxBody   = 1 << 20  // bytes of a request's body
	maxHeader = 16 << 10 // bytes of a request's line and header
	maxConns  = 256      // connections at a time; more wait in the kernel's queue

	headerTimeout = 5 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = time.Minute
	idleTimeout   = 2 * time.Minute
	grace         = 5 * time.Second
)

// withDefaults is a copy in which everything is set.
func (s *Server) withDefaults() *Server {
	c := *s
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Moves == nil {
		c.Moves = func() []pools.Move { return nil }
	}
	if c.Ready == nil {
		c.Ready = func(context.Context) []Problem { return nil }
	}
	if c.Leases == nil {
		c.Leases = noLeases{}
	}
	if c.Unknowns == nil {
		c.Unknowns = noUnknowns{}
	}
	if c.NextBoots == nil {
		c.NextBoots = noNextBoots{}
	}
	if c.Hardware == nil {
		c.Hardware = noHardware{}
	}
	if c.Power == nil {
		c.Power = noHardware{}
	}
	if c.Audit == nil {
		c.Audit = noHardware{}
	}
	if c.Tokens == nil {
		c.Tokens = noTokens{}
	}
	if c.Metrics == nil {
		c.Metrics = http.NotFoundHandler()
	}
	return &c
}

// Handler answers every request of the listener.
func (s *Server) Handler() http.Handler {
	s = s.withDefaults()
	auth := &guard{token: s.Token, secure: s.TLS != nil, now: s.Now, sessions: newSessions(s.Now), limit: newLoginLimit(s.Now)}
	a := &api{server: s}
	p := newPage(s, auth)

	mux := http.NewServeMux()
	mux.Handle("/healthz", s.answer(methods{"GET": healthz}))
	mux.Handle("/readyz", s.answer(methods{"GET": s.readyz}))
	mux.Handle("/metrics", auth.api(s.answer(methods{"GET": s.metrics})))
	mux.Handle("/api/v1/nodes", auth.api(s.answer(methods{"GET": a.listNodes, "POST": a.addNode})))
	mux.Handle("/api/v1/nodes/{name}", auth.api(s.answer(methods{"GET": a.getNode, "PATCH": a.patchNode, "DELETE": a.removeNode})))
	mux.Handle("/api/v1/nodes/{name}/next-boot", auth.api(s.answer(methods{"PUT": a.setNextBoot, "DELETE": a.clearNextBoot})))
	mux.Handle("/api/v1/nodes:batch", auth.api(s.answer(methods{"POST": a.changeNodes})))
	mux.Handle("/api/v1/chassis", auth.api(s.answer(methods{"GET": a.listChassis})))
	mux.Handle("/api/v1/chassis/{name}/sync", auth.api(s.answer(methods{"POST": a.syncChassis})))
	mux.Handle("/api/v1/power", auth.api(s.answer(methods{"GET": a.listJobs, "POST": a.order})))
	mux.Handle("/api/v1/power/{id}", auth.api(s.answer(methods{"GET": a.getJob})))
	mux.Handle("/api/v1/audit", auth.api(s.answer(methods{"GET": a.listAudit})))
	mux.Handle("/api/v1/boots", auth.api(s.answer(methods{"GET": a.listBoots})))
	mux.Handle("/api/v1/leases", auth.api(s.answer(methods{"GET": a.listLeases})))
	mux.Handle("/api/v1/leases/{address}", auth.api(s.answer(methods{"DELETE": a.endLease})))
	mux.Handle("/api/v1/clusters/{cluster}/token", auth.api(s.answer(methods{"GET": a.sharedToken})))
	mux.Handle("/api/v1/unknown", auth.api(s.answer(methods{"GET": a.listUnknowns})))
	mux.Handle("/api/v1/unknown/{mac}", auth.api(s.answer(methods{"DELETE": a.forgetUnknown})))
	mux.Handle("/api/", auth.api(s.answer(nil)))
	mux.Handle("/login", s.answer(methods{"POST": p.login}))
	mux.Handle("/logout", s.answer(methods{"POST": p.logout}))
	mux.Handle("/add", s.answer(methods{"POST": p.add}))
	mux.Handle("/power", s.answer(methods{"POST": p.power}))
	mux.Handle("/forget", s.answer(methods{"POST": p.forget}))
	mux.Handle("/style.css", s.answer(methods{"GET": p.asset("style.css", "text/css; charset=utf-8")}))
	mux.Handle("/page.js", s.answer(methods{"GET": p.asset("page.js", "text/javascript; charset=utf-8")}))
	mux.Handle("/{$}", s.answer(methods{"GET": p.show}))
	mux.Handle("/", s.answer(nil))

	protect := http.NewCrossOriginProtection()
	protect.SetDenyHandler(s.answerAll(func(http.ResponseWriter, *http.Request) error {
		return &failure{code: http.StatusForbidden, msg: "a request from another site"}
	}))
	return secureHeaders(protect.Handler(http.MaxBytesHandler(mux, maxBody)))
}

// secureHeaders makes browsers keep the page to itself.
func secureHeaders(next http.Handler) http.Handler {
	const csp = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; " +
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", csp)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// Listen binds the listener's socket. Pass it to [Server.Serve].
func (s *Server) Listen() (net.Listener, error) {
	addr := s.Addr
	if addr == "" {
		addr = "127.0.0.1:8443"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("people-facing listener: %w", err)
	}
	return l, nil
}

// Serve answers requests on l until ctx ends; then running requests get some
// seconds to end, and it returns nil. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	l = netutil.LimitListener(l, maxConns)
	if s.TLS != nil {
		l = tls.NewListener(l, s.tlsConfig())
	}
	srv := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.withDefaults().Log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("people-facing listener: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := srv.Shutdown(end)
	if err != nil { // requests that did not end in time
		err = srv.Close()
	}
	if e := <-failed; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// tlsConfig is the server's with the versions and protocols that it serves.
func (s *Server) tlsConfig() *tls.Config {
	c := s.TLS.Clone()
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	c.NextProtos = []string{"http/1.1"} // a raw TLS listener does not speak HTTP/2
	return c
}
