package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"drover/pools"
	"drover/pools/config"
	"drover/pools/ilo"
	"drover/web"
)

// Hardware keeps the nodes of the chassis of the config as the chassis have
// them, and switches machines. What takes long is done by goroutines of Run.
type Hardware struct {
	Live  *config.Live
	Nodes interface {
		ChangeNodes(changes []pools.NodeChange) error
	}
	Audit interface {
		Add(entries ...pools.AuditEntry) error
	}
	Hosts    *ilo.HostKeys
	Certs    *ilo.CertPins
	Timeouts ilo.Timeouts
	Switcher ilo.Switcher // its times
	log      *slog.Logger

	onSync  func(chassis string, ok bool)
	onPower func(action string, ok bool)

	changed chan struct{}                  // the config
	orders  chan func(ctx context.Context) // to be done by Run
	locks   locks

	mu    sync.Mutex
	syncs map[string]*chassisSync
	jobs  []*pools.PowerJob // the newest last
}

// NewHardware returns the hardware of the farm in force. Set Audit before [Hardware.Run].
func NewHardware(live *config.Live, log *slog.Logger) *Hardware {
	return &Hardware{
		Live: live, log: log, Nodes: live, onSync: func(string, bool) {}, onPower: func(string, bool) {},
		changed: make(chan struct{}, 1), orders: make(chan func(context.Context)), locks: locks{held: map[string]chan struct{}{}},
		syncs: map[string]*chassisSync{},
	}
}

// tendHardware has the nodes of chassis follow them, and machines switched. Keys
// are pinned beside the state.
func (s *Server) tendHardware(dir string) {
	h := NewHardware(s.Live, s.part("hardware"))
	h.Nodes, h.Audit = changes{s.Live, s.clusters.Refresh}, s.Store.Audit
	h.Hosts, h.Certs = NewPins(dir, func(address, fingerprint string) {
		h.log.Info("pinned at first use", "address", address, "fingerprint", fingerprint)
	})
	s.metrics.WatchHardware(h)
	s.Hardware = h
}

// SyncOf returns the sync of a chassis, nil when there is none of that name.
func (h *Hardware) SyncOf(chassis string) *ilo.Sync {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.syncs[chassis]; s != nil {
		return s.Sync
	}
	return nil
}

// chassisSync is the sync of one chassis under way.
type chassisSync struct {
	*ilo.Sync
	of    pools.Chassis
	print [sha256.Size]byte // of the password
	stop  context.CancelFunc
}

// Run works until ctx ends.
func (h *Hardware) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	h.set(ctx, &all)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-h.changed:
			h.set(ctx, &all)
		case order := <-h.orders:
			all.Go(func() { order(ctx) })
		}
	}
}

// Reload takes the chassis of a config that has changed. It does not wait.
func (h *Hardware) Reload() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// set starts the sync of each chassis that is new or has changed, and ends that
// of those that have gone. A password that was changed is tried: the one before
// may have been refused.
func (h *Hardware) set(ctx context.Context, all *sync.WaitGroup) {
	farm := h.Live.Farm()
	a := h.access(farm)
	h.mu.Lock()
	defer h.mu.Unlock()
	wanted := map[string]bool{}
	for _, c := range farm.Config.Chassis {
		wanted[c.Name] = true
		password, _ := a.secret(c.PasswordFile) // the sync says what is wrong with it
		print := sha256.Sum256([]byte(password))
		old := h.syncs[c.Name]
		if old != nil && reflect.DeepEqual(old.of, c) && old.print == print {
			continue
		}
		s, err := h.newSync(c)
		if err != nil { // the config was checked
			h.log.Error("chassis not read", "chassis", c.Name, "err", err)
			continue
		}
		if old != nil {
			old.stop()
		}
		syncCtx, stop := context.WithCancel(ctx)
		h.syncs[c.Name] = &chassisSync{Sync: s, of: c, print: print, stop: stop}
		all.Go(func() { s.Run(syncCtx) })
	}
	for _, n := range farm.Shadowed() {
		h.log.Warn("node of a chassis is left out: the config file declares its name, a MAC, its address or its place", "node", n.Name, "place", n.Place.String(), "macs", n.MACs)
	}
	for name, s := range h.syncs {
		if !wanted[name] {
			s.stop()
			delete(h.syncs, name)
			h.log.Info("chassis is not in the config any more, its nodes stay", "chassis", name)
		}
	}
}

func (h *Hardware) access(farm *pools.Farm) access {
	return access{farm: farm, hosts: h.Hosts, certs: h.Certs, timeouts: h.Timeouts}
}

