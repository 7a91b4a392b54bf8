package resolve

// Shared returns the settings that the plan shares with the plans of all machines that have the
// same tags. Within a farm equal pointers are equal settings and equal options of DHCP, but for
// those that a node has of its own.
func (p *Plan) Shared() *Settings {
	if p.entry == nil {
		return &p.Settings
	}
	return &p.entry.profile.Settings
}

// OwnOptions reports whether the node has options of DHCP beside those of its tags.
func (p *Plan) OwnOptions() bool { return p.entry != nil && len(p.entry.DHCPOptions) > 0 }
