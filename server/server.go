// Package server is drover serve: it opens the state and the config, connects DHCP,
// TFTP, HTTP, clusters, hardware and the REST API, binds their sockets, reloads the
// config, and reports metrics and readiness.
//
//	s, err := server.New(server.Options{Config: "drover.yaml", State: dir, Log: log})
//	defer s.Close()
//	err = s.Run(ctx)
//
// The parts decide; this package only connects them. It knows nothing of flags, of
// printing, and of exit codes.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"drover/dhcp"
	"drover/dhcp/dhcp6d"
	"drover/dhcp/dhcpd"
	"drover/dhcp/ra"
	"drover/hardware"
	"drover/httpboot"
	"drover/httpboot/nodeconfig"
	"drover/httpboot/script"
	"drover/imagebuild"
	"drover/kube"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/machines"
	"drover/pools/resolve"
	"drover/server/catalog"
	"drover/server/localserver"
	"drover/server/metrics"
	"drover/server/netconsole"
	"drover/server/network"
	"drover/server/peers"
	"drover/server/readiness"
	"drover/server/systemd"
	"drover/server/traces"
	"drover/state"
	"drover/tenants"
	"drover/tftp"
	"drover/web"
	"drover/web/api"
)

// Options are the files of a [Server] and its log.
type Options struct {
	Config  string // the farm's config file
	State   string // directory of the state: leases, boots, API nodes, keys
	Images  string // directory of images; default State/images
	Loaders string // directory of boot loaders; default State/loaders

	// Restore is what [Server.Run] of the server before has returned. nil: nothing is restored.
	Restore *Restore

	// Version is reported in the log at start.
	Version string
	Log     *slog.Logger
	// LinesLost returns the number of lines of Log that were lost, for metrics. nil:
	// none were.
	LinesLost func() uint64
}

// Server holds every part of drover serve and connects them. Make it with [New].
type Server struct {
	Live     *config.Live // the farm in force; reloaded with the config file
	Store    *state.Store // leases, boots, API nodes and the rest of the state
	Machines *machines.Directory
	DHCP     []*dhcpd.Server   // one for each interface
	DHCP6    []*dhcp6d.Server  // the same for IPv6; none without a subnet of IPv6
	RA       []*ra.Server      // as DHCP; none: router solicitations are not answered
	Web      *web.Server       // REST API and page
	Hardware *hardware.Service // chassis and power

	version  string
	stateDir string
	apiCert  string // file of the certificate of Web; empty: plain HTTP
	log      *slog.Logger
	clusters *kube.Clusters
	tenants  *tenants.Controller // nil without server.objects
	objects  *adminObjects       // nil: the config asks for none
	metrics  *metrics.Metrics

	tftp       *tftp.Server
	tftp6      *tftp.Server       // of IPv6; nil without a subnet of IPv6
	netconsole *netconsole.Server // nil: the config asks for none
	http       *httpboot.Server
	traces     *traces.Sender // nil: the config names no collector
	peers      *peers.Peers   // nil: the config names no other server

	scripts *script.Renderer // of TFTP and HTTP
	disks   *readiness.Disks

	networks      network.Interfaces
	nodes         []*network.Listener          // the node-facing listeners that follow the boot addresses
	sockets       []*network.Listener          // all node-facing listeners; Close closes them
	bootAddresses atomic.Pointer[[]netip.Addr] // of the node-facing listeners; nil: all of this host

	changing   sync.Mutex                        // held while the parts are told of another farm
	reloading  sync.Mutex                        // held while the config changes, so that the history has the right order
	told       atomic.Pointer[pools.HeldConfig]  // the content of the config file that is held, as the log told it last
	newWatcher func() (*fsnotify.Watcher, error) // for the config
	restores   chan *Restore                     // that clients ask for
	records    *records                          // of changes of the config
}

