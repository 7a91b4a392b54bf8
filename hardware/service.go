package hardware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"drover/hardware/bmc"
	"drover/hardware/importer"
	"drover/hardware/moonshot"
	"drover/pools"
	"drover/pools/audit"
	"drover/pools/resolve"
)

// Service updates the nodes of the chassis of the config from the chassis, and switches
// machines. [Service.Run] does both. Create it with [New], and set the fields before
// Run.
type Service struct {
	Farm interface {
		Farm() *resolve.Farm // the farm in force
	}
	Nodes interface {
		ChangeNodes(changes []pools.NodeChange) error
	}
	Audit interface {
		Add(entries ...pools.AuditEntry) error
	}
	// Drain cordons the Node of a machine and evicts its pods, for at most limit; progress
	// gets what is left. After an error the Node is as it was. done must be called at the
	// end. nil: there are no clusters.
	Drain func(ctx context.Context, node string, limit time.Duration, progress func(string)) (done func(switched bool), err error)
	// Firmware returns the firmware that a machine booted with last, "" when it is unknown. IPMI needs
	// it: a machine ignores boot flags of another kind. nil: it is unknown of all.
	Firmware func(mac pools.MAC) pools.Firmware
	Login    bmc.Login    // pins and timeouts of all logins
	Switcher bmc.Switcher // Poll and Wait
	Log      *slog.Logger

	OnSync  func(chassis string, ok bool) // after each reading of a chassis
	OnPower func(action string, ok bool)  // after each machine that was switched

	changed chan struct{}                  // the config was reloaded
	queue   chan func(ctx context.Context) // power jobs, for Run
	locks   locks

	mu    sync.Mutex
	syncs map[string]*chassisSync
	jobs  []*pools.PowerJob // the newest last
}

// New returns a service without hooks.
func New() *Service {
	return &Service{
		OnSync: func(string, bool) {}, OnPower: func(string, bool) {},
		changed: make(chan struct{}, 1), queue: make(chan func(context.Context)),
		locks: locks{held: map[string]chan struct{}{}}, syncs: map[string]*chassisSync{},
	}
}

// chassisSync is a running sync.
type chassisSync struct {
	sync     *Sync
	password bmc.Secret // at its start
	stop     context.CancelFunc
}

// Run reads chassis and executes power jobs until ctx ends. It returns nil.
func (s *Service) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	s.startSyncs(ctx, &all)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
			s.startSyncs(ctx, &all)
		case job := <-s.queue:
			all.Go(func() { job(ctx) })
		}
	}
}

// Reload makes Run apply the chassis of a changed config. It does not wait.
func (s *Service) Reload() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// startSyncs starts the sync of each new or changed chassis, and ends the sync of each
// chassis that was removed from the config. A changed password also starts a new sync,
// because the old one may have been refused.
func (s *Service) startSyncs(ctx context.Context, all *sync.WaitGroup) {
	farm := s.Farm.Farm()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range farm.Config.Chassis {
		login, _ := s.Login.ForChassis(farm, c) // the sync reports the error
		old := s.syncs[c.Name]
		if old != nil && reflect.DeepEqual(old.sync.Chassis, c) && old.password == login.Password {
			continue
		}
		next, err := s.newSync(c)
		if err != nil { // the config was checked
			s.Log.Error("chassis not read", "chassis", c.Name, "err", err)
			continue
		}
		if old != nil {
			old.stop()
		}
		syncCtx, stop := context.WithCancel(ctx)
		s.syncs[c.Name] = &chassisSync{sync: next, password: login.Password, stop: stop}
		all.Go(func() { next.Run(syncCtx) })
	}
	for _, n := range farm.Shadowed() {
		s.Log.Warn("node of a chassis is left out: the config file declares its name, a MAC, its address or its place", "node", n.Name, "place", n.ChassisSlot.String(), "macs", n.MACs)
	}
	for name, old := range s.syncs {
		if _, ok := farm.Chassis(name); !ok {
			old.stop()
			delete(s.syncs, name)
			s.Log.Info("chassis removed from the config, its nodes stay", "chassis", name)
		}
	}
}

