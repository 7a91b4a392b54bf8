package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"drover/dhcp"
	"drover/httpboot"
	"drover/imagebuild"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/kube"
	"drover/pools/state"
	"drover/tftp"
	"drover/web"
)

// serveOptions are the flags of drover serve.
type serveOptions struct {
	config, state, images, loaders string
	logFormat, logLevel            string
}

func newServeCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the netboot server",
		Long: `Serve answers DHCP, TFTP and HTTP for the machines of the config, and the REST
API, the page and the metrics for people.

What is missing (an image, a loader, a cluster that is down) is a warning and a
not-ready line of /readyz; everything else is served. A changed config file is
read again by itself, or on SIGHUP; a bad one leaves the old in force. SIGTERM
lets running transfers end.

It needs CAP_NET_BIND_SERVICE and CAP_NET_RAW, and no other privilege.`,
		Example: "  drover serve -c /etc/drover/drover.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := newLogWriter(cmd.ErrOrStderr())
			defer w.Close()
			relaxGC()
			log, err := newLogger(w, o.logFormat, o.logLevel)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			s, err := newServer(o, log)
			if err != nil {
				return printMistakes(o.config, err, cmd.ErrOrStderr())
			}
			defer s.close()
			return s.run(cmd.Context())
		},
	}
	configFlag(cmd, &o.config)
	f := cmd.Flags()
	f.StringVar(&o.state, "state", defaultState, "directory of what changes while running")
	f.StringVar(&o.images, "images", "", "directory of images (default STATE/images)")
	f.StringVar(&o.loaders, "loaders", "", "directory of boot loaders (default STATE/loaders)")
	f.StringVar(&o.logFormat, "log-format", "text", "text|json")
	f.StringVar(&o.logLevel, "log-level", "info", "debug|info|warn|error")
	return cmd
}

// server is the wiring: every part of drover, and which part asks which.
type server struct {
	log      *slog.Logger
	store    *state.Store
	live     *config.Live
	clusters *kube.Clusters
	metrics  *metrics

	addresses *addresses
	unknowns  inbox
	hardware  *hardware

	dhcp []*dhcp.Server
	tftp *tftp.Server
	http *httpboot.Server
	web  *web.Server
}

