package page

import (
	"fmt"
	"slices"
	"strings"

	"drover/internal/printable"
	"drover/pools"
	"drover/web/page/snapshot"
	"drover/web/page/table"
	"drover/web/page/text"
)

// pools is the list of pools.
func (p *page) pools(r *request) (any, error) {
	all := p.api.Pools(r.client)
	machines := machineIndex(r).Count("pool") // as many as the link shows
	for i := range all {
		all[i].Nodes = machines[all[i].Name]
	}
	l := &table.List[pools.PoolInfo]{
		Columns: []table.Column[pools.PoolInfo]{
			{Name: "name", Head: "Pool", Of: table.One(func(v *pools.PoolInfo) string { return v.Name })},
			{Name: "nodes", Head: "Machines", Of: table.One(func(v *pools.PoolInfo) string { return fmt.Sprint(v.Nodes) })},
			{Name: "cluster", Head: "Cluster", Of: table.One(func(v *pools.PoolInfo) string { return v.Cluster }), Pick: true},
			{Name: "image", Head: "Image", Of: table.One(func(v *pools.PoolInfo) string { return v.Image }), Pick: true},
			{Name: "tag", Head: "Tags", Of: table.Many(func(v *pools.PoolInfo) []string { return v.Tags }), Pick: true},
			{Head: "Unknown hardware"}, {Head: "Declared"},
		},
		Row: func(v *pools.PoolInfo) table.Row {
			unknown := table.Cell{}
			switch {
			case v.Ignore:
				unknown.Text = "its machines get no answer"
			case v.CatchAll:
				unknown.Text = "lands here"
				for _, s := range []pools.Range{v.Range, v.Range6} {
					if s.IsValid() {
						unknown.Sub = append(unknown.Sub, s.String())
					}
				}
			}
			at := slices.IndexFunc(r.shared.Farm.Config.Pools, func(c pools.Pool) bool { return c.Name == v.Name })
			where := "" // the farm has changed since
			if at >= 0 {
				where = r.shared.Farm.PoolOrigin(at).Position()
			}
			return table.Row{Key: v.Name, Cells: []table.Cell{
				{Text: v.Name, URL: table.To("/nodes", "pool", v.Name)}, {Text: fmt.Sprint(v.Nodes), URL: table.To("/nodes", "pool", v.Name)},
				{Text: v.Cluster, URL: table.To("/nodes", "cluster", v.Cluster)}, {Text: v.Image}, {Text: joined(v.Tags)}, unknown, {Text: where},
			}}
		},
	}
	return l.View(table.Table{Name: "Pools", Path: r.path, Empty: "The config has no pool."}, r.query, all), nil
}

// tags is the list of tags. Their settings, which may be secret, are not shown.
func (p *page) tags(r *request) (any, error) {
	all := p.api.Tags(r.client)
	machines := machineIndex(r).Count("tag")
	for i := range all {
		all[i].Nodes = machines[all[i].Name]
	}
	l := &table.List[pools.TagInfo]{
		Columns: []table.Column[pools.TagInfo]{
			{Name: "name", Head: "Tag", Of: table.One(func(v *pools.TagInfo) string { return v.Name })},
			{Name: "nodes", Head: "Machines that have it", Of: table.One(func(v *pools.TagInfo) string { return fmt.Sprint(v.Nodes) })},
			{Name: "pool", Head: "Pools that name it", Of: table.Many(func(v *pools.TagInfo) []string { return v.Pools }), Pick: true},
		},
		Row: func(v *pools.TagInfo) table.Row {
			n := table.Cell{Text: fmt.Sprint(v.Nodes), URL: table.To("/nodes", "tag", v.Name)}
			if v.Name == "all" {
				n = table.Cell{Text: "every machine", URL: "/nodes"}
			}
			return table.Row{Key: v.Name, Cells: []table.Cell{{Text: v.Name}, n, {Text: joined(v.Pools)}}}
		},
	}
	return l.View(table.Table{Name: "Tags", Path: r.path, Empty: "The config has no tag."}, r.query, all), nil
}

