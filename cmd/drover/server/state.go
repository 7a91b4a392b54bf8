package server

import (
	"time"

	"drover/pools"
	"drover/pools/resolve"
	"drover/pools/state"
)

// Files of the state directory that this package makes, beside the state itself.
const (
	apiToken   = "api.token"
	nodesKey   = "nodes.key"
	httpsKey   = "https.key"
	tokensFile = "tokens.json"     // of joins
	apiTokens  = "api-tokens.json" // of the REST API

	lastGoodConfig = "config.last-good.yaml"
)

// openState opens the state. Where a server ran before, an empty directory is an error.
func openState(o Options, farm *resolve.Farm) (*state.Store, error) {
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
