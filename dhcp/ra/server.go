package ra

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"drover/internal/lograte"
	"drover/internal/wait"
)

const (
	// checkEvery is how often the interface is compared with what it was, and how long
	// the server waits for one that is missing or down.
	checkEvery = time.Second

	// Packets that come faster than readsPerSec wait in the kernel, which drops what
	// its buffer does not hold. So a flood costs little time.
	readsPerSec = 2000
	readsBurst  = 4000
	readPause   = 20 * time.Millisecond
)

// Server answers router solicitations on one interface. Set its fields, then call Serve.
// It must not be copied after that.
type Server struct {
	Interface string

	// Content returns what to advertise on an interface that has these addresses. It is
	// called each second. nil: the empty advertisement.
	Content func(addresses []netip.Addr) Advertisement

	Log      *slog.Logger // nil: none
	OnPacket func(Packet) // called for each solicitation and advertisement; must not block; may be nil

	known   atomic.Int32
	dropped atomic.Uint64
	lines   lograte.Limiter
	down    string // why it does not serve, as logged last
}

// Routers is how many other routers are known on the wire.
func (s *Server) Routers() int { return int(s.known.Load()) }

// Dropped is how many packets the kernel has dropped because they were not read in time.
func (s *Server) Dropped() uint64 { return s.dropped.Load() }

// Serve answers until ctx ends, and returns nil then. It needs CAP_NET_RAW. No packet and
// no change of the interface ends it: while the interface is missing or down, it waits.
// It does nothing for the loopback interface.
func (s *Server) Serve(ctx context.Context) error {
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	s.lines.Log = s.Log
	limits := newLimits(time.Now())
	for {
		err := s.serveLink(ctx, limits)
		s.known.Store(0)
		if ctx.Err() != nil || errors.Is(err, errLoopback) {
			return nil
		}
		if !errors.Is(err, errChanged) {
			s.report(err)
			_ = wait.Sleep(ctx, checkEvery)
		}
	}
}

// report logs why the server does not serve, unless it did so before.
func (s *Server) report(err error) {
	level := slog.LevelWarn
	if errors.Is(err, errDown) {
		level = slog.LevelDebug // as long as no machine is on
	}
	if text := err.Error(); text != s.down {
		s.down = text
		s.Log.Log(context.Background(), level, "router solicitations are not answered", "interface", s.Interface, "error", err)
	}
}

// errChanged ends serveLink when the interface is no longer what it was.
var errChanged = errors.New("the interface has changed")

// serveLink serves while the interface stays as it is.
func (s *Server) serveLink(ctx context.Context, limits *limits) error {
	id, err := identify(s.Interface)
	if err != nil {
		return err
	}
	l, err := openLink(id)
	if err != nil {
		return err
	}
	defer l.close()
	defer context.AfterFunc(ctx, l.close)()
	if s.down = ""; s.Log.Enabled(ctx, slog.LevelDebug) {
		s.Log.Debug("router solicitations are answered", "interface", s.Interface, "mac", id.mac, "address", id.addr)
	}
	v := &service{s, l, newWire(id.station, s.content(id), limits, time.Now()), rate.NewLimiter(readsPerSec, readsBurst)}
	return v.run(ctx)
}

// content returns what to advertise.
func (s *Server) content(id identity) Advertisement {
	if s.Content == nil {
		return Advertisement{}
	}
	return s.Content(id.addresses)
}

// service serves an interface. One goroutine uses it.
type service struct {
	server *Server
	link   *link
	wire   *wire
	reads  *rate.Limiter
}

// run returns an error when the interface has to be opened again.
func (v *service) run(ctx context.Context) error {
	b := make([]byte, maxFrame)
	for check := time.Now().Add(checkEvery); ctx.Err() == nil; {
		now := time.Now()
		if !now.Before(check) {
			check = now.Add(checkEvery)
			v.server.dropped.Add(v.link.drops())
			id, err := identify(v.server.Interface)
			if err != nil {
				return err
			}
			if id.index != v.link.index || id.station != v.link.station {
				return errChanged
			}
			v.wire.content = v.server.content(id)
		}
		if err := v.work(now); err != nil {
			return err
		}
		n, err := v.link.read(b, v.wire.next(check))
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			continue
		case err != nil:
			return err
		case !v.reads.Allow():
			_ = wait.Sleep(ctx, readPause)
		}
		v.receive(b[:n])
	}
	return nil
}

// work does what is due.
func (v *service) work(now time.Time) error {
	for more := true; more; {
		select {
		case m := <-v.link.local:
			v.count(Packet{"advertisement", v.wire.hear(m, now)})
		default:
			more = false
		}
	}
	for _, f := range v.wire.tick(now) {
		if err := v.link.send(f); err != nil {
			return err
		}
	}
	v.noteRouters()
	return nil
}

// receive handles a frame.
func (v *service) receive(f []byte) {
	reply, p := v.wire.receive(f, time.Now())
	if p.Type == "" {
		return
	}
	if reply != nil {
		if err := v.link.send(reply); err != nil {
			p.Result = Failed
			if v.server.lines.Allow(slog.LevelWarn, "not sent") {
				v.server.Log.Warn("router advertisement not sent", "interface", v.server.Interface, "error", err)
			}
		} else if v.server.lines.Allow(slog.LevelDebug, "answered") {
			v.server.Log.Debug("router solicitation answered", "interface", v.server.Interface, "to", net.HardwareAddr(reply[:6]).String())
		}
	}
	v.noteRouters()
	v.count(p)
}

func (v *service) count(p Packet) {
	if v.server.OnPacket != nil {
		v.server.OnPacket(p)
	}
}

// noteRouters publishes the number of other routers, and logs the first and the last.
func (v *service) noteRouters() {
	known := v.wire.routers.known
	before := int(v.server.known.Swap(int32(len(known))))
	switch {
	case before == 0 && len(known) > 0 && v.server.lines.Allow(slog.LevelInfo, "router"):
		v.server.Log.Info("another router found: leaving router solicitations to it",
			"interface", v.server.Interface, "router", known[0].addr, "mac", known[0].mac, "unless silent for", routerCounts)
	case before > 0 && len(known) == 0 && v.server.lines.Allow(slog.LevelInfo, "no router"):
		v.server.Log.Info("no other router found: answering router solicitations", "interface", v.server.Interface)
	}
}
