package web

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"drover/pools"
	"drover/web/answer"
	"drover/web/api"
	"drover/web/auth"
	"drover/web/auth/oidc"
	"drover/web/compress"
	"drover/web/openapi"
	"drover/web/page"
	"drover/web/route"
	"drover/web/watch"
)

// Server is the listener for operators. API and Token must be set. The zero values of
// the other fields work.
type Server struct {
	API   *api.API   // for the REST API and the page
	Token auth.Token // the server's own, with the role admin
	// Named are the named tokens. nil: there are none.
	Named *auth.Tokens

	// Addr is the address for [Server.Listen]; default "127.0.0.1:8443".
	Addr string
	// Hosts are the names of this server that clients may send as Host, in lower case,
	// besides loopback names, the address that they connect to, and the names in the
	// certificates of TLS.
	Hosts []string
	// TLS is the config of HTTPS. nil: plain HTTP, for loopback only.
	TLS *tls.Config
	// Grants returns the roles of clients with a certificate of TLS.ClientCAs. nil: there are
	// none.
	Grants func() []pools.Grant
	// Provider is where people log in to the page. nil: with a token alone.
	Provider *oidc.Provider
	// Groups returns the roles of the provider's groups.
	Groups func() []pools.Grant
	// Socket is for people of this host. nil: there is none.
	Socket *Socket
	// Metrics answers /metrics. nil: the answer is 404.
	Metrics http.Handler
	// Page is what the page shows beside the data of the API.
	Page page.Sources
}

// Bounds for clients.
const (
	maxHeader = 16 << 10 // bytes of a request's line and header

	headerTimeout = 5 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = time.Minute
	idleTimeout   = time.Minute
	endTimeout    = 5 * time.Second // for running requests when the server ends
)

// Handler returns the handler for all requests of the listener.
func (s *Server) Handler() http.Handler {
	a := s.API
	guard := auth.New(s.Token, s.Named, s.secure(), a.Now)
	guard.Grants, guard.Provider, guard.Groups = s.Grants, s.Provider, s.Groups
	metrics := s.Metrics
	if metrics == nil {
		metrics = http.NotFoundHandler()
	}
	mux := http.NewServeMux()
	mux.Handle(healthPath, answer.By(a.Log, answer.Methods{"GET": healthz}))
	mux.Handle("/readyz", answer.By(a.Log, answer.Methods{"GET": readyz(a, guard)}))
	table := []route.Route{{
		Method: "GET", Path: "/metrics", Role: pools.RoleMetrics,
		Handle: func(w http.ResponseWriter, r *http.Request) error {
			metrics.ServeHTTP(w, r)
			return nil
		},
	}}
	mux.Handle("/metrics", guard.API(route.Handler(a.Log, table)))
	mux.Handle("/api/", http.MaxBytesHandler(guard.API(a.Handler()), answer.MaxBody))
	document := openapi.Handler(a.Log, a.Routes())
	for _, path := range []string{openapi.JSONPath, openapi.PagePath, openapi.StylePath} {
		mux.Handle(path, compress.Handler(document))
	}
	mux.Handle("/", compress.Handler(page.Handler(a, guard, s.Page)))

	protect := http.NewCrossOriginProtection()
	protect.SetDenyHandler(answer.With(a.Log, func(http.ResponseWriter, *http.Request) error {
		return &answer.Error{Code: http.StatusForbidden, Msg: "a request from another site"}
	}))
	bounded := http.MaxBytesHandler(mux, page.MaxBody)
	return secureHeaders(s.checkHost(s.countAuthenticated(guard, protect.Handler(bounded))))
}

// secure reports whether browsers come by HTTPS, to this server or to a proxy in front of it.
func (s *Server) secure() bool { return s.TLS != nil || s.Provider != nil && s.Provider.Secure() }

// secureHeaders adds headers that keep other sites from reading, framing or extending
// the page, and caches from storing it. It closes connections that a proxy can read in another way.
func secureHeaders(next http.Handler) http.Handler {
	const csp = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; " +
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		if len(r.TransferEncoding) > 0 { // with a Content-Length, which net/http hides, what follows is no request (RFC 9112, section 6.1)
			h.Set("Connection", "close")
		}
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
	return net.Listen("tcp", cmp.Or(s.Addr, "127.0.0.1:8443"))
}

// Serve answers requests on l, and on sockets of this host, until ctx ends. Running requests
// then have a few seconds to end. Serve closes all of them, and returns nil after ctx has
// ended.
func (s *Server) Serve(ctx context.Context, l net.Listener, sockets ...net.Listener) error {
	conns := newConnLimiter(s.API.Log)
	l = &limitedListener{l, conns}
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
		BaseContext:       func(net.Listener) context.Context { return watch.WithEnd(context.WithoutCancel(ctx), ctx) },
		ConnContext:       s.withConn,
		ConnState:         conns.observe,
		ErrorLog:          slog.NewLogLogger(s.API.Log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1+len(sockets))
	go func() { failed <- srv.Serve(l) }()
	for _, k := range sockets {
		go func() { failed <- srv.Serve(&limitedListener{k, conns}) }()
	}
	select {
	case err := <-failed:
		return fmt.Errorf("people-facing listener: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	err := srv.Shutdown(end)
	if err != nil { // requests that did not end in time
		err = srv.Close()
	}
	for range 1 + len(sockets) {
		if e := <-failed; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// tlsConfig returns a copy of s.TLS with TLS 1.2 as the oldest version and HTTP/1.1 as
// the only protocol.
func (s *Server) tlsConfig() *tls.Config {
	c := s.TLS.Clone()
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	c.NextProtos = []string{"http/1.1"} // a raw TLS listener does not speak HTTP/2
	return c
}
