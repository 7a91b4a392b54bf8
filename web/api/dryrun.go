package api

import (
	"net/http"

	"drover/pools"
	"drover/web/answer"
)

// preview answers with the node as a change would leave it, or with 204 if it would be gone.
func (a *API) preview(w http.ResponseWriter, r *http.Request, c pools.NodeChange) error {
	if err := a.CheckNodes([]pools.NodeChange{c}, client(r)); err != nil {
		return err
	}
	if c.New == nil {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	w.Header().Set("ETag", etag(c.New))
	answer.JSON(w, http.StatusOK, pools.NodeInfo{PoolNode: shown(*c.New, client(r)), Source: c.New.Origin()})
	return nil
}

// previewPatch is [API.preview] for the edit of a node.
func (a *API) previewPatch(w http.ResponseWriter, r *http.Request, name string, edit func(pools.PoolNode) (pools.PoolNode, error)) error {
	old, ok := a.Farm.Farm().Node(name)
	if !ok {
		return noNode(name)
	}
	changed, err := edit(old.PoolNode)
	if err == nil && changed.Name != name {
		err = answer.BadRequest("node %q cannot be renamed to %q here", name, changed.Name)
	}
	if err != nil {
		return err
	}
	return a.preview(w, r, pools.NodeChange{Old: &old.PoolNode, New: &changed})
}
