package httpboot

import (
	"net/http"

	"drover/pools"
)

// serveInventory takes the hardware of a machine, before a node has claimed its boot: later
// the nonce is known to pods. Those of declared nodes are not kept.
func (h *handler) serveInventory(rec *recorder, r *http.Request) error {
	b, err := h.withNonce(rec, r)
	if err != nil {
		return err
	}
	var v pools.Inventory
	if _, err := readJSON(rec, r, pools.MaxInventory, &v); err != nil {
		return err
	}
	if err := h.server.Boots.Unclaimed(b.plan.MAC, b.nonce); err != nil {
		return bootError(err)
	}
	if b.plan.CatchAll && h.server.OnInventory != nil {
		h.server.OnInventory(b.plan.MAC, v.Clean())
	}
	rec.WriteHeader(http.StatusNoContent)
	return nil
}
