package kube

// Followed returns how many nodes are on their way to Ready.
func (c *Clusters) Followed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.joining)
}

// Expecting reports whether the Lease of a node was read.
func (c *Clusters) Expecting(cluster, node string) bool {
	t, err := c.tenant(cluster)
	return err == nil && t.leases.Watched(node)
}
