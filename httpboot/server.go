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
	"sync/atomic"
	"time"

	"drover/httpboot/nodeconfig"
	"drover/httpboot/script"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
)

// Boots is the table of boots.
type Boots interface {
	// Adopt makes a nonce that another server has issued for the machine of a plan one of this
	// server. It does nothing for any other text.
	Adopt(p *resolve.Plan, nonce string)
	// Claim binds the boot with this nonce to a public key. The error is
	// [boots.ErrNonce] if the nonce is not that of the machine's current boot, and
	// [boots.ErrClaimed] if the boot has another key. It is nil for the same key.
	Claim(mac pools.MAC, nonce string, publicKey []byte) error
	// Unclaimed returns nil if the nonce is that of the machine's current boot and no key
	// is bound to it, else [boots.ErrNonce] or [boots.ErrClaimed].
	Unclaimed(mac pools.MAC, nonce string) error
	// EventKey returns the key with which the owner of a claimed boot signs its events;
	// nil if there is none.
	EventKey(mac pools.MAC, nonce string) []byte
	// Former returns the tenant of the machine's boot before this one, as
	// [pools.TenantName] names it; empty if it is not known.
	Former(mac pools.MAC, nonce string) string
	// Report records an event of the boot with its nonce. The error is [boots.ErrNonce]
	// if there is no such boot, [boots.ErrUnsigned] without the signature that the boot
	// needs, and [boots.ErrRepeated] for an event that was recorded before. With an empty
	// nonce it is an observation of the server about the machine's current boot.
	Report(mac pools.MAC, r boots.Report) error
}

// Joiner makes the join configuration of a node.
//
// After an error with a method RetryAfter() time.Duration, or with a method Temporary()
// bool that returns true, or after a deadline, the node is asked to try again. The texts
// of errors are logged; the node does not get them.
type Joiner interface {
	// Living returns an error, as Join does, if the node of p runs elsewhere while a machine
	// boots in its name. While that is not certain, it returns after which time to ask again.
	Living(ctx context.Context, p *resolve.Plan) (again time.Duration, err error)
	// Join returns the join configuration of the node of p, which has the address
	// addr. bootID is that of its kernel, or empty if the node sent none.
	Join(ctx context.Context, p *resolve.Plan, addr netip.Addr, bootID string) (pools.JoinConfig, error)
}

// Clients knows the clients by their addresses.
type Clients interface {
	// Serves reports whether a client gets more than a refusal.
	Serves(addr netip.Addr) bool
	// Booting reports whether the node of that name may be booting.
	Booting(node string) bool
}

// Server is the node-facing listener. Scripts, Boots, Joiner and Log must be
// set; the zero value of everything else works.
type Server struct {
	Scripts *script.Renderer // also finds machines, images and loaders
	Boots   Boots
	Joiner  Joiner
	Clients Clients // nil: each client is served, and each machine may be booting

	Config nodeconfig.Maker // makes the configs of nodes

	Addr string // TCP address of [Server.Listen]; default ":80"
	TLS  *TLS   // the HTTPS listener beside the plain one; nil for none

	Log *slog.Logger

	// OnRequest is called after each request. OnRefused is called for each refused
	// request, and for each connection that is closed without a request. OnQueue is
	// called with the number of clients that download a root image, and of those that
	// wait for their turn, when one changes. All are for metrics, must return at
	// once, and may be nil.
	OnRequest func(Request)
	OnRefused func(Refusal)
	OnQueue   func(running, waiting int)

	// OnInventory is called with the hardware of a machine of a catch-all pool, as the
	// machine reports it. It must return at once, and may be nil.
	OnInventory func(mac pools.MAC, v pools.Inventory)

	// Peers answers another server of the farm, whose request has a signature, and signs the answer.
	// The error is for the client. nil: there is no other server.
	Peers func(body []byte, signature string) (answer []byte, signed string, err error)

	Limits

	serving atomic.Pointer[handler] // of Serve
}

// Limits are the limits of the resources of clients. A zero means the default.
type Limits struct {
	MaxConns           int // connections at a time, default 4096, half of it for clients that are no machines; more get 503, or wait
	MaxConnsPerAddress int // connections at a time of one address, default 256; more get 429, or are closed
	MaxImages          int // clients that download a root image at a time, default 64; the others wait for their turn
	MaxEvents          int // events that a node may report in one boot, default 200

	HeaderTimeout time.Duration // for a request's header to arrive, default 10s
	BodyTimeout   time.Duration // for a request's body to arrive, default 10s
	IdleTimeout   time.Duration // between requests of one connection, default 30s
	// StallTimeout is the time limit for one MiB of an answer, default 60s. The
	// whole transfer has no time limit. With a thousand nodes on one gigabit link,
	// each gets 1 MiB in 8 s.
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

// maxHeader limits a request's line and header fields, in bytes. Firmware sends a few
// hundred bytes.
const maxHeader = 16 << 10

// Listen binds the listener's socket. Pass it to [Server.Serve].
func (s *Server) Listen() (net.Listener, error) {
	addr := s.Addr
	if addr == "" {
		addr = ":80"
	}
	return net.Listen("tcp", addr)
}

// Serve answers requests on l, and with TLS on the listeners of [Server.ListenTLS], until
// ctx ends. Then running requests get [Limits.Grace] to end, and Serve returns nil. It
// closes the listeners.
func (s *Server) Serve(ctx context.Context, l net.Listener, tlsListeners ...net.Listener) error {
	h := s.handler()
	s.serving.Store(h)
	conns := newConnLimiter(h)
	srv := &http.Server{
		Handler:           h.counted(h),
		ReadHeaderTimeout: h.HeaderTimeout,
		WriteTimeout:      h.StallTimeout, // for answers of net/http itself; handlers renew it
		IdleTimeout:       h.IdleTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnContext:       withConn,
		ConnState:         conns.observe,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
		// Requests outlive ctx by the grace period.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },

		DisableGeneralOptionsHandler: true, // it would answer "OPTIONS *" without the handler
	}
	failed := make(chan error, 1+len(tlsListeners))
	go func() { failed <- srv.Serve(conns.listener(l, true)) }()
	for _, l := range tlsListeners {
		go func() { failed <- srv.Serve(tls.NewListener(conns.listener(l, false), s.TLS.config())) }()
	}
	var err error
	select {
	case err = <-failed:
		err = errors.Join(ignoreClosed(err), srv.Close())
		failed <- nil
	case <-ctx.Done():
		h.queue.Stop()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.grace())
		defer cancel()
		if cutOff := srv.Shutdown(grace); cutOff != nil {
			s.Log.Warn("requests cut off by the shutdown", "err", cutOff)
			err = srv.Close()
		}
	}
	for range 1 + len(tlsListeners) {
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
