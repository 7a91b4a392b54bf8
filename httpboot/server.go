package httpboot

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"drover/httpboot/script"
	"drover/pools"
	"drover/pools/boots"
)

// Boots keeps the boots that are under way.
type Boots interface {
	// Claim binds the boot with this nonce to a public key. It returns
	// [boots.ErrNonce] when the nonce is not that of the machine's current
	// boot, [boots.ErrClaimed] when the boot has another key, and nil again for
	// the same key.
	Claim(mac pools.MAC, nonce string, publicKey []byte) error
	// Step records a step of the boot with this nonce ([boots.ErrNonce] when
	// there is none). With an empty nonce it is an observation of the server
	// about the machine's current boot.
	Step(mac pools.MAC, nonce string, e boots.Event) error
}

// Joiner makes the join configuration of a node.
//
// An error with a method Temporary() bool that returns true, or with
// RetryAfter() time.Duration, asks the node to come again; so does a deadline
// that ran out. The texts of errors are logged, the node does not see them.
type Joiner interface {
	// Expect announces that the machine of p boots and is going to ask for its
	// join. It returns at once.
	Expect(p *pools.Plan)
	// Join lets in the node of p, which asks from addr. The boot ID is that of
	// its kernel, or empty if the node sent none.
	Join(ctx context.Context, p *pools.Plan, addr netip.Addr, bootID string) (pools.JoinConfig, error)
}

// Server is the node-facing listener. Scripts, Boots, Joiner and Log must be
// set; the zero value of everything else works.
type Server struct {
	Scripts *script.Renderer // also knows machines, images and loaders
	Boots   Boots
	Joiner  Joiner

	Addr string // TCP address of [Server.Listen]; default ":80"
	TLS  *TLS   // the HTTPS listener beside the plain one; nil for none

	Log *slog.Logger

	// OnRequest is called after each request. OnRefused is called for each
	// refused request, and for each connection that is closed without one.
	// OnQueue is called when the number of clients changes that download a root
	// image, or wait for their turn. All are for metrics, must return at once,
	// and may be nil.
	OnRequest func(Request)
	OnRefused func(Refusal)
	OnQueue   func(running, waiting int)

	Limits
}

// Limits bound the resources of clients. Each zero means the default.
type Limits struct {
	MaxConns           int // connections at a time, default 4096; more get 503, or wait
	MaxConnsPerAddress int // connections at a time of one address, default 256; more get 429, or are closed
	MaxImages          int // clients that download a root image at a time, default 64; the others wait for their turn
	MaxEvents          int // events that a node may report in one boot, default 200

	HeaderTimeout time.Duration // for a request's header to arrive, default 10s
	BodyTimeout   time.Duration // for a request's body to arrive, default 10s
	IdleTimeout   time.Duration // between requests of one connection, default 30s
	// StallTimeout is how long a client may take for one MiB of an answer,
	// default 60s. The transfer as a whole has no limit: a thousand nodes on
	// one gigabit link get 1 MiB in 8 s each.
	StallTimeout time.Duration
	JoinTimeout  time.Duration // for the cluster to let a node in, default 60s
	Grace        time.Duration // for running requests to end when the server stops, default 30s
}

func (l Limits) withDefaults() Limits {
	return Limits{
		MaxConns:           cmp.Or(l.MaxConns, 4096),
		MaxConnsPerAddress: cmp.Or(l.MaxConnsPerAddress, 256),
		MaxImages:          cmp.Or(l.MaxImages, 64),
		MaxEvents:          cmp.Or(l.MaxEvents, 200),
		HeaderTimeout:      cmp.Or(l.HeaderTimeout, 10*time.Second),
		BodyTimeout:        cmp.Or(l.BodyTimeout, 10*time.Second),
		IdleTimeout:        cmp.Or(l.IdleTimeout, 30*time.Second),
		StallTimeout:       cmp.Or(l.StallTimeout, 60*time.Second),
		JoinTimeout:        cmp.Or(l.JoinTimeout, 60*time.Second),
		Grace:              cmp.Or(l.Grace, 30*time.Second),
	}
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

// Serve answers requests on l, and by TLS on the listeners of
// [Server.ListenTLS], until ctx ends; then running requests get [Limits.Grace]
// to end, and it returns nil. It closes the listeners.
func (s *Server) Serve(ctx context.Context, l net.Listener, secure ...net.Listener) error {
	h := s.handler()
	conns := &connLimiter{handler: h, slots: make(chan struct{}, h.MaxConns+h.MaxConns/10), held: map[netip.Addr]int{}}
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: h.HeaderTimeout,
		WriteTimeout:      h.StallTimeout, // for answers of net/http itself; handlers renew it
		IdleTimeout:       h.IdleTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnContext:       withConn,
		ConnState:         conns.observe,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
		// Requests outlive ctx by the grace period.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },

		DisableGeneralOptionsHandler: true, // it would answer "OPTIONS *" without us
	}
	failed := make(chan error, 1+len(secure))
	go func() { failed <- srv.Serve(conns.listener(l)) }()
	for _, l := range secure {
		go func() { failed <- srv.Serve(tls.NewListener(conns.listener(l), s.TLS.config())) }()
	}
	var err error
	select {
	case err = <-failed:
		err = errors.Join(ignoreClosed(err), srv.Close())
		failed <- nil
	case <-ctx.Done():
		h.queue.Stop()
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
