package cli

import "drover/pools"

// Paths of the REST API that more than one command uses.
const (
	NodesPath  = "/api/v1/nodes"
	LeasesPath = "/api/v1/leases"
)

// Lease is a lease as the API gives it.
type Lease struct {
	pools.Lease
	State pools.LeaseState `json:"state"`
}