// newSync makes the sync of a chassis.
func (h *Hardware) newSync(c pools.Chassis) (*ilo.Sync, error) {
	names := NamingOf(c)
	names.Place = true
	namer, err := ilo.NewNamer(names)
	if err != nil {
		return nil, err
	}
	chosen, err := ilo.ParseSelection(c.Nodes)
	if err != nil {
		return nil, err
	}
	return &ilo.Sync{
		Chassis: c.Name, Namer: namer, Options: ilo.Options{Select: chosen}, Interval: c.Interval.D(),
		Read: func(ctx context.Context) (*ilo.Inventory, error) {
			free, err := h.locks.take(ctx, "chassis "+c.Name)
			if err != nil {
				return nil, err
			}
			defer free()
			inv, _, err := h.access(h.Live.Farm()).read(ctx, c)
			return inv, err
		},
		Stored: func() ilo.Stored {
			return ilo.Stored{Nodes: h.Live.Farm().Nodes(), Fixed: DeclaredElsewhere}
		},
		Write:  func(changes []pools.NodeChange) error { return h.store(c.Name, changes) },
		Report: h.report,
	}, nil
}

// DeclaredElsewhere says why a node cannot be changed.
func DeclaredElsewhere(n pools.NodeInfo) string {
	if !n.Declared() {
		return ""
	}
	return fmt.Sprintf("it is declared in %s: change it there", n.Source.Place())
}

// store makes the changes of a chassis in one step.
func (h *Hardware) store(chassis string, changes []pools.NodeChange) error {
	if err := h.Nodes.ChangeNodes(changes); err != nil {
		return err
	}
	now := time.Now()
	var entries []pools.AuditEntry
	for _, c := range changes {
		action := "change node"
		if c.Old == nil {
			action = "add node"
		}
		entries = append(entries, pools.AuditEntry{Time: now, Who: "chassis " + chassis, Action: action, Node: c.New.Name, Result: "done"})
	}
	h.record(entries...)
	return nil
}

// record keeps what was done already.
func (h *Hardware) record(entries ...pools.AuditEntry) {
	if err := h.Audit.Add(entries...); err != nil {
		h.log.Error("audit not stored", "entries", len(entries), "err", err)
	}
}

// report is told of each reading of a chassis.
func (h *Hardware) report(st ilo.SyncStatus) {
	h.onSync(st.Chassis, st.Error == "")
	if st.Error != "" {
		h.log.Warn("chassis not read, its nodes stay as they are", "chassis", st.Chassis, "err", st.Error, "again", !st.Stopped)
		return
	}
	for _, c := range st.Changes {
		switch c.Kind {
		case ilo.New, ilo.Changed:
			h.log.Info("node of a chassis stored", "kind", string(c.Kind), "chassis", st.Chassis, "node", c.Name, "macs", c.New.MACs, "why", c.Why)
		case ilo.Conflict:
			h.log.Warn("node of a chassis not stored", "chassis", st.Chassis, "node", c.Name, "why", c.Why)
		}
	}
	h.log.Debug("chassis read", "chassis", st.Chassis, "nodes", st.Nodes, "counts", st.Counts)
}

// Chassis is how all chassis are.
func (h *Hardware) Chassis() []pools.ChassisStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := []pools.ChassisStatus{}
	for _, name := range slices.Sorted(maps.Keys(h.syncs)) {
		s := h.syncs[name]
		st := s.Status()
		cs := pools.ChassisStatus{
			Name: name, Address: s.of.Address, Via: s.of.Via, Pool: s.of.Pool, Interval: s.of.Interval,
			Asking: st.Asking, Last: st.Time, Good: st.Good, Nodes: st.Nodes, Error: st.Error, Stopped: st.Stopped,
			Counts: map[string]int{}, Problems: problemsOf(st),
		}
		for kind, n := range st.Counts {
			cs.Counts[string(kind)] = n
		}
		out = append(out, cs)
	}
	return out
}

// problemsOf is what a reading could not store, and what is odd.
func problemsOf(st ilo.SyncStatus) (lines []string) {
	for _, c := range st.Changes {
		if c.Kind == ilo.Conflict || c.Kind == ilo.Incomplete || c.Kind == ilo.Missing {
			lines = append(lines, c.Name+": "+c.Why)
		}
	}
	return append(lines, st.Notes...)
}

// Sync has a chassis asked now.
func (h *Hardware) Sync(name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.syncs[name]
	if s == nil {
		return fmt.Errorf("%w %q", pools.ErrNoChassis, name)
	}
	s.Kick()
	return nil
}

// warnings are the chassis whose nodes may be out of date. Machines that are
// known boot all the same, so that the server is ready.
func (h *Hardware) Warnings() (out []web.Problem) {
	for _, c := range h.Chassis() {
		if c.Error == "" {
			continue
		}
		text := c.Error
		if c.Stopped {
			text += " (mend it, then: drover chassis sync " + c.Name + ")"
		}
		out = append(out, web.Problem{Part: "chassis " + c.Name, Problem: text, Warning: true})
	}
	return out
}

// locks lets one at a time talk to a management processor: that of a chassis
// takes no more.
type locks struct {
	mu   sync.Mutex
	held map[string]chan struct{}
}

// take waits until nobody else has the lock.
func (l *locks) take(ctx context.Context, name string) (free func(), err error) {
	l.mu.Lock()
	c := l.held[name]
	if c == nil {
		c = make(chan struct{}, 1)
		l.held[name] = c
	}
	l.mu.Unlock()
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), fmt.Errorf("%s is in use", name))
	}
}
