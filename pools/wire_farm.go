package pools

// PoolInfo is a pool in an answer of the REST API.
type PoolInfo struct {
	Name     string   `json:"name"`
	Cluster  string   `json:"cluster,omitempty"`
	Image    string   `json:"image"`
	Tags     []string `json:"tags,omitempty"`
	Nodes    int      `json:"nodes"` // declared and added ones
	CatchAll bool     `json:"catchall,omitempty"`
	Ignore   bool     `json:"ignore,omitempty"`
	Range    Range    `json:"range,omitzero"`
	Range6   Range    `json:"range6,omitzero"`
}

// TagInfo is a tag in an answer of the REST API. Its settings can be secret.
type TagInfo struct {
	Name  string   `json:"name"`
	Pools []string `json:"pools,omitempty"` // that name it
	Nodes int      `json:"nodes"`           // that have it, from their pool or their own
}

// ClusterInfo is a cluster in an answer of the REST API.
type ClusterInfo struct {
	Name     string   `json:"name"`
	Endpoint string   `json:"endpoint,omitempty"` // as in the config
	Hosted   bool     `json:"hosted,omitempty"`   // drover runs its control plane
	Pools    []string `json:"pools,omitempty"`    // whose nodes join it
	Nodes    int      `json:"nodes"`              // of those pools
}
