package ilosim

// Say runs a command and returns what the manager says.
func (c *Chassis) Say(command string) string { return c.run(command) }

// Pick returns the slots that a list names.
func (c *Chassis) Pick(list string) (ids []string, ok bool) {
	nodes, ok := c.pick(list)
	for _, n := range nodes {
		ids = append(ids, n.ID())
	}
	return ids, ok
}
