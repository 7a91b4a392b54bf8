package server

import "drover/state"

// Files of the state directory that this package makes, beside the state itself.
const (
	apiToken   = "api.token"
	nodesKey   = "nodes.key"
	httpsKey   = "https.key"
	tokensFile = "tokens.json"     // of joins
	serverID   = "server.id"       // of this server among those of a farm
	apiTokens  = "api-tokens.json" // of the REST API

	lastGoodConfig = "config.last-good.yaml"
)

// openState opens the state. Where a server ran before, an empty directory is an error.
func openState(o Options) (*state.Store, error) {
	return state.Open(o.State, state.Options{
		Log: o.Log, Keys: []string{apiToken, nodesKey, httpsKey, tokensFile},
	})
}
