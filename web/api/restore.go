package api

import (
	"net/http"

	"drover/pools"
	"drover/web/route"
)

// Restorer puts the state of a backup in place of the server's.
type Restorer interface {
	// Check returns an error if no backup with this SHA-256 lies ready in the state directory.
	Check(sha256 string) error
	// Restore begins the server anew with that backup, as soon as running requests have ended.
	// Its errors are those of Check.
	Restore(sha256, by string) error
}

func (a *API) restoreRoute() route.Route {
	return route.Route{
		Method: "POST", Path: "/api/v1/state:restore", Summary: "Begin anew with a backup that drover restore --now has laid ready in the state directory", Role: pools.RoleAdmin,
		Body: pools.RestoreRequest{}, Status: 202, Handle: a.restore,
	}
}

// restore begins the server anew with a backup. The audit has it afterwards: what is written
// before is not in the backup.
func (a *API) restore(w http.ResponseWriter, r *http.Request) error {
	var body pools.RestoreRequest
	if err := readJSON(r, &body); err != nil {
		return err
	}
	err := a.Restorer.Check(body.SHA256)
	if err == nil && !route.IsDryRun(r) {
		err = a.Restorer.Restore(body.SHA256, client(r).String())
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}
