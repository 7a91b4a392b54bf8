package server

import (
	"cmp"
	"time"

	"drover/pools"
	"drover/pools/config"
)

// cause is why the config changes, for the log and the history.
type cause struct {
	why      string // for the log
	who      string
	way      pools.ConfigWay
	rollback int // the number of the history that becomes active again
}

// fileItself is who changes the config when nobody has asked over the API.
const fileItself = "config file"

// Reload puts the config file in force. If it has mistakes, they are logged and returned,
// and the old config stays in force. The text why is the cause in the log.
func (s *Server) Reload(why string) error {
	_, err := s.reload(cause{why: why, who: fileItself, way: pools.ConfigByFile}, "")
	return err
}

// reloadFile reads the config file because it has changed, or a signal came. Nobody asked for it
// over the API, so a change is recorded here.
func (s *Server) reloadFile(why string, way pools.ConfigWay) {
	told := s.told.Load()
	r, err := s.reload(cause{why: why, who: fileItself, way: way}, "")
	switch {
	case err != nil:
	case r.Held != nil && s.told.Load() != told:
		s.records.audit(fileItself, "hold the change of the config", pools.AuditChange{Field: "sha256", Before: r.After, After: r.Held.SHA256}, pools.AuditChange{Field: "size", After: r.Held.Size.Counts()})
	case r.Held == nil && r.After != r.Before:
		s.records.audit(fileItself, "reload the config", pools.AuditChange{Field: "sha256", Before: r.Before, After: r.After}, pools.AuditChange{Field: "size", After: r.Size.Counts()})
	}
}

// reload is [Server.Reload], and returns what it has changed. The content with the digest yes is
// not held.
func (s *Server) reload(c cause, yes string) (config.Reloaded, error) {
	return s.change(c, func() (config.Reloaded, error) { return s.Live.ReloadSized(yes) })
}

// change makes a change of the config, tells the parts, and keeps what is active then.
func (s *Server) change(c cause, do func() (config.Reloaded, error)) (config.Reloaded, error) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	r, err := do()
	if err != nil {
		s.metrics.Reloaded(false)
		s.log.Error("config not reloaded, the previous one stays active", "why", c.why, "err", err)
		return r, err
	}
	s.metrics.Reloaded(true)
	s.tellHeld(c.why, r.Held)
	if r.Held != nil && c.rollback == 0 {
		return r, nil // the farm is as it was
	}
	s.farmChanged()
	s.log.Info("config reloaded", "why", c.why, "nodes", len(s.Live.Farm().Nodes()), "size", r.Size.String())
	s.tellRetired(c.why)
	s.keepConfig(c, r)
	if s.Live.NeedsRestart() {
		s.log.Warn("restart pending: server: changed in the config, or the first subnet of IPv4 or IPv6 came")
	}
	return r, nil
}

// tellHeld logs, once for each content of the file, that it is held; nil: it is not.
func (s *Server) tellHeld(why string, held *pools.HeldConfig) {
	if held == nil {
		s.told.Store(nil)
		return
	}
	now := *held
	if old := s.told.Load(); old != nil && old.SHA256 == now.SHA256 && old.Why == now.Why {
		return
	}
	s.told.Store(&now)
	s.log.Warn("config file not active", "why", why, "held", now.Text(), "sha256", now.SHA256, "size", now.Size.String())
}

// keepConfig adds the active config to the history, unless it is its newest one. It does not wait
// for the disk.
func (s *Server) keepConfig(c cause, r config.Reloaded) {
	all := s.Store.Configs.List()
	if r.Text == nil || len(all) > 0 && all[0].SHA256 == r.After {
		return
	}
	v := pools.ConfigVersion{Content: string(r.Text.Main), Included: r.Text.Included, ConfigEntry: pools.ConfigEntry{
		Time: time.Now().UTC().Truncate(time.Second), Who: cmp.Or(c.who, fileItself), Way: c.way, Rollback: c.rollback,
		SHA256: r.After, Bytes: len(r.Text.Main), Nodes: len(s.Live.Farm().Nodes()), Size: r.Size,
	}}
	for _, p := range v.Included {
		v.Bytes += len(p.Content)
	}
	s.Store.Configs.Add(v)
}

// configAtStart keeps and tells what is active at the start.
func (s *Server) configAtStart() {
	r := s.Live.Started()
	c := cause{who: fileItself, way: pools.ConfigAtStart}
	if r.Text != nil && r.Text.Rollback > 0 { // the history may lack it after a crash
		c.way, c.rollback = pools.ConfigRollback, r.Text.Rollback
	}
	s.keepConfig(c, r)
	s.tellHeld("start", r.Held)
}
