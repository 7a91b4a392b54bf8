package api

import (
	"fmt"
	"net/http"
	"strconv"

	"drover/pools"
	"drover/web/answer"
	"drover/web/listing"
	"drover/web/route"
)

// ConfigHistory is the contents of the config file that were active.
type ConfigHistory interface {
	// List returns them, the newest first. The caller may change the list.
	List() []pools.ConfigEntry
	// Get returns one with its text. The error wraps [pools.ErrNoConfig].
	Get(number int) (pools.ConfigVersion, error)
	// Rollback makes one active until the file agrees with it. Its errors are those of Get and of
	// a reload; try makes no change.
	Rollback(number int, by string, try bool) (pools.ReloadResult, error)
}

// The texts may have secrets, and the sizes have names of nodes of all pools.
func (a *API) historyRoutes() []route.Route {
	const path = "/api/v1/configs"
	return []route.Route{
		{
			Method: "GET", Path: path, Summary: "The last contents of the config file that were active, without their texts", Role: pools.RoleAdmin, Secret: true,
			Query: configList.Parameters(), Status: 200, Answer: []pools.ConfigEntry{}, Handle: a.listConfigs,
		},
		{
			Method: "GET", Path: path + "/{number}", Summary: "A content of the config file that was active; it may have secrets", Role: pools.RoleAdmin, Secret: true,
			Status: 200, Answer: pools.ConfigVersion{}, Errors: noSuch, Handle: a.getVersionOfConfig,
		},
		{
			Method: "POST", Path: path + "/{number}/rollback", Summary: "Make a content of the config file active again, until the file agrees with it", Role: pools.RoleAdmin,
			Status: 200, Answer: pools.ReloadResult{}, Errors: noSuch, Handle: a.rollbackConfig,
		},
	}
}

var configList = listing.List[pools.ConfigEntry]{Max: pools.MaxConfigs, Newest: true, Columns: []listing.Column[pools.ConfigEntry]{
	{Name: "number", Of: func(e *pools.ConfigEntry) string { return strconv.Itoa(e.Number) }},
	{Name: "time", Of: func(e *pools.ConfigEntry) string { return listing.Time(e.Time) }, SortOnly: true},
	{Name: "way", Of: func(e *pools.ConfigEntry) string { return string(e.Way) }},
}}

func (a *API) listConfigs(w http.ResponseWriter, r *http.Request) error {
	return configList.Answer(w, r, a.Configs.List())
}

// numbered returns the number in the path of a request.
func numbered(r *http.Request) (int, error) {
	n, err := strconv.Atoi(r.PathValue("number"))
	if err != nil || n < 1 {
		return 0, answer.BadRequest("%q is not a number of the history", r.PathValue("number"))
	}
	return n, nil
}

func (a *API) getVersionOfConfig(w http.ResponseWriter, r *http.Request) error {
	number, err := numbered(r)
	if err != nil {
		return err
	}
	v, err := a.Configs.Get(number)
	if err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, v)
	return nil
}

func (a *API) rollbackConfig(w http.ResponseWriter, r *http.Request) error {
	number, err := numbered(r)
	if err != nil {
		return err
	}
	by, try := client(r), route.IsDryRun(r)
	before := a.ConfigFile.InForce().SHA256
	result, err := a.Configs.Rollback(number, by.String(), try)
	if err != nil {
		return err
	}
	if !try {
		change := pools.AuditChange{Field: "sha256", Before: before, After: a.ConfigFile.InForce().SHA256}
		a.record(by, fmt.Sprintf("roll back the config to %d", number), "", append(changesOf(&result), change)...)
	}
	answer.JSON(w, http.StatusOK, result)
	return nil
}

// answerConfig is the answer to a change of the file that waits.
func (a *API) answerConfig(w http.ResponseWriter, r *http.Request) error {
	if route.IsDryRun(r) {
		return answer.BadParameter(route.DryRun, "", "dryRun is not for an answer: drover status tells what it would let through")
	}
	var body pools.ConfigAnswer
	if err := readJSON(r, &body); err != nil {
		return err
	}
	by, action := client(r), "let the change of the config through"
	if body.Drop {
		action = "drop the change of the config"
	}
	change := pools.AuditChange{Field: "sha256", Before: a.ConfigFile.InForce().SHA256}
	result, err := a.ConfigFile.Answer(body, by.String())
	if err != nil {
		return err
	}
	change.After = a.ConfigFile.InForce().SHA256
	a.record(by, action, "", append(changesOf(&result), change)...)
	answer.JSON(w, http.StatusOK, result)
	return nil
}
