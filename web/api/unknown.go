package api

import (
	"fmt"
	"net/http"
	"slices"

	"drover/pools"
	"drover/web/answer"
)

// Unknowns is the table of unknown machines.
type Unknowns interface {
	// List returns all unknown machines, the last seen first. The caller may change
	// the list.
	List() []pools.Unknown
	// Forget removes a machine. It returns false when the machine is not listed.
	Forget(mac pools.MAC) bool
}

func (a *API) listUnknowns(w http.ResponseWriter, _ *http.Request) error {
	all := a.Unknowns.List()
	if all == nil {
		all = []pools.Unknown{} // [] rather than null
	}
	answer.JSON(w, http.StatusOK, all)
	return nil
}

func (a *API) forgetUnknown(w http.ResponseWriter, r *http.Request) error {
	mac, err := pools.ParseMAC(r.PathValue("mac"))
	if err != nil {
		return answer.BadRequest("%v", err)
	}
	if dryRun(r) {
		if !slices.ContainsFunc(a.Unknowns.List(), func(u pools.Unknown) bool { return u.MAC == mac }) {
			return notUnknown(mac)
		}
	} else if err := a.Forget(mac, r.RemoteAddr); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// Forget removes a machine from the unknown machines. Its next DISCOVER adds it again.
func (a *API) Forget(mac pools.MAC, client string) error {
	if !a.Unknowns.Forget(mac) {
		return notUnknown(mac)
	}
	a.Log.Info("unknown machine forgotten", "mac", mac, "client", client)
	return nil
}

func notUnknown(mac pools.MAC) error {
	return &answer.Error{Code: http.StatusNotFound, Msg: fmt.Sprintf("no unknown machine has the MAC %s", mac)}
}

// AddNode adds a node for a client, and removes its MACs from the unknown machines.
func (a *API) AddNode(n pools.PoolNode, actor string) error {
	if err := a.Nodes.AddNode(n); err != nil {
		return err
	}
	for _, m := range n.MACs {
		a.Unknowns.Forget(m)
	}
	a.Log.Info("node added", "node", n.Name, "pool", n.Pool, "macs", n.MACs, "ip", n.IP, "who", actor)
	a.record(actor, "add node", n.Name)
	return nil
}
