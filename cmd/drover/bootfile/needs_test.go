package bootfile

import (
	"slices"
	"strings"
	"testing"

	"drover/imagebuild"
	"drover/pools"
)

// TestNeeds: the generations of an image are a to f, the newest first behind the current one, c.
func TestNeeds(t *testing.T) {
	id := func(letter string) string { return strings.Repeat(letter, 64) }
	ref := func(letter string) string { return "debian-12@sha256:" + id(letter) }
	for _, tt := range []struct {
		name   string
		keep   int
		server func(of map[string]*pools.ImageInfo) // changes what the server says
		nodes  []pools.NodeInfo
		want   []string // why each is kept, in the order c a b d e f
	}{
		{"two others", 2, nil, nil, []string{"current", "newest", "newest", "", "", ""}},
		{"one other", 1, nil, nil, []string{"current", "newest", "", "", "", ""}},
		{"more than there are", 9, nil, nil, []string{"current", "newest", "newest", "newest", "newest", "newest"}},
		{"pools", 1, func(of map[string]*pools.ImageInfo) {
			of["a"].Pools, of["e"].Pools = []string{"web"}, []string{"p1", "p2", "p3", "p4", "p5"}
		}, nil, []string{"current", "newest, pool web", "", "", "pool p1, pool p2, pool p3 and 2 more", ""}},
		{"next boots", 1, nil, []pools.NodeInfo{
			{PoolNode: node("m1"), NextBoot: pools.NextBoot("image=" + ref("f"))},
			{PoolNode: node("m2"), NextBoot: "image=debian-12"},
			{PoolNode: node("m3"), NextBoot: pools.NextRescue},
			{PoolNode: node("m4"), NextBoot: pools.NextBoot("image=other@sha256:" + id("d"))},
		}, []string{"current", "newest", "", "", "", "next boot of m1"}},
		{"boots", 1, nil, []pools.NodeInfo{
			{PoolNode: node("m1"), Status: &pools.NodeStatus{State: pools.NodeBooting, Image: ref("d")}},
			{PoolNode: node("m2"), Status: &pools.NodeStatus{State: pools.NodeStuck, Image: ref("e")}},
			{PoolNode: node("m3"), Status: &pools.NodeStatus{State: pools.NodeReady, Image: ref("f")}},
		}, []string{"current", "newest", "", "boot of m1", "boot of m2", ""}},
		{"short references, and generations that run", 1, nil, []pools.NodeInfo{
			{PoolNode: node("m1"), NextBoot: pools.NextBoot("image=debian-12@sha256:" + id("f")[:12])},
			{PoolNode: node("m2"), Status: &pools.NodeStatus{State: pools.NodeBooting, Image: "debian-12@sha256:" + id("e")[:12]}},
			{PoolNode: node("m3"), Status: &pools.NodeStatus{State: pools.NodeReady, Image: "debian-12", Generation: id("d")}},
		}, []string{"current", "newest", "", "runs on m3", "boot of m2", "next boot of m1"}},
		{"another current one on the server", 1, func(of map[string]*pools.ImageInfo) {
			of["c"].Current, of["d"].Current, of["d"].Pools = false, true, []string{"web"}
		}, nil, []string{"current", "newest", "", "current on the server, pool web", "", ""}},
		{"not listed", 1, func(of map[string]*pools.ImageInfo) {
			of["a"].ID, of["f"].Name = id("0"), "other"
		}, nil, []string{"current", notListed, "newest", "", "", notListed}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var list []imagebuild.Image
			of := map[string]*pools.ImageInfo{}
			for _, letter := range []string{"c", "a", "b", "d", "e", "f"} {
				i := imagebuild.Image{ID: id(letter), Current: letter == "c"}
				i.Name = "debian-12"
				list = append(list, i)
				of[letter] = &pools.ImageInfo{Name: i.Name, ID: i.ID, Current: i.Current}
			}
			if tt.server != nil {
				tt.server(of)
			}
			var images []pools.ImageInfo
			for _, info := range of {
				images = append(images, *info)
			}
			var got []string
			for _, g := range needsOf(images, tt.nodes).choose(list, tt.keep) {
				got = append(got, g.Why)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func node(name string) pools.PoolNode { return pools.PoolNode{Node: pools.Node{Name: name}} }

// TestBoth: only what was shown before the question is removed, and no longer what is needed
// after it.
func TestBoth(t *testing.T) {
	before := []generation{{ID: "a"}, {ID: "b"}, {ID: "c", Why: "pool web"}}
	again := []generation{{ID: "a"}, {ID: "b", Why: "next boot of m1"}, {ID: "c"}}
	var removed []string
	for _, g := range both(before, again) {
		if g.Why == "" {
			removed = append(removed, g.ID)
		}
	}
	if !slices.Equal(removed, []string{"a"}) {
		t.Errorf("got %q, want a alone", removed)
	}
}
