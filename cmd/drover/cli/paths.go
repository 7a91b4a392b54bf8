package cli

import "drover/pools"

// Paths of the REST API that several commands use.
const (
	NodesPath  = "/api/v1/nodes"
	LeasesPath = "/api/v1/leases"
)

// Lease is a lease in the JSON of the REST API.
type Lease struct {
	pools.Lease
	State pools.LeaseState `json:"state"`
}
