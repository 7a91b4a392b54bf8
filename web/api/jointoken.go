package api

import (
	"context"
	"errors"
	"net/http"

	"drover/pools"
	"drover/web/answer"
)

// Tokens returns the shared join tokens of clusters. Its errors for a bad request are
// [pools.ErrNoCluster] and [pools.ErrNotShared]. Any other error means that the cluster
// does not answer.
type Tokens interface {
	SharedToken(ctx context.Context, cluster string) (pools.JoinToken, error)
}

// sharedToken answers with the join token of a cluster, and logs the client.
func (a *API) sharedToken(w http.ResponseWriter, r *http.Request) error {
	cluster := r.PathValue("cluster")
	t, err := a.Tokens.SharedToken(r.Context(), cluster)
	switch {
	case errors.Is(err, pools.ErrNoCluster):
		return &answer.Error{Code: http.StatusNotFound, Msg: err.Error()}
	case errors.Is(err, pools.ErrNotShared):
		return &answer.Error{Code: http.StatusConflict, Msg: err.Error()}
	case err != nil:
		return &answer.Error{Code: http.StatusServiceUnavailable, Msg: err.Error()}
	}
	a.record(client(r), "show the join token of "+cluster, "")
	a.Log.Info("shared join token shown", "cluster", cluster, "expires", t.Expires, "client", r.RemoteAddr)
	answer.JSON(w, http.StatusOK, t)
	return nil
}
