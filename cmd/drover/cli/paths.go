package cli

// Paths of the REST API that several commands use.
const (
	NodesPath  = "/api/v1/nodes"
	LeasesPath = "/api/v1/leases"
)
