package server

import (
	"drover/pools"
	"drover/pools/config"
)

// Reload puts the config file in force. If it has mistakes, they are logged and returned,
// and the old config stays in force. The text why is the cause in the log.
func (s *Server) Reload(why string) error {
	_, err := s.reload(why)
	return err
}

// reloadFile reads the config file because it has changed, or a signal came. Nobody asked for it
// over the API, so a change is recorded here.
func (s *Server) reloadFile(why string) {
	r, err := s.reload(why)
	if err == nil && r.After != r.Before {
		s.records.audit("config file", "reload the config", pools.AuditChange{Field: "sha256", Before: r.Before, After: r.After}, pools.AuditChange{Field: "size", After: r.Size.Counts()})
	}
}

// reload is [Server.Reload], and returns what it has changed.
func (s *Server) reload(why string) (config.Reloaded, error) {
	r, err := s.Live.ReloadSized()
	if err != nil {
		s.metrics.Reloaded(false)
		s.log.Error("config not reloaded, the previous one stays active", "why", why, "err", err)
		return r, err
	}
	s.farmChanged()
	s.metrics.Reloaded(true)
	s.log.Info("config reloaded", "why", why, "nodes", len(s.Live.Farm().Nodes()), "size", r.Size.String())
	s.tellRetired(why)
	if s.Live.NeedsRestart() {
		s.log.Warn("restart pending: server: changed in the config, or the first subnet of IPv4 or IPv6 came")
	}
	return r, nil
}
