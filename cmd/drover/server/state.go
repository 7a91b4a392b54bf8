package server

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"drover/pools"
	"drover/pools/state"
	"drover/web/api"
)

// Files of the state directory that this package makes, beside the state itself.
const (
	apiToken   = "api.token"
	nodesKey   = "nodes.key"
	httpsKey   = "https.key"
	tokensFile = "tokens.json"
)

// openState opens the state. Where a server ran before, an empty directory is an error.
func openState(o Options, farm *pools.Farm) (*state.Store, error) {
	return state.Open(o.State, state.Options{
		Log: o.Log, LongestLease: longestLease(farm.Config), Keys: []string{apiToken, nodesKey, httpsKey, tokensFile},
	})
}

// longestLease returns the longest lease time of a config, with the time for which a
// lease is kept after its end.
func longestLease(c pools.Config) time.Duration {
	longest := time.Duration(0)
	for _, s := range c.Subnets {
		longest = max(longest, s.Lease.D())
	}
	for _, p := range c.Pools {
		longest = max(longest, p.Lease.D())
	}
	return longest + time.Minute
}

// condition is the condition of the state; [state.Store] implements it.
type condition interface {
	Health() error // can wait for a disk that hangs
	Damage() int
}

// damageProblems returns the damage of the state that was found at the start.
func damageProblems(c condition) (out []api.Problem) {
	if n := c.Damage(); n > 0 {
		out = append(out, api.Problem{
			Part: "state", Brief: "it was damaged", Warning: true,
			Problem: fmt.Sprintf("%d parts were damaged and are left out; the log of the start names them, *.damaged in the state directory has the files", n),
		})
	}
	return out
}

// newDamageGauge reports the damage that was found at the start.
func newDamageGauge(c condition) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "drover", Name: "state_damaged_parts",
		Help: "Parts of the state that were damaged at the start, and are left out."}, func() float64 { return float64(c.Damage()) })
}
