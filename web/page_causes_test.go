package web_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/web/api"
	"drover/web/page"
)

// stray returns the MAC of a machine that no node declares.
func stray(last byte) pools.MAC { return pools.MAC{0x52, 0x54, 0, 0, 1, last} }

// TestInventedMachines: anyone can invent machines. They are behind the declared ones in every list
// and among the causes, and are no part of the causes of those.
func TestInventedMachines(t *testing.T) {
	s := newHarness(t, func(s *harness) {
		all := bootList{boot(2, "m2", "tenant-a", 8, time.Minute, "no space")}
		for i := byte(1); i <= 30; i++ {
			mac := stray(i)
			for j, failed := range []string{"no space", fmt.Sprintf("cause %c", 'a'+i)} {
				b := boot(0, pools.CatchAllName(pools.MAC{mac[0], mac[1], mac[2], byte(j), mac[4], mac[5]}), "tenant-a", 8, time.Minute, failed)
				b.MAC, b.Unknown, b.Pool = pools.MAC{mac[0], mac[1], mac[2], byte(j), mac[4], mac[5]}, true, "catchall"
				b.ID = b.Node
				all = append(all, b)
			}
		}
		s.Boots = all
	})
	got := s.browse(t, "/")
	first := regexp.MustCompile(`(?s)Wants attention</h2>\s*<ul><li><a href="([^"]*)">([^<]*)</a>[^<]*<span[^>]*>failing</span>([^<]*)(<span[^>]*>[^<]*)?`).FindStringSubmatch(got)
	if first == nil || first[1] != "/nodes/m2" || first[2] != "m2" || strings.TrimSpace(first[3]) != "image: no space" || first[4] != "" {
		t.Errorf("the first cause is %q", first)
	}
	fixture.WantText(t, "the invented ones", got, ">30 machines</a>", "no node declares them")
	for _, sort := range []string{"", "-name", "since", "-since", "state", "-state", "-address", "-mac", "-pool"} {
		if list := rows(s.browse(t, "/nodes?sort="+sort)); len(list) < 3 || !slices.Contains(list[:2], "m1") || !slices.Contains(list[:2], "m2") {
			t.Errorf("sort=%s: the list begins with %q", sort, list[:2])
		}
	}
}

// TestClusterHealth: a warning is no failure, and each problem of a cluster is shown.
func TestClusterHealth(t *testing.T) {
	s := newHarness(t, func(s *harness) {
		s.Ready = func(context.Context) []api.Problem {
			return []api.Problem{
				{Part: "cluster lobby", Problem: "its credentials end in 3 days", Warning: true},
				{Part: "cluster tenant-a", Problem: "connect: no route to host"},
				{Part: "cluster tenant-a", Problem: "its credentials end in 2 days", Warning: true},
			}
		}
	})
	cells := map[string]string{}
	for _, row := range strings.Split(s.browse(t, "/clusters"), "<tr id=\"row-")[1:] {
		name, rest, _ := strings.Cut(row, `"`)
		cells[name] = rest
	}
	fixture.WantText(t, "a cluster with a warning", cells["lobby"], "nodes can join", "end in 3 days")
	fixture.WantNoText(t, "a cluster with a warning", cells["lobby"], "failing")
	fixture.WantText(t, "a cluster that does not answer", cells["tenant-a"], `class="state failing"`, "no route to host", "end in 2 days")
	fixture.WantNoText(t, "a cluster that does not answer", cells["tenant-a"], "nodes can join")
}

// TestCountsAreLinks: pools, tags, clusters, images and failures count what their links show.
func TestCountsAreLinks(t *testing.T) {
	s := newHarness(t, func(s *harness) {
		mac := stray(9)
		b := boot(0, pools.CatchAllName(mac), "lobby", 16, time.Hour, "")
		b.MAC, b.Unknown, b.Pool = mac, true, "catchall"
		pinned := boot(1, "m1", "tenant-a", 16, time.Hour, "")
		pinned.Image = "debian-12@sha256:" + strings.Repeat("ab", 32)
		s.Boots = bootList{pinned, b}
		s.Images = func() []pools.ImageInfo {
			return []pools.ImageInfo{{Name: "debian-12", ID: strings.Repeat("ab", 32), Current: true}}
		}
		s.Power.(*machines).jobs = []pools.PowerJob{{ID: "j1", Action: "off", Ended: epoch, Nodes: []pools.PowerNode{{Name: "m1", Step: "failed", Error: "x", Time: epoch}, {Name: "m2", Step: "done", Time: epoch}}}}
	})
	link := regexp.MustCompile(`<a href="(/nodes\?[^"]*)">(\d+)(?: of \d+ failed)?</a>`)
	found := 0
	for _, path := range []string{"/pools", "/tags", "/clusters", "/power"} {
		for _, m := range link.FindAllStringSubmatch(s.browse(t, path), -1) {
			found++
			list := s.browse(t, strings.ReplaceAll(m[1], "&amp;", "&"))
			if n := len(rows(list)); fmt.Sprint(n) != m[2] {
				t.Errorf("%s: %s of %s shows %d", path, m[2], m[1], n)
			}
		}
	}
	if found < 8 {
		t.Errorf("only %d counts lead anywhere", found)
	}
	images := s.browse(t, "/images")
	fixture.WantText(t, "the images", images, `href="/nodes?image=debian-12"`, `<a href="/nodes?pool=compute">compute</a>`)
	if got := rows(s.browse(t, "/nodes?image=debian-12")); !slices.Contains(got, "m1") {
		t.Errorf("a machine of a pinned image is not among those of its name: %q", got)
	}
	if got := rows(s.browse(t, "/nodes?image=debian-12@sha256:"+strings.Repeat("ab", 32))); !slices.Equal(got, []string{"m1"}) {
		t.Errorf("by the digest: %q", got)
	}
}

// TestNextBootInView: what a boot now gets is what the next boot of the machine says.
func TestNextBootInView(t *testing.T) {
	for next, want := range map[pools.NextBoot]string{
		"":                "<dd>debian-12",
		"image=ubuntu-24": `<dd>ubuntu-24 <span class="state moving">another one</span><span class="sub">once: its next boot is image=ubuntu-24`,
		pools.NextLocal:   `<dd>its own disk <span class="state moving">another one</span><span class="sub">once`,
		pools.NextRescue:  `<dd>a rescue shell <span class="state moving">another one</span><span class="sub">once`,
		"image=debian-12": `<dd>debian-12<span class="sub">once: its next boot is image=debian-12`,
	} {
		s := newHarness(t, func(s *harness) {
			s.Boots = bootList{boot(1, "m1", "tenant-a", 16, time.Hour, "")}
			s.Images = func() []pools.ImageInfo { return nil }
			s.NextBoots = &nextBoots{next: map[string]pools.NextBoot{"m1": next}}
			s.Page.Explain = func(pools.MAC) page.Explanation {
				image := "debian-12"
				if ref, ok := next.Image(); ok {
					image = ref
				}
				return page.Explanation{Values: []page.Value{{Field: "image", Text: image}}}
			}
		})
		fixture.WantText(t, "next boot "+string(next), s.browse(t, "/nodes/m1"), "<dt>A boot now gets</dt>"+want)
	}
}
