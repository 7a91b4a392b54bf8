package api

import (
	"cmp"
	"net/netip"
	"slices"

	"drover/internal/wait"
	"drover/pools"
	"drover/pools/boots"
	"drover/web/auth"
)

// perStep is the number of machines that are looked at between two steps of a [wait.Pace].
const perStep = 100

// observed is what the server knows of its machines at a moment, to make their status.
type observed struct {
	records  []boots.Record             // the newest first
	boots    map[string]*boots.Record   // the newest, by node
	leases   map[pools.MAC]netip.Addr   // in force
	power    map[string]pools.PowerNode // the last, by node
	poolTags map[string][]string
	current  map[string]string // the generation that a pool boots now, by pool
}

// observe gives way at a pace, as do those that call it; nil: it does not.
func (a *API) observe(pace *wait.Pace) observed {
	now := a.Now()
	pace.Step()
	records := a.Boots.List()
	pace.Step()
	records = boots.MarkStuck(records, now)
	pace.Step()
	leases := a.Leases.List()
	pace.Step()
	o := observed{
		records, make(map[string]*boots.Record, len(records)), make(map[pools.MAC]netip.Addr, len(leases)),
		map[string]pools.PowerNode{}, map[string][]string{}, nil,
	}
	if a.Generations != nil {
		o.current = a.Generations()
	}
	for i := range o.records {
		if r := &o.records[i]; o.boots[r.Node] == nil {
			o.boots[r.Node] = r
		}
	}
	for i := range leases {
		l := &leases[i]
		if l.State(now) == pools.LeaseActive && (!o.leases[l.MAC].IsValid() || l.Address.Is4()) {
			o.leases[l.MAC] = l.Address
		}
	}
	pace.Step()
	for _, job := range a.Power.Jobs() { // the newest first
		for _, n := range job.Nodes {
			if _, newer := o.power[n.Name]; !newer && n.State != "" && n.State != "unknown" {
				o.power[n.Name] = n
			}
		}
	}
	for _, p := range a.Farm.Farm().Config.Pools {
		o.poolTags[p.Name] = p.Tags
	}
	return o
}

// status sets how a node is.
func (o *observed) status(s *pools.NodeStatus, n *pools.NodeInfo) {
	*s = pools.NodeStatus{State: pools.NodeNew, Address: n.IP, PoolTags: o.poolTags[n.Pool]}
	if !s.Address.IsValid() {
		s.Address = n.IP6
	}
	uses := func(m pools.MAC) { // what it uses counts more than what it shall have
		if a, ok := o.leases[m]; ok {
			s.Address = a
		}
	}
	for _, m := range n.MACs {
		uses(m)
	}
	if b := o.boots[n.Name]; b != nil {
		o.boot(s, b)
		uses(b.MAC)
	}
	if p, ok := o.power[n.Name]; ok {
		s.Power, s.PowerSeen = p.State, p.Time
	}
	switch {
	case n.Ignore:
		s.State = pools.NodeIgnored
	case n.Move != nil:
		s.State, s.Since, s.Detail = pools.NodeMoving, n.Move.Since, n.Move.Summary()
	}
}

// boot sets what the newest boot of a machine tells.
func (o *observed) boot(s *pools.NodeStatus, b *boots.Record) {
	s.Cluster, s.Image, s.Generation, s.Booted, s.Since = b.Cluster, b.Image, b.Generation, b.Started, b.Started
	current := o.current[b.Pool]
	s.Outdated = b.Generation != "" && current != "" && b.Generation != current
	if last, ok := b.Furthest(); ok {
		s.Since, s.Detail = last.Time, string(last.Step)
	}
	switch {
	case b.Ended() && b.Cluster != "":
		s.State, s.Detail = pools.NodeReady, ""
	case b.Ended():
		s.State, s.Detail = pools.NodeOnline, ""
	case b.Elsewhere:
		s.State, s.Detail = pools.NodeBooting, "at another server"
	case b.Stuck != nil:
		s.State, s.Detail = pools.NodeStuck, "after "+s.Detail
	default:
		s.State = pools.NodeBooting
	}
	if b.Error != "" {
		s.Detail += ": " + b.Error
	}
}

// catchAll returns the machines of catch-all pools that have booted, as nodes.
func (o *observed) catchAll() (out []pools.NodeInfo) {
	for name, b := range o.boots {
		if b.Unknown {
			out = append(out, pools.NodeInfo{CatchAll: true, PoolNode: pools.PoolNode{Pool: b.Pool, Node: pools.Node{Name: name, MACs: []pools.MAC{b.MAC}}}})
		}
	}
	slices.SortFunc(out, func(a, b pools.NodeInfo) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// withStatus sets the status of nodes.
func (a *API) withStatus(nodes []pools.NodeInfo, o observed, pace *wait.Pace) []pools.NodeInfo {
	all := make([]pools.NodeStatus, len(nodes))
	for i := range nodes {
		if i%perStep == 0 {
			pace.Step()
		}
		o.status(&all[i], &nodes[i])
		trial := a.FallBacks.Of(nodes[i].Name)
		if all[i].LastReady = trial.Good; !trial.FellBack.IsZero() {
			all[i].FellBack, all[i].FellBackAt = trial.Failed, trial.FellBack
		}
		nodes[i].Status = &all[i]
	}
	return nodes
}

// Machine is a node, or a machine of a catch-all pool, with its newest boot.
type Machine struct {
	*pools.NodeInfo
	Boot *boots.Record // nil: none is known
}

// Machines returns the nodes that a client may see, then the machines of catch-all pools that have
// booted, each with its status; and the boots, the newest first, with those marked that are stuck.
func (a *API) Machines(by auth.Client, pace *wait.Pace) (all []Machine, records []boots.Record) {
	o := a.observe(pace)
	nodes := seen(by, a.nodesOf(o, pace), nodePool)
	all = make([]Machine, len(nodes))
	for i := range nodes {
		all[i] = Machine{&nodes[i], o.boots[nodes[i].Name]}
	}
	return all, seen(by, o.records, func(b *boots.Record) string { return b.Pool })
}

// allNodes returns the nodes of [API.Machines].
func (a *API) allNodes() []pools.NodeInfo {
	var pace wait.Pace
	return a.nodesOf(a.observe(&pace), &pace)
}

func (a *API) nodesOf(o observed, pace *wait.Pace) []pools.NodeInfo {
	nodes := a.Farm.Farm().Nodes()
	pace.Step()
	nodes = append(a.withMoves(nodes...), o.catchAll()...)
	return a.withStatus(nodes, o, pace)
}

// CountStates returns how many machines each pool has in each state, those of catch-all
// pools included.
func (a *API) CountStates() map[string]map[pools.NodeState]int {
	count := map[string]map[pools.NodeState]int{}
	nodes := a.allNodes()
	for i := range nodes {
		n := &nodes[i]
		if count[n.Pool] == nil {
			count[n.Pool] = map[pools.NodeState]int{}
		}
		count[n.Pool][n.Status.State]++
	}
	return count
}
