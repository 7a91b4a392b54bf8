package web

import (
	"fmt"
	"net/http"

	"drover/pools"
)

// Unknowns are the machines that asked for an address and that no node
// declares.
type Unknowns interface {
	// List returns all of them, the one seen last first. The list is the
	// caller's.
	List() []pools.Unknown
	// Forget removes one. It returns false when it is not there.
	Forget(mac pools.MAC) bool
}

// noUnknowns is a server that keeps none.
type noUnknowns struct{}

func (noUnknowns) List() []pools.Unknown { return nil }
func (noUnknowns) Forget(pools.MAC) bool { return false }

func (a *api) listUnknowns(w http.ResponseWriter, r *http.Request) error {
	if err := onlyParameters(r.URL.Query()); err != nil {
		return err
	}
	all := a.server.Unknowns.List()
	if all == nil {
		all = []pools.Unknown{} // [] rather than null
	}
	writeJSON(w, http.StatusOK, all)
	return nil
}

func (a *api) forgetUnknown(w http.ResponseWriter, r *http.Request) error {
	mac, err := pools.ParseMAC(r.PathValue("mac"))
	if err != nil {
		return badRequest("%v", err)
	}
	if err := a.server.forget(mac, r.RemoteAddr); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// forget removes a machine from the unknown ones. It comes back when it asks
// again.
func (s *Server) forget(mac pools.MAC, client string) error {
	if !s.Unknowns.Forget(mac) {
		return &failure{code: http.StatusNotFound, msg: fmt.Sprintf("no unknown machine has the MAC %s", mac)}
	}
	s.Log.Info("unknown machine forgotten", "mac", mac, "client", client)
	return nil
}

// addNode adds a node, whose machine is then unknown no more.
func (s *Server) addNode(n pools.PoolNode, who string) error {
	if err := s.Nodes.AddNode(n); err != nil {
		return err
	}
	for _, m := range n.MACs {
		s.Unknowns.Forget(m)
	}
	s.Log.Info("node added", "node", n.Name, "pool", n.Pool, "macs", n.MACs, "ip", n.IP, "who", who)
	s.record(who, "add node", n.Name)
	return nil
}
