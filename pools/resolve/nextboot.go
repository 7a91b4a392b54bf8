package resolve

import "drover/pools"

// WithNextBoot returns a copy of the plan with a next boot in force, as a running
// server would make it.
func (p *Plan) WithNextBoot(n pools.NextBoot) *Plan {
	c := *p
	c.NextBoot = n
	if ref, ok := n.Image(); ok {
		c.Image = ref
	}
	return &c
}

// whyNext adds the origins of values that a next boot set.
func (p *Plan) whyNext(why Why) {
	if p.NextBoot == "" {
		return
	}
	why["nextBoot"] = pools.Origin{Path: "API, for one boot"}
	if _, ok := p.NextBoot.Image(); ok {
		why["image"] = why["nextBoot"]
	}
}
