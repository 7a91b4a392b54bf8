package server

import (
	"fmt"
	"slices"

	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/include"
)

// configFile is the config file and its history, for the REST API.
type configFile struct{ server *Server }

// InForce implements [api.ConfigFile].
func (c configFile) InForce() pools.ConfigInForce {
	status := c.server.Live.Status()
	text := status.Text
	return pools.ConfigInForce{File: text.File, SHA256: text.Digest(), Content: string(text.Main), Included: text.Included, Held: status.Held}
}

// Reload implements [api.ConfigFile].
func (c configFile) Reload(by string) (pools.ReloadResult, error) {
	return c.result(c.server.reload(cause{why: "asked over the API", who: by, way: pools.ConfigByRequest}, ""))
}

// Answer implements [api.ConfigFile].
func (c configFile) Answer(a pools.ConfigAnswer, by string) (pools.ReloadResult, error) {
	if !a.Drop {
		return c.result(c.server.reload(cause{why: "an operator said yes", who: by, way: pools.ConfigByRequest}, a.SHA256))
	}
	held, err := c.server.Live.Drop(a.SHA256)
	if err != nil {
		return pools.ReloadResult{}, err
	}
	c.server.tellHeld("an operator said no", &held)
	return c.result(config.Reloaded{Held: &held}, nil)
}

// result returns what a change of the config has done.
func (c configFile) result(r config.Reloaded, err error) (pools.ReloadResult, error) {
	if err != nil {
		return pools.ReloadResult{}, err
	}
	farm := c.server.Live.Farm()
	return pools.ReloadResult{File: farm.Source, Nodes: len(farm.Nodes()), RestartPending: c.server.Live.NeedsRestart(), Size: r.Size, Held: r.Held}, nil
}

// Check implements [api.ConfigFile].
func (c configFile) Check(content []byte) error {
	return c.server.Live.Check(&include.Text{File: c.server.Live.Farm().Source, Main: content, Included: slices.Clone(c.server.Live.Status().Text.Included), From: include.InForce})
}

// List implements [api.ConfigHistory].
func (c configFile) List() []pools.ConfigEntry { return c.server.Store.Configs.List() }

// Get implements [api.ConfigHistory].
func (c configFile) Get(number int) (pools.ConfigVersion, error) {
	return c.server.Store.Configs.Get(number)
}

// Rollback implements [api.ConfigHistory].
func (c configFile) Rollback(number int, by string, try bool) (pools.ReloadResult, error) {
	v, err := c.Get(number)
	if err != nil {
		return pools.ReloadResult{}, err
	}
	text := &include.Text{File: c.server.Live.Farm().Source, Main: []byte(v.Content), Included: v.Included, From: include.Given}
	if text.Digest() != v.SHA256 {
		return pools.ReloadResult{}, pools.Hint("choose another one: drover config history", "the text of %d in the history is damaged", number)
	}
	if try {
		return c.result(c.server.Live.Rollback(text, number, true))
	}
	why := cause{why: fmt.Sprintf("a rollback to %d", number), who: by, way: pools.ConfigRollback, rollback: number}
	return c.result(c.server.change(why, func() (config.Reloaded, error) { return c.server.Live.Rollback(text, number, false) }))
}
