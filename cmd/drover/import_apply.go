package main

import (
	"context"
	"net/http"

	"drover/pools"
	"drover/pools/ilo"
)

const batchPath = nodesPath + ":batch"

// applyChanges writes the changes of one chassis to a running server in one
// call: all of them, or none. A node that is not as it was when it was compared
// refuses them all.
func applyChanges(ctx context.Context, api *apiClient, changes []ilo.Change) error {
	batch := struct {
		Changes []pools.NodeChange `json:"changes"`
	}{ilo.NodeChanges(changes)}
	if len(batch.Changes) == 0 {
		return nil
	}
	return api.call(ctx, http.MethodPost, batchPath, batch, nil)
}