// New opens the state, reads the config and connects the parts. It binds no
// socket. Mistakes in the config are returned as [pools.Errors], before anything is
// written. Call [Server.Close] after use.
func New(o Options) (*Server, error) {
	if o.Images == "" {
		o.Images = filepath.Join(o.State, "images")
	}
	if o.Loaders == "" {
		o.Loaders = filepath.Join(o.State, "loaders")
	}
	defer systemd.Starting()()
	restored, err := finishRestore(o)
	if err != nil {
		return nil, err
	}
	source := config.Source{File: o.Config, Copy: filepath.Join(o.State, lastGoodConfig)}
	farm, _, err := source.Load()
	if err != nil {
		return nil, err
	}
	store, err := openState(o)
	if err != nil {
		return nil, err
	}
	s := &Server{
		version: o.Version, stateDir: o.State, log: withBoots(o.Log, store.Boots.Current), Store: store, newWatcher: fsnotify.NewWatcher,
		restores: make(chan *Restore, 1), records: newRecords(store, o.Log),
	}
	s.recordRestore(o, restored)
	if s.Live, err = config.NewLive(source, store.Nodes, s.lastObjects(o.State, farm)...); err == nil {
		if refused := s.Live.Status().Refused; refused != nil {
			s.log.Error("config file refused: starting from the last good one", "copy", source.Copy, "err", refused)
		}
		err = s.assemble(o, &catalog.Catalog{Dir: imagebuild.Open(o.Images), Farm: s.Live, Channels: store.Channels, OnPromote: s.promoted})
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// assemble makes the parts. Each reads the live farm, so that a change of the
// config applies to the next packet. Only the listeners stay as they were at start.
func (s *Server) assemble(o Options, images *catalog.Catalog) error {
	farm := s.Live.Farm()
	cfg := farm.Config.Server
	s.Store.Leases.Reserved = func(a netip.Addr) bool { return s.Live.Farm().Reserved(a) }
	s.Store.Leases6.Reserved = s.Store.Leases.Reserved
	s.Live.SetLeases(leaseAt(s.Store))
	s.Live.SetRetired(s.Store.Retired, time.Now)
	s.configAtStart()
	s.warnLeased()
	s.forgetRemoved() // while the server was down
	s.Machines = newDirectory(s.Live, s.Store)
	s.metrics = metrics.New(s.Live, s.Store)
	s.metrics.Build(o.Version)
	s.metrics.WatchUnknown(s.Machines.Unknown)
	s.metrics.WatchBoots(s.boots().List)
	s.metrics.WatchImages(s.Store.Boots.List, s.countFallBacks)
	s.Store.Boots.NeedDiscover = cfg.DHCP != pools.DHCPOff
	if err := s.startClusters(o.State); err != nil {
		return err
	}
	s.tenants = s.newTenants()
	s.objects = s.newObjects(o.State)
	s.Store.Boots.OnStep, s.Store.Boots.OnGivenUp = s.reached, s.givenUp
	s.metrics.WatchLog(o.LinesLost)
	s.Hardware = s.newHardware(o.State)
	s.disks = readiness.NewDisks(s.log, o.State, o.Images, o.Loaders, s.Store)
	s.networks.Log, s.networks.Changed = s.part("networks"), s.readdress
	ready := s.newReadiness(o, images)

	s.serveDHCP(farm.Config)
	s.serveDHCP6(farm.Config)
	ready.Parts = s.dhcpParts()
	s.serveRA(cfg)
	nodeTLS, err := s.nodeTLS(o.State, farm)
	if err != nil {
		return err
	}
	if s.scripts, err = s.newScripts(o.Loaders, farm, images, nodeTLS); err != nil {
		return err
	}
	s.http = &httpboot.Server{
		Scripts: s.scripts, Boots: s.Store.Boots, Joiner: s.clusters, Clients: s.Machines, Addr: cfg.HTTP, TLS: nodeTLS, Log: s.part("http"),
		Config:    nodeconfig.Maker{References: references{s.Live.Farm, s.clusters}, Gateways: gateways{s.clusters}, Secret: s.Store.Boots.EventSecret},
		OnRequest: s.metrics.Request, OnRefused: s.metrics.Refused, OnQueue: s.metrics.Queue, OnInventory: s.inventory,
		Limits: httpboot.Limits{MaxImages: cfg.MaxConcurrentImages, Grace: time.Duration(cfg.Grace)},
	}
	s.joinPeers(images, nodeTLS, ready)
	s.serveTFTP(cfg, o.Loaders)
	s.serveTFTP6(farm.Config, o.Loaders)
	s.serveNetconsole(cfg)
	if cfg.Traces != "" {
		s.traces = &traces.Sender{URL: cfg.Traces, Version: o.Version, Log: s.part("traces"), OnSent: s.metrics.Traces}
	}
	s.serveWeb(o, farm, images, ready)
	ready.Log(s.log)
	return s.loadAPICredentials(o, farm)
}

// newReadiness makes the checks of /readyz. The parts that it watches exist already.
func (s *Server) newReadiness(o Options, images *catalog.Catalog) *readiness.Checks {
	ready := &readiness.Checks{
		Live: s.Live, Images: images, Loaders: o.Loaders,
		Clusters: s.clusters.Check, Chassis: s.Hardware.Warnings, Disks: s.disks, State: s.Store,
		Proc: os.DirFS("/proc"), Interfaces: s.networks.Missing, Expiries: s.clusters.Expiries, Renewals: s.clusters.Renewals,
	}
	if s.objects != nil {
		ready.Objects = s.adminProblems
	}
	s.metrics.WatchReadiness(ready)
	s.metrics.WatchNeighbors(s.Live, ready.Proc)
	return ready
}

// serveWeb makes the server of the REST API and the page.
func (s *Server) serveWeb(o Options, farm *resolve.Farm, images *catalog.Catalog, ready *readiness.Checks) {
	s.Web = &web.Server{Addr: farm.Config.Server.API, Metrics: s.metrics.Handler(), API: &api.API{
		Farm: s.Live, Nodes: s.changes(), Boots: s.boots(), Leases: leases{s.Store}, Unknowns: unknowns{s.Machines, s.Store.Unknowns},
		NextBoots: s.Store.NextBoots, Channels: channels{images}, FallBacks: fallBacks{s.Store.FallBacks}, CheckImage: func(ref string) error { _, err := images.Lookup(ref); return err },
		Images: images.List, Generations: images.Generations, Plans: s.Machines,
		Hardware: s.Hardware, Power: s.Hardware, Audit: s.Store.Audit,
		ConfigFile: configFile{s}, Configs: configFile{s}, Restorer: restorer{o.State, s.restores}, Tokens: s.clusters, Moves: s.clusters.Moves, Version: s.version, Log: s.part("web"), Now: time.Now,
		Ready: func(context.Context) []api.Problem { return ready.Problems() },
	}, Hosts: hosts(farm.Config.Server, farm), Page: s.pageSources()}
	if k := farm.Config.Server.Socket; k != nil {
		s.Web.Socket = &web.Socket{Path: k.Path, Group: k.Group, Role: k.Role}
	}
	s.metrics.WatchNodes(s.Live, s.Web.API.CountStates)
}

// serveDHCP makes a DHCP server for each interface. It makes none when another host
// does all of DHCP, and none to give addresses when all subnets are of IPv6.
func (s *Server) serveDHCP(conf pools.Config) {
	cfg := conf.Server
	if cfg.DHCP == pools.DHCPOff || cfg.DHCP == pools.DHCPFull && !conf.HasIPv4() {
		return
	}
	var once *dhcpd.Once
	if len(cfg.Interfaces) > 1 {
		once = new(dhcpd.Once)
	}
	for i, name := range cfg.Interfaces {
		if slices.Contains(cfg.Interfaces[:i], name) {
			continue
		}
		d := &dhcpd.Server{
			Responder: dhcp.Responder{Farm: s.Machines, Leases: s.Store.Leases, Mode: cfg.DHCP},
			Interface: name, Once: once, Machines: s.Machines, Networks: s.Machines,
			Probe: cfg.ARPProbe == nil || *cfg.ARPProbe, Log: s.part("dhcp"), OnExchange: s.exchange,
		}
		s.metrics.WatchDHCP(d)
		s.DHCP = append(s.DHCP, d)
	}
}

// part returns the log of one part.
func (s *Server) part(name string) *slog.Logger { return s.log.With("part", name) }

// Run binds every socket, then serves until ctx ends or a part fails. When ctx
// ends, Run waits for transfers in progress, up to server.grace of the config, and goes on to serve
// machines meanwhile.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	parts := newStages(ctx, cancel)
	start := parts.start
	serve, err := s.listen()
	if err != nil {
		return err
	}
	for name, part := range serve {
		start(name, part)
	}
	for _, r := range s.RA {
		start("router advertisements on "+r.Interface, r.Serve)
	}
	start("reload", s.watchConfig)
	start("records", s.records.run)
	start("hardware", s.Hardware.Run)
	start("disks", s.disks.Run)
	start("networks", s.networks.Run)
	start("retired nodes", s.expireRetired)
	if s.traces != nil {
		start("traces", s.traces.Run)
	}
	if s.peers != nil {
		start("peers", s.peers.Run)
	}
	start("restore", s.awaitRestore)
	if s.tenants != nil {
		start("tenants", s.tenants.Run)
	}
	if s.objects != nil {
		start("objects", s.runObjects)
	}
	cfg := s.Live.Farm().Config.Server
	s.log.Info("serving", "version", s.version, "config", s.Live.Farm().Source, "address", s.Live.Farm().Address(),
		"interfaces", cfg.Interfaces, "dhcp", cfg.DHCP, "http", cfg.HTTP, "tftp", cfg.TFTP, "api", cfg.API)
	tell := s.tellSystemd(ctx)
	<-ctx.Done()
	s.log.Info("stopping: running transfers may end")
	err = context.Cause(ctx)
	if errors.Is(err, context.Canceled) { // by a signal, not by the failure of a part, or for a restore
		s.drain(parts)
		err = nil
	}
	parts.endAll()
	tell()
	return err
}

// listen binds all sockets and returns the functions that serve them, by the name of
// the part.
func (s *Server) listen() (map[string]func(context.Context) error, error) {
	serve := map[string]func(context.Context) error{}
	s.networks.Listen() // before the addresses are read: no change is missed
	s.readdress()
	for _, d := range s.DHCP {
		if err := s.listenOn(d.Interface, "dhcp on "+d.Interface, d, dhcpd.ErrNotReady, serve); err != nil {
			return nil, err
		}
	}
	if err := s.tftp.Listen(); err != nil {
		return nil, network.InUse(err)
	}
	serve["tftp"] = s.tftp.Serve
	if err := errors.Join(s.listen6(serve), s.listenNetconsole(serve)); err != nil {
		return nil, err
	}
	cfg := s.Live.Farm().Config.Server
	inherited := s.inheritSockets()
	defer inherited.Close()
	nodes, err := s.listenNodes(cfg.HTTP, inherited, s.http.Listen)
	if err != nil {
		return nil, fmt.Errorf("http: %w", network.InUse(err))
	}
	var secure []net.Listener
	if s.http.TLS != nil {
		l, err := s.listenNodes(cfg.HTTPS, inherited, s.http.ListenTLS)
		if err != nil {
			return nil, fmt.Errorf("https: %w", network.InUse(err))
		}
		secure = append(secure, l)
	}
	serve["http"] = func(ctx context.Context) error { return s.http.Serve(ctx, nodes, secure...) }
	people, err := s.Web.Listen()
	if err != nil {
		return nil, fmt.Errorf("api: %w", network.InUse(err))
	}
	if err := localserver.Write(s.stateDir, people.Addr(), s.apiCert); err != nil {
		s.log.Error("cannot write api.addr", "err", err)
	}
	sockets := s.listenSocket()
	serve["api"] = func(ctx context.Context) error { return s.Web.Serve(ctx, people, sockets...) }
	return serve, nil
}

// Close ends the parts that [New] started, and closes the state.
func (s *Server) Close() {
	if s.clusters != nil {
		s.clusters.Close()
	}
	if s.Web != nil && s.Web.Named != nil {
		s.Web.Named.Close()
	}
	if err := s.Store.Close(); err != nil {
		s.log.Error("state not stored", "err", err)
	}
	for _, l := range s.sockets { // last: until now connections could wait
		_ = l.Close() // nobody accepts any more
	}
}

// newDirectory returns the directory of a farm and its state.
func newDirectory(live *config.Live, store *state.Store) *machines.Directory {
	return &machines.Directory{Farm: live, Leases: store.Leases, Leases6: store.Leases6, Offers: leases{store}, Boots: store.Boots, NextBoots: store.NextBoots, Unknowns: store.Unknowns}
}