// newSync returns the sync of a chassis.
func (s *Service) newSync(c pools.Chassis) (*Sync, error) {
	namer, err := importer.NewNamer(c, true)
	if err != nil {
		return nil, err
	}
	chosen, err := pools.ParseSelection(c.Nodes)
	if err != nil {
		return nil, err
	}
	return &Sync{
		Chassis: c, Namer: namer, Options: importer.Options{Select: chosen},
		Read: func(ctx context.Context) (*moonshot.Inventory, error) { return s.read(ctx, c) },
		Stored: func() importer.Stored {
			return importer.Stored{Nodes: s.Farm.Farm().Nodes(), Fixed: importer.DeclaredElsewhere}
		},
		Write:  func(changes []pools.NodeChange) error { return s.store(c.Name, changes) },
		OnRead: s.report,
	}, nil
}

// read reads the inventory of a chassis while it holds the chassis' lock.
func (s *Service) read(ctx context.Context, c pools.Chassis) (*moonshot.Inventory, error) {
	unlock, err := s.locks.lock(ctx, "chassis "+c.Name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	m, err := s.open(s.Farm.Farm(), c)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	inv, _, err := m.Inventory(ctx)
	return inv, err
}

// store stores the changes of a chassis in one step.
func (s *Service) store(chassis string, changes []pools.NodeChange) error {
	if err := s.Nodes.ChangeNodes(changes); err != nil {
		return err
	}
	now := time.Now()
	var entries []pools.AuditEntry
	for _, c := range changes {
		action := "change node"
		if c.Old == nil {
			action = "add node"
		}
		entries = append(entries, pools.AuditEntry{Time: now, Actor: "chassis " + chassis, Action: action, Node: c.New.Name, Result: "done", Changes: audit.Changes(c)})
	}
	s.record(entries...)
	return nil
}

// record adds completed actions to the audit. It logs a failure.
func (s *Service) record(entries ...pools.AuditEntry) {
	if err := s.Audit.Add(entries...); err != nil {
		s.Log.Error("audit not stored", "entries", len(entries), "err", err)
	}
}

// report logs the result of a reading.
func (s *Service) report(st pools.ChassisStatus, changes []importer.Change) {
	s.OnSync(st.Name, st.Error == "")
	if st.Error != "" {
		s.Log.Warn("chassis not read, its nodes stay as they are", "chassis", st.Name, "err", st.Error, "again", !st.Stopped)
		return
	}
	for _, c := range changes {
		switch c.Kind {
		case importer.New, importer.Changed:
			s.Log.Info("node of a chassis stored", "kind", string(c.Kind), "chassis", st.Name, "node", c.Name, "macs", c.New.MACs, "why", c.Why)
		case importer.Conflict:
			s.Log.Warn("node of a chassis not stored", "chassis", st.Name, "node", c.Name, "why", c.Why)
		}
	}
	s.Log.Debug("chassis read", "chassis", st.Name, "nodes", st.Nodes, "counts", st.Counts)
}

// Chassis returns the status of all chassis, by name.
func (s *Service) Chassis() []pools.ChassisStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []pools.ChassisStatus{}
	for _, name := range slices.Sorted(maps.Keys(s.syncs)) {
		out = append(out, s.syncs[name].sync.Status())
	}
	return out
}

// Sync starts a reading of a chassis. It does not wait.
func (s *Service) Sync(name string) error {
	c := s.SyncOf(name)
	if c == nil {
		return fmt.Errorf("%w %q", pools.ErrNoChassis, name)
	}
	c.Trigger()
	return nil
}

// SyncOf returns the sync of a chassis, nil when there is none of that name.
func (s *Service) SyncOf(chassis string) *Sync {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.syncs[chassis]; c != nil {
		return c.sync
	}
	return nil
}

// Warnings returns the errors of chassis whose nodes may be out of date, by name. They
// do not keep known machines from booting.
func (s *Service) Warnings() map[string]string {
	out := map[string]string{}
	for _, c := range s.Chassis() {
		switch {
		case c.Stopped:
			out[c.Name] = c.Error + " (mend it, then: drover chassis sync " + c.Name + ")"
		case c.Error != "":
			out[c.Name] = c.Error
		}
	}
	return out
}

// locks holds a lock for each management processor, because that of a chassis accepts
// only one connection at a time.
type locks struct {
	mu   sync.Mutex
	held map[string]chan struct{}
}

// lock waits for the lock of that name, and returns the function that releases it. It
// fails when ctx ends first.
func (l *locks) lock(ctx context.Context, name string) (unlock func(), err error) {
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
