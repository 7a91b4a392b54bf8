package api

import (
	"net/http"

	"drover/pools"
	"drover/web/answer"
)

// ConfigPath is the path of the config in force. It may have secrets: a session is not
// enough.
const ConfigPath = "/api/v1/config"

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
	if dryRun(r) {
		return answer.BadRequest("dryRun is not for a reload: drover check --live and drover diff tell what it would do")
	}
	result, err := a.ConfigFile.Reload()
	if err != nil {
		return err
	}
	a.record(byToken(r), "reload the config", "")
	answer.JSON(w, http.StatusOK, result)
	return nil
}