// clusters is the list of clusters.
func (p *page) clusters(r *request) (any, error) {
	wrong, machines, ready := snapshot.ClusterHealth(r.shared.Problems), machineIndex(r).Count("cluster"), map[string]int{}
	for i := range r.shared.Machines {
		if m := &r.shared.Machines[i]; m.State == string(pools.NodeReady) {
			ready[clusterOf(m)]++
		}
	}
	all := p.api.Clusters(r.client)
	for i := range all {
		all[i].Nodes = machines[all[i].Name]
	}
	l := &table.List[pools.ClusterInfo]{
		Columns: []table.Column[pools.ClusterInfo]{
			{Name: "name", Head: "Cluster", Of: table.One(func(v *pools.ClusterInfo) string { return v.Name })},
			{Name: "state", Head: "State", Of: table.One(func(v *pools.ClusterInfo) string { return strings.Join(wrong[v.Name].Texts, "\n") })},
			{Name: "nodes", Head: "Machines", Of: table.One(func(v *pools.ClusterInfo) string { return fmt.Sprint(v.Nodes) })},
			{Head: "Ready in it"},
			{Name: "pool", Head: "Pools", Of: table.Many(func(v *pools.ClusterInfo) []string { return v.Pools }), Pick: true},
			{Head: "Control plane"},
		},
		Row: func(v *pools.ClusterInfo) table.Row {
			how := table.Cell{Text: "nodes can join", Sub: wrong[v.Name].Texts}
			if wrong[v.Name].Failing {
				how.Text, how.State = "", snapshot.Failing
			}
			kind := table.Cell{Text: "elsewhere", Sub: []string{v.Endpoint}}
			if v.Hosted {
				kind = table.Cell{Text: "run by drover"}
			}
			return table.Row{Key: v.Name, Cells: []table.Cell{
				{Text: v.Name, URL: table.To("/nodes", "cluster", v.Name)}, how, {Text: fmt.Sprint(v.Nodes), URL: table.To("/nodes", "cluster", v.Name)},
				{Text: fmt.Sprint(ready[v.Name]), URL: table.To("/nodes", "cluster", v.Name, "state", "ready")}, {Links: poolLinks(v.Pools)}, kind,
			}}
		},
	}
	return l.View(table.Table{Name: "Clusters", Path: r.path, Empty: "The config has no cluster."}, r.query, all), nil
}

// poolLinks returns links to the machines of pools.
func poolLinks(names []string) (all []table.Link) {
	for _, name := range names {
		all = append(all, table.Link{Text: name, URL: table.To("/nodes", "pool", name)})
	}
	return all
}

// current returns the generation that a reference to an image means now; false if there is
// none.
func (p *page) current(ref string, r *request) (pools.ImageInfo, bool) {
	for _, i := range p.built(r) {
		if i.Means(ref) {
			return i, true
		}
	}
	return pools.ImageInfo{}, false
}

// built returns the generations of images. They are read from the disk once for a snapshot.
func (p *page) built(r *request) []pools.ImageInfo {
	return snapshot.Once(r.shared, "images", func() []pools.ImageInfo { return p.api.ImagesOf(r.client) })
}

// images is the list of images.
func (p *page) images(r *request) (any, error) {
	t := table.Table{Name: "Images", Path: r.path, Empty: "There is no image: drover image build makes one."}
	l := &table.List[pools.ImageInfo]{
		Columns: []table.Column[pools.ImageInfo]{
			{Name: "name", Head: "Image", Of: table.One(func(v *pools.ImageInfo) string { return v.Name }), Pick: true},
			{Name: "built", Head: "Built", Of: table.One(func(v *pools.ImageInfo) string { return timeKey(v.Created) })},
			{Head: "Generation"}, {Name: "size", Head: "Size", Key: func(v *pools.ImageInfo) string { return fmt.Sprintf("%020d", v.Size) }},
			{Head: "Kernel"}, {Head: "From"}, {Head: "Pools"},
		},
		Row: func(v *pools.ImageInfo) table.Row {
			built := table.Cell{Text: text.Ago(r.shared.Now.Sub(v.Created)) + " ago", Sub: []string{text.Clock(v.Created)}}
			generation := table.Cell{Text: v.ID[:min(12, len(v.ID))], Code: true}
			if v.Current {
				generation.Sub = []string{"current"}
			}
			if len(v.Channels) > 0 {
				generation.Sub = append(generation.Sub, strings.Join(v.Channels, ", "))
			}
			if v.Bad != nil {
				generation.Sub = append(generation.Sub, "bad: "+printable.Line(v.Bad.Why, 120))
			}
			var users []string
			for _, pool := range r.pools() {
				if v.Means(pool.Image) {
					users = append(users, pool.Name)
				}
			}
			return table.Row{Key: v.Name + v.ID, Cells: []table.Cell{
				{Text: v.Name, URL: table.To("/nodes", "image", v.Name)}, built, generation, {Text: text.Size(v.Size)},
				{Text: printable.Line(v.KernelVersion, 64), Sub: []string{printable.Line(v.Platform, 32)}}, {Text: printable.Line(v.Source, 120)}, {Links: poolLinks(users)},
			}}
		},
	}
	return l.View(t, r.query, p.built(r)), nil
}