// newServer opens the state, reads the config and puts the parts together. It
// binds no socket.
func newServer(o serveOptions, log *slog.Logger) (*server, error) {
	images, loaders := o.images, o.loaders
	if images == "" {
		images = filepath.Join(o.state, "images")
	}
	if loaders == "" {
		loaders = filepath.Join(o.state, "loaders")
	}
	// A config that is wrong is reported before anything is made on disk.
	if _, err := config.Load(o.config); err != nil {
		return nil, err
	}
	store, err := state.Open(o.state, state.Options{Log: log})
	if err != nil {
		return nil, err
	}
	s := &server{log: log, store: store}
	if s.live, err = config.NewLive(o.config, store.Nodes); err == nil {
		err = s.assemble(o, imagebuild.Open(images), loaders)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// assemble makes the parts. Each asks the live farm, so that a change of the
// config is in force with the next packet; only the listeners stay as they are.
func (s *server) assemble(o serveOptions, images *imagebuild.Dir, loaders string) error {
	farm := s.live.Farm()
	cfg := farm.Config.Server
	if !farm.Address().IsValid() {
		return fmt.Errorf("%s: server.address is not set, and interface %s has no IPv4 address on this host", o.config, cfg.Interfaces[0])
	}
	s.live.Recall = s.store.Leases.Known
	s.live.NextBoot = s.store.NextBoots.Of
	s.unknowns = inbox{s.live, s.store.Unknowns}
	s.metrics = newMetrics(s.live, s.store, s.unknowns)
	s.store.Boots.OnStep = s.metrics.step
	s.metrics.watchBoots(s.store.Boots.List)
	s.store.Boots.NeedDiscover = cfg.DHCP != pools.DHCPOff
	if err := s.tendNodes(o.state); err != nil {
		return err
	}
	ready := &readiness{live: s.live, images: images, loaders: loaders, clusters: s.clusters}
	s.metrics.watch(ready)
	s.addresses = &addresses{live: s.live, store: s.store}

	s.tendHardware(o.state)

	s.serveDHCP(cfg)
	templates, err := loadTemplates(farm)
	if err != nil {
		return err
	}
	s.http = &httpboot.Server{
		Farm: s.live, Addresses: s.addresses, Boots: s.store.Boots, Joiner: s.clusters, Images: imageDir{images},
		Addr: cfg.HTTP, URL: farm.URL(), Loaders: loaders, Log: s.part("http"),
		Templates: templates, TakeNextBoot: s.store.NextBoots.Take,
		OnRequest: s.metrics.request, OnRefused: s.metrics.refused, OnQueue: s.metrics.queue,
		Limits: httpboot.Limits{MaxImages: cfg.MaxConcurrentImages, Grace: time.Duration(cfg.Grace)},
	}
	if err := s.secureNodes(o.state, farm); err != nil {
		return err
	}
	if err := s.serveTFTP(cfg, loaders); err != nil {
		return err
	}
	s.web = &web.Server{
		Farm: s.live, Nodes: changes{s.live, s.clusters.Refresh}, Boots: s.store.Boots, Leases: s.store.Leases, Unknowns: s.unknowns, Addr: cfg.API,
		NextBoots: s.store.NextBoots, CheckImage: func(ref string) error { _, err := images.Lookup(ref); return err },
		Hardware: s.hardware, Power: s.hardware, Audit: s.store.Audit,
		Tokens: s.clusters, Metrics: s.metrics.handler(), Moves: s.clusters.Moves, Log: s.part("web"),
		Ready: func(ctx context.Context) []web.Problem { return append(ready.problems(ctx), s.hardware.warnings()...) },
	}
	s.warn(ready)
	return s.protect(o, farm)
}

// serveDHCP makes a DHCP server for each interface, unless another host does it
// all.
func (s *server) serveDHCP(cfg pools.Server) {
	if cfg.DHCP == pools.DHCPOff {
		return
	}
	for i, name := range cfg.Interfaces {
		if slices.Contains(cfg.Interfaces[:i], name) {
			continue
		}
		d := &dhcp.Server{
			Farm: s.live, Leases: s.store.Leases, Owner: s.addresses.owner, Interface: name, Mode: cfg.DHCP,
			Probe: cfg.ARPProbe == nil || *cfg.ARPProbe, Log: s.part("dhcp"), OnExchange: s.exchange,
		}
		s.metrics.watchDHCP(d)
		s.dhcp = append(s.dhcp, d)
	}
}

// protect gives the people-facing listener its token and its certificate.
func (s *server) protect(o serveOptions, farm *pools.Farm) error {
	file := filepath.Join(o.state, "api.token")
	token, isNew, err := web.LoadToken(file)
	if err != nil {
		return err
	}
	s.web.Token = token
	if isNew {
		s.log.Info("made the token for the REST API and the page", "file", file)
	}
	if t := farm.Config.Server.APITLS; t != nil {
		pair, err := tls.LoadX509KeyPair(farm.Path(t.Cert), farm.Path(t.Key))
		if err != nil {
			return fmt.Errorf("server.apiTLS: %w", err)
		}
		s.web.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	return nil
}

func (s *server) part(name string) *slog.Logger { return s.log.With("part", name) }

// warn says at start what is missing. /readyz says it as long as it is.
func (s *server) warn(r *readiness) {
	for _, p := range r.local() {
		s.log.Warn("not ready", "what", p.Part, "problem", p.Problem)
	}
}

// run binds every socket, then serves until ctx ends or a part fails.
func (s *server) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var parts sync.WaitGroup
	start := func(name string, serve func(context.Context) error) {
		parts.Go(func() {
			if err := serve(ctx); err != nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	serve, err := s.listen()
	if err != nil {
		return err
	}
	for name, part := range serve {
		start(name, part)
	}
	start("reload", s.watchConfig)
	start("hardware", s.hardware.Run)
	cfg := s.live.Farm().Config.Server
	s.log.Info("serving", "version", version(), "config", s.live.Farm().Source, "address", s.live.Farm().Address(),
		"interfaces", cfg.Interfaces, "dhcp", cfg.DHCP, "http", cfg.HTTP, "tftp", cfg.TFTP, "api", cfg.API)
	<-ctx.Done()
	s.log.Info("stopping: running transfers may end")
	parts.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// listen binds all sockets and returns what serves them.
func (s *server) listen() (map[string]func(context.Context) error, error) {
	serve := map[string]func(context.Context) error{}
	for _, d := range s.dhcp {
		if err := d.Listen(); err != nil {
			return nil, fmt.Errorf("dhcp on %s: %w", d.Interface, err)
		}
		serve["dhcp on "+d.Interface] = d.Serve
	}
	if err := s.tftp.Listen(); err != nil {
		return nil, fmt.Errorf("tftp: %w", err)
	}
	serve["tftp"] = s.tftp.Serve
	nodes, err := s.http.Listen()
	if err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}
	var secure []net.Listener
	if s.http.Secure != nil {
		l, err := s.http.ListenSecure()
		if err != nil {
			return nil, fmt.Errorf("https: %w", err)
		}
		secure = append(secure, l)
	}
	serve["http"] = func(ctx context.Context) error { return s.http.Serve(ctx, nodes, secure...) }
	people, err := s.web.Listen()
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	serve["api"] = func(ctx context.Context) error { return s.web.Serve(ctx, people) }
	return serve, nil
}

// close ends what newServer started.
func (s *server) close() {
	if s.clusters != nil {
		s.clusters.Close()
	}
	if err := s.store.Close(); err != nil {
		s.log.Error("state not stored", "err", err)
	}
}

// relaxGC lets the heap grow to five times of what is in use, some 100 MB,
// before it is collected: under a storm of requests, which leave much behind
// and keep little, collections take a tenth of the processor otherwise. GOGC
// says otherwise.
func relaxGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}
