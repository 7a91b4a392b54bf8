package server

import (
	"slices"
	"testing"

	"drover/e2e/farmtest"
	"drover/pools"
)

// The names in the config are names of the people-facing listener, besides those that it
// knows itself (low finding: DNS rebinding).
func TestHosts(t *testing.T) {
	_, live := farmtest.Open(t, testConfig)
	for api, want := range map[string][]string{
		"127.0.0.1:8443":      {"10.28.0.2", "127.0.0.1"},
		"Drover.example:8443": {"10.28.0.2", "drover.example"},
		":8443":               {"10.28.0.2"},
	} {
		if got := hosts(pools.Server{API: api}, live.Farm()); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", api, got, want)
		}
	}
}
