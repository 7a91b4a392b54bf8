package api

import (
	"net/http"

	"drover/pools"
	"drover/web/answer"
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
			Method: "GET", Path: "/api/v1/version", Summary: "The version of the server", Role: pools.RoleViewer,
			Status: 200, Answer: version{}, Handle: a.getVersion,
		},
	}
}

// version is the version of the server.
type version struct {
	Version string `json:"version"`
}

func (a *API) getVersion(w http.ResponseWriter, _ *http.Request) error {
	answer.JSON(w, http.StatusOK, version{a.Version})
	return nil
}

// ConfigFile is the config file of the server.
type ConfigFile interface {
	// InForce returns the file, and its content that is in force.
	InForce() pools.ConfigInForce
	// Reload reads the file again. Its error has the mistakes of the file, which then
	// leave the old content in force.
	Reload() (pools.ReloadResult, error)
}

func (a *API) getConfig(w http.ResponseWriter, _ *http.Request) error {
	answer.JSON(w, http.StatusOK, a.ConfigFile.InForce())
	return nil
}

func (a *API) reloadConfig(w http.ResponseWriter, r *http.Request) error {
	if route.IsDryRun(r) {
		return answer.BadParameter(route.DryRun, "", "dryRun is not for a reload: drover check --live and drover diff tell what it would do")
	}
	result, err := a.ConfigFile.Reload()
	if err != nil {
		return err
	}
	a.record(client(r), "reload the config", "")
	answer.JSON(w, http.StatusOK, result)
	return nil
}
