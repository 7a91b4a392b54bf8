package ilosim

// Run executes a command and returns its output.
func (c *Chassis) Run(command string) string { return c.run(command) }

// Pick returns the slots that a list names.
func (c *Chassis) Pick(list string) (ids []string, ok bool) {
	nodes, ok := c.pick(list)
	for _, n := range nodes {
		ids = append(ids, n.ID())
	}
	return ids, ok
}
