package api

import (
	"net/http"

	"drover/pools"
	"drover/web/answer"
	"drover/web/auth"
	"drover/web/route"
)

func (a *API) serverRoutes() []route.Route {
	const path = "/api/v1/config"
	return []route.Route{
		{
			Method: "GET", Path: path, Summary: "The content of the config file that is in force; it may have secrets", Role: pools.RoleAdmin, Secret: true,
			Status: 200, Answer: pools.ConfigInForce{}, Handle: a.getConfig,
		},
		{
			Method: "POST", Path: path + ":reload", Summary: "Read the config file again", Role: pools.RoleAdmin,
			Status: 200, Answer: pools.ReloadResult{}, Handle: a.reloadConfig,
		},
		{
			Method: "POST", Path: path + ":check", Summary: "Check the content of a config file together with the nodes of the API, and change nothing", Role: pools.RoleAdmin,
			Body: pools.ConfigText{}, Status: 200, Answer: answer.Checked{}, Handle: a.checkConfig,
		},
		{
			Method: "GET", Path: "/api/v1/version", Summary: "The version of the server", Role: pools.RoleViewer,
			Status: 200, Answer: pools.ServerVersion{}, Handle: a.getVersion,
		},
		{
			Method: "GET", Path: "/api/v1/status", Summary: "The farm at a glance: machines by state and pool, what they are stuck at, images, leases, and what is not ready", Role: pools.RoleViewer,
			Status: 200, Answer: pools.Overview{}, Handle: a.getOverview,
		},
		{
			Method: "POST", Path: path + ":answer", Summary: "Say yes or no to the change of the config file that waits for it, because it disrupts many nodes", Role: pools.RoleAdmin,
			Body: pools.ConfigAnswer{}, Status: 200, Answer: pools.ReloadResult{}, Errors: []int{409}, Handle: a.answerConfig,
		},
		a.planRoute(),
		a.restoreRoute(),
	}
}

func (a *API) getVersion(w http.ResponseWriter, _ *http.Request) error {
	answer.JSON(w, http.StatusOK, pools.ServerVersion{Version: a.Version})
	return nil
}

// ConfigFile is the config file of the server.
type ConfigFile interface {
	// InForce returns the file, and its content that is in force.
	InForce() pools.ConfigInForce
	// Reload reads the file again. Its error has the mistakes of the file, which then
	// leave the old content in force.
	Reload(by string) (pools.ReloadResult, error)
	// Answer is the answer of an operator to a change of the file that waits. The error is
	// [pools.ErrNotHeld] for a no to another change.
	Answer(a pools.ConfigAnswer, by string) (pools.ReloadResult, error)
	// Check returns the mistakes that the file would have with another content, as
	// [mistake.Errors].
	Check(content []byte) error
}

// checkConfig answers with the mistakes of the body. Paths in it start at the directory of the
// config file.
func (a *API) checkConfig(w http.ResponseWriter, r *http.Request) error {
	var body pools.ConfigText
	if err := readJSON(r, &body); err != nil {
		return err
	}
	out := answer.Checked{Good: true, Mistakes: []answer.Mistake{}}
	if err := a.ConfigFile.Check([]byte(body.Content)); err != nil {
		e := answer.Of(err)
		if e.Mistakes == nil {
			return err
		}
		out.Good, out.Mistakes = false, e.Mistakes
	}
	answer.JSON(w, http.StatusOK, out)
	return nil
}

func (a *API) getConfig(w http.ResponseWriter, _ *http.Request) error {
	answer.JSON(w, http.StatusOK, a.ConfigFile.InForce())
	return nil
}

func (a *API) reloadConfig(w http.ResponseWriter, r *http.Request) error {
	if route.IsDryRun(r) {
		return answer.BadParameter(route.DryRun, "", "dryRun is not for a reload: drover check --live and drover diff tell what it would do")
	}
	result, err := a.Reload(client(r))
	if err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, result)
	return nil
}

// Reload reads the config file again for a client.
func (a *API) Reload(by auth.Client) (pools.ReloadResult, error) {
	change := pools.AuditChange{Field: "sha256", Before: a.ConfigFile.InForce().SHA256}
	result, err := a.ConfigFile.Reload(by.String())
	if err == nil {
		change.After = a.ConfigFile.InForce().SHA256
		a.record(by, "reload the config", "", append(changesOf(&result), change)...)
	}
	return result, err
}

// changesOf returns what a change of the config did, or would do, for the audit. That has no names
// of nodes here: clients of some pools read it.
func changesOf(r *pools.ReloadResult) []pools.AuditChange {
	changes := []pools.AuditChange{{Field: "size", After: r.Size.Counts()}}
	if r.Held != nil {
		changes = append(changes, pools.AuditChange{Field: "held", After: string(r.Held.Why) + ": " + r.Held.Size.Counts()})
	}
	return changes
}
