package httpboot

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"drover/pools"
	"drover/pools/boots"
)

// Resolver answers what a machine is to do; nil when it is none of ours.
type Resolver interface {
	Resolve(pools.Query) *pools.Plan
}

// Addresses knows which address belongs to which MAC.
type Addresses interface {
	// AddressOf returns the address that mac holds a lease of. It is not asked
	// about nodes with a fixed address: that is in their Plan.
	AddressOf(mac pools.MAC) (netip.Addr, bool)
	// MACAt returns the MAC that boots from addr, be it fixed or leased.
	MACAt(addr netip.Addr) (pools.MAC, bool)
}

// Boots keeps the boots that are under way.
type Boots interface {
	// Issue opens a boot, with the step script, and returns its nonce, in hex,
	// once it is durable. Nonces of earlier boots of the machine end with it.
	// It returns [boots.ErrNotBooting] for a machine that is not booting.
	Issue(p *pools.Plan) (nonce string, err error)
	// Claim binds the boot that has this nonce to a public key. It returns
	// [boots.ErrNonce] when the nonce is not that of the machine's current
	// boot, [boots.ErrClaimed] when the boot has another key, and nil again for
	// the same key.
	Claim(mac pools.MAC, nonce string, publicKey []byte) error
	// Step records a step of the boot with this nonce ([boots.ErrNonce] when
	// there is none). With an empty nonce it is an observation of the server
	// about the machine's current boot.
	Step(mac pools.MAC, nonce string, e boots.Event) error
}

// Joiner makes what a node needs to join its cluster.
//
// An error with a method Temporary() bool that returns true, or with
// RetryAfter() time.Duration, asks the node to come again; so does a deadline
// that ran out. The texts of errors are logged, the node does not see them.
type Joiner interface {
	// Expect tells that the machine of p boots and is going to ask for its
	// join. It returns at once.
	Expect(p *pools.Plan)
	// Join lets in the node of p, which asks from addr. The boot ID is that of
	// its kernel, or empty if it did not tell.
	Join(ctx context.Context, p *pools.Plan, addr netip.Addr, bootID string) (pools.JoinConfig, error)
}

// Images finds images.
type Images interface {
	// Image returns the image that ref names: NAME, for the generation in
	// force, or NAME@sha256:GENERATION. The error names the image; it is
	// [io/fs.ErrNotExist] when there is none.
	Image(ref string) (Image, error)
}

// Server is the node-facing listener. The interfaces, URL and Log must be set;
// the zero value of everything else works.
type Server struct {
	Farm      Resolver
	Addresses Addresses
	Boots     Boots
	Joiner    Joiner
	Images    Images

	// Addr is where [Server.Listen] listens; default ":80".
	Addr string
	// URL is what nodes are told to come to, such as http://10.28.0.2:80.
	URL string
	// Loaders is the directory with the loaders; empty for none.
	Loaders string

	// Templates are the texts of the boot scripts; nil: drover's own.
	Templates *Templates
	// TakeNextBoot notes, durably, that a boot of this node was given the script
	// for what its Plan says of the next boot. It may be nil.
	TakeNextBoot func(node string) error

	Log *slog.Logger
	// Secure is the HTTPS listener beside the plain one; nil for none.
	Secure *Secure

	// OnRequest is called after each request, OnRefused for each that is
	// refused (also before it was one: connections that are too many, headers
	// that are no header), OnQueue when the number of clients changes that fetch
	// an image, or wait for their turn. They are for metrics, must return at
	// once, and may be nil.
	OnRequest func(Request)
	OnRefused func(Refusal)
	OnQueue   func(running, waiting int)

	Limits

	orders orders
	sums   sums
}

