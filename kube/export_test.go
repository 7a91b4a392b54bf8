package kube

// Followed returns the number of nodes that are awaited to be Ready.
func (c *Clusters) Followed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.joining)
}

// Expecting reports whether the Lease of a node has been read in this boot.
func (c *Clusters) Expecting(cluster, node string) bool {
	t, err := c.tenant(cluster)
	return err == nil && t.leases.Watched(node)
}
