package bootfile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drover/imagebuild"
	"drover/pools"
)

// generation is a generation of an image that is removed, or kept for a reason.
type generation struct {
	Name    string    `json:"name"`
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	Size    int64     `json:"size"`          // bytes of its files
	Why     string    `json:"why,omitempty"` // it is kept; empty: it is removed
}

// ref returns the reference to the generation.
func (g *generation) ref() string { return g.Name + "@sha256:" + g.ID }

// notListed is why a generation is kept of which the server does not say anything.
const notListed = "not in the list of the server"

// needs is what a server needs of its images.
type needs struct {
	listed map[string]bool     // by reference NAME@sha256:ID
	pinned map[string][]string // why a generation is needed that is not current, by its reference
}

// needsOf collects what the images and the nodes of a server say. A name alone means the
// current generation, which stays in any case.
func needsOf(images []pools.ImageInfo, nodes []pools.NodeInfo) *needs {
	n := &needs{listed: map[string]bool{}, pinned: map[string][]string{}}
	for _, i := range images {
		ref := i.Name + "@sha256:" + i.ID
		n.listed[ref] = true
		if i.Current {
			n.need(ref, "current on the server")
		}
		for _, channel := range i.Channels {
			n.need(ref, "channel "+channel)
		}
		for _, channel := range i.Previous {
			n.need(ref, "way back of channel "+channel)
		}
		for _, pool := range i.Pools {
			n.need(ref, "pool "+pool)
		}
	}
	for i := range nodes {
		m := &nodes[i]
		if ref, ok := m.NextBoot.Image(); ok {
			n.needRef(images, ref, "next boot of "+m.Name)
		}
		// The next boot was taken with the boot script; the machine may fetch its image now.
		if s := m.Status; s != nil && (s.State == pools.NodeBooting || s.State == pools.NodeStuck) {
			n.needRef(images, s.Image, "boot of "+m.Name)
		}
		if s := m.Status; s != nil && s.LastReady != "" && s.LastReady != s.Generation {
			n.need(pools.ImageName(s.Image)+"@sha256:"+s.LastReady, "fall-back of "+m.Name)
		}
		if s := m.Status; s != nil && s.Generation != "" {
			n.need(pools.ImageName(s.Image)+"@sha256:"+s.Generation, "runs on "+m.Name)
		}
	}
	return n
}

// needRef is need for a reference that may be a short one.
func (n *needs) needRef(images []pools.ImageInfo, ref, why string) {
	for i := range images {
		if images[i].Means(ref) {
			n.need(images[i].Name+"@sha256:"+images[i].ID, why)
		}
	}
}

func (n *needs) need(ref, why string) { n.pinned[ref] = append(n.pinned[ref], why) }

// choose decides which generations stay: those that the server needs or does not list, the
// current ones, and as many of the newest others of each image as newest says. The list has
// the order of [imagebuild.Dir.List].
func (n *needs) choose(list []imagebuild.Image, newest int) []generation {
	others := map[string]int{} // so far, by name
	var choice []generation
	for i := range list {
		image := &list[i]
		g := generation{Name: image.Name, ID: image.ID, Created: image.Created, Size: image.Size()}
		reasons := n.pinned[g.ref()]
		switch {
		case image.Current:
			g.Why = "current"
		case !n.listed[g.ref()]:
			g.Why = notListed
		default:
			if others[g.Name]++; others[g.Name] <= newest {
				reasons = append([]string{"newest"}, reasons...)
			}
			g.Why = some(reasons)
		}
		choice = append(choice, g)
	}
	return choice
}

// some returns the first reasons as text.
func some(reasons []string) string {
	const most = 3
	text := strings.Join(reasons[:min(most, len(reasons))], ", ")
	if more := len(reasons) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// both returns the choice that was made again: what it removes, the choice before it has
// removed, too.
func both(before, again []generation) []generation {
	for i := range again {
		g := &again[i]
		asked := slices.ContainsFunc(before, func(b generation) bool { return b.Why == "" && b.ref() == g.ref() })
		if g.Why == "" && !asked {
			g.Why = "was needed before the question"
		}
	}
	return again
}

// sum returns the number of generations that are removed, and their bytes.
func sum(choice []generation) (n int, size int64) {
	for _, g := range choice {
		if g.Why == "" {
			n, size = n+1, size+g.Size
		}
	}
	return n, size
}
