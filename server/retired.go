package server

import (
	"context"
	"time"

	"drover/pools/boots"
	"drover/pools/config"
)

// retiredEvery is the interval at which retired nodes are forgotten whose time is over.
const retiredEvery = time.Minute

// expireRetired forgets retired nodes, with their boots, until ctx is done.
func (s *Server) expireRetired(ctx context.Context) error {
	tick := time.NewTicker(retiredEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if s.Live.ExpireRetired() {
				s.forgetRemoved()
			}
		}
	}
}

// bootTable is the table of boots, which marks those of retired nodes.
type bootTable struct {
	*boots.Table
	live *config.Live
}

func (s *Server) boots() bootTable { return bootTable{s.Store.Boots, s.Live} }

// List implements [api.Boots].
func (b bootTable) List() []boots.Record {
	all := b.Table.List()
	if farm := b.live.Farm(); len(farm.Retired()) > 0 {
		for i := range all {
			all[i].Retired = farm.IsRetired(all[i].Node)
		}
	}
	return all
}

// tellRetired logs how many nodes are retired.
func (s *Server) tellRetired(why string) {
	if retired := s.Live.Farm().Retired(); len(retired) > 0 {
		newest := retired[len(retired)-1]
		s.log.Warn("the config has lost nodes: they keep their addresses and boots until their time is over", "why", why, "nodes", len(retired), "last", newest.Name, "from", newest.From, "until", newest.Until)
	}
}