// Limits bound what clients can take. Each zero means the default.
type Limits struct {
	MaxConns           int // connections at a time, default 4096; what comes then is told to come again, or waits
	MaxConnsPerAddress int // connections at a time of one address, default 256; what comes then is told to come again, or closed
	MaxImages          int // clients that fetch a root image at a time, default 64; the others wait for their turn
	MaxEvents          int // events that a node may report in one boot, default 200

	HeaderTimeout time.Duration // for a request's header to arrive, default 10s
	BodyTimeout   time.Duration // for a request's body to arrive, default 10s
	IdleTimeout   time.Duration // between requests of one connection, default 30s
	// StallTimeout is how long a client may take for one MiB of an answer,
	// default 60s. A transfer as a whole may take as long as it likes: a
	// thousand nodes on one gigabit link get 1 MiB in 8 s each.
	StallTimeout time.Duration
	JoinTimeout  time.Duration // for the cluster to let a node in, default 60s
	Grace        time.Duration // for running requests to end when the server stops, default 30s
}

func (l Limits) withDefaults() Limits {
	return Limits{
		MaxConns:           or(l.MaxConns, 4096),
		MaxConnsPerAddress: or(l.MaxConnsPerAddress, 256),
		MaxImages:          or(l.MaxImages, 64),
		MaxEvents:          or(l.MaxEvents, 200),
		HeaderTimeout:      or(l.HeaderTimeout, 10*time.Second),
		BodyTimeout:        or(l.BodyTimeout, 10*time.Second),
		IdleTimeout:        or(l.IdleTimeout, 30*time.Second),
		StallTimeout:       or(l.StallTimeout, 60*time.Second),
		JoinTimeout:        or(l.JoinTimeout, 60*time.Second),
		Grace:              or(l.Grace, 30*time.Second),
	}
}

func or[T int | time.Duration](v, fallback T) T {
	if v > 0 {
		return v
	}
	return fallback
}

// maxHeader bounds a request's line and header fields, in bytes. Firmware sends
// a few hundred.
const maxHeader = 16 << 10

// Listen binds the listener's socket. Pass it to [Server.Serve].
func (s *Server) Listen() (net.Listener, error) {
	addr := s.Addr
	if addr == "" {
		addr = ":80"
	}
	return net.Listen("tcp", addr)
}

// Serve answers requests on l, and by TLS on what [Server.ListenSecure] gave,
// until ctx ends; then running requests get [Limits.Grace] to end, and it
// returns nil. It closes the listeners.
func (s *Server) Serve(ctx context.Context, l net.Listener, secure ...net.Listener) error {
	h, err := s.handler()
	if err != nil {
		for _, l := range append(secure, l) {
			l.Close()
		}
		return err
	}
	conns := newConnLimiter(h.MaxConns, h.MaxConnsPerAddress, s.Log, h.refused)
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: h.HeaderTimeout,
		WriteTimeout:      h.StallTimeout, // for what net/http answers by itself; handlers renew it
		IdleTimeout:       h.IdleTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnContext:       withConn,
		ConnState:         connState,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
		// Requests outlive ctx by the grace.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },

		DisableGeneralOptionsHandler: true, // it would answer "OPTIONS *" without us
	}
	failed := make(chan error, 1+len(secure))
	go func() { failed <- srv.Serve(conns.listener(l, false)) }()
	for _, l := range secure {
		go func() { failed <- srv.Serve(tls.NewListener(conns.listener(l, true), s.Secure.Config())) }()
	}
	select {
	case err = <-failed:
		err = errors.Join(ignoreClosed(err), srv.Close())
		failed <- nil
	case <-ctx.Done():
		h.queue.stop()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.Grace)
		defer cancel()
		if cutOff := srv.Shutdown(grace); cutOff != nil {
			s.Log.Warn("requests cut off by the end of the server", "err", cutOff)
			err = srv.Close()
		}
	}
	for range 1 + len(secure) {
		err = errors.Join(err, ignoreClosed(<-failed))
	}
	return err
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// baseURL checks what nodes are told to come to, and writes it the short way:
// without the port that HTTP implies, without a slash at its end.
func baseURL(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil {
		return "", fmt.Errorf("node-facing URL: %w", err)
	}
	if u.Scheme != "http" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", fmt.Errorf("node-facing URL %q: want http://ADDRESS or http://ADDRESS:PORT", s)
	}
	return "http://" + strings.TrimSuffix(u.Host, ":80"), nil
}
