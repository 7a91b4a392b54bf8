package browser

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/boots"
)

// TestForms: each action that TestActions does not have, from the list or the view that leads to
// it, by a preview, to its effect.
func TestForms(t *testing.T) {
	f := newFarm(t, 4)
	f.populateAPI(t)
	stranger := pools.MAC{0x52, 0x54, 0, 0, 1, 0}
	f.stranger(t, stranger, false)
	for i := byte(1); i < 4; i++ {
		f.stranger(t, pools.MAC{0x52, 0x54, 0, 0, 1, i}, false)
	}
	f.boot(t, mac(1), 5, time.Hour, "")
	b := open(t, f)
	set := chromedp.SetValue[string]
	for _, tt := range []struct {
		action string
		path   string
		mark   []string // rows of the list
		open   string   // what leads to the form
		fill   []chromedp.Action[chromedp.Void]
		says   string // the preview
		then   string // the path that the form leads to
		done   func() bool
	}{
		{
			"add", "/unknown", nil, `//tr[@id="row-` + stranger.String() + `"]//a[text()="Add"]`,
			[]chromedp.Action[chromedp.Void]{set("#in-name", "fresh"), set("#in-pool", "compute"), set("#in-ip", "10.28.99.1")},
			"10.28.99.1", "/nodes/fresh",
			func() bool { n, ok := f.Live.Farm().Node("fresh"); return ok && slices.Contains(n.MACs, stranger) },
		}, {
			"add several", "/change?do=add", nil, `//a[text()="Add several"]`,
			[]chromedp.Action[chromedp.Void]{set("#in-pool", "compute"), set("#in-nodes", "name,mac,ip\nl1,02:d4:00:00:01:01,10.28.97.1\nl2,02:d4:00:00:01:02,10.28.97.2\n")},
			"10.28.97.2", "/nodes",
			func() bool { n, ok := f.Live.Farm().Node("l2"); return ok && n.Pool == "compute" },
		}, {
			"adopt", "/unknown", []string{"52:54:00:00:01:02", "52:54:00:00:01:03"}, `button[value="adopt"]`,
			[]chromedp.Action[chromedp.Void]{set("#in-pool", "compute"), set("#in-name", "ad{{.Index}}")},
			"ad2", "/nodes",
			func() bool {
				a, _ := f.Live.Farm().Node("ad1")
				b, ok := f.Live.Farm().Node("ad2")
				return ok && a.IP.IsValid() && b.IP.IsValid() && a.IP != b.IP
			},
		}, {
			"forget boots", "/nodes/" + name(1), nil, `//a[text()="Forget boots"]`, nil,
			"boots: forgotten", "/nodes/" + name(1),
			func() bool {
				return !slices.ContainsFunc(f.Store.Boots.List(), func(b boots.Record) bool { return b.Node == name(1) })
			},
		}, {
			"edit", "/nodes/fresh", nil, `//a[text()="Edit"]`,
			[]chromedp.Action[chromedp.Void]{set("#in-ip", "10.28.99.2")},
			"10.28.99.1 → 10.28.99.2", "/nodes/fresh",
			func() bool { n, _ := f.Live.Farm().Node("fresh"); return n.IP.String() == "10.28.99.2" },
		}, {
			"tag", "/nodes?pool=gpu", []string{"g1", "g2"}, `button[value="tag"]`,
			[]chromedp.Action[chromedp.Void]{set("#in-add", "storage"), set("#in-remove", "gpu")},
			"storage", "/nodes",
			func() bool { n, _ := f.Live.Farm().Node("g2"); return slices.Equal(n.Tags, []string{"storage"}) },
		}, {
			"next boot", "/nodes/g1", nil, `//a[text()="Next boot"]`,
			[]chromedp.Action[chromedp.Void]{set("#in-next", "rescue")},
			"rescue", "/nodes/g1",
			func() bool { return f.Store.NextBoots.Pending("g1") == pools.NextRescue },
		}, {
			"power", "/nodes?pool=gpu", []string{"g1", "g3"}, `button[value="power"]`,
			[]chromedp.Action[chromedp.Void]{set("#in-action", "status"), set("#in-parallel", "1")},
			"power: status", "/power",
			func() bool { return Value[bool](b, `document.body.innerText.includes("status")`) },
		}, {
			"forget", "/unknown", []string{"52:54:00:00:01:01"}, `button[value="forget"]`, nil,
			"forgotten", "/unknown",
			func() bool {
				return !slices.ContainsFunc(f.Store.Unknowns.List(), func(u pools.Unknown) bool { return u.MAC[5] == 1 })
			},
		}, {
			"end the lease", "/leases", []string{"10.28.250.11"}, `button[value="release"]`, nil,
			"free", "/leases",
			func() bool {
				_, held := f.Store.Leases.Of(pools.MAC{0x52, 0x54, 0, 0, 1, 1})
				return !held
			},
		}, {
			"read a chassis", "/chassis", nil, `//a[text()="Read now"]`, nil,
			"read", "/chassis",
			func() bool { return Value[bool](b, `document.querySelector("#chassis-m1") !== null`) },
		}, {
			"read the config", "/config", nil, `//a[text()="Read again"]`, nil,
			"drover.yaml", "/config",
			func() bool { _, ok := f.Live.Farm().Node("written"); return ok },
		},
	} {
		if tt.action == "read the config" {
			f.write(t, "      {name: written, macs: [\"02:d4:00:00:00:01\"], ip: 10.28.98.1},\n")
		}
		b.Visit(tt.path)
		for _, row := range tt.mark {
			b.Run(chromedp.Click(`input[value="` + row + `"]`))
		}
		b.Run(chromedp.Click(tt.open))
		if len(tt.fill) > 0 {
			b.Until(tt.action+": the form", `document.querySelector('button[value="preview"]') !== null`)
			b.Run(tt.fill...)
			b.Run(chromedp.Click(`button[value="preview"]`))
		}
		b.Until(tt.action+": the preview", `document.querySelector('button[value="do"]') !== null`)
		fixture.WantText(t, tt.action, Value[string](b, `document.querySelector(".change").innerText`), tt.says)
		b.Picture("do-" + strings.ReplaceAll(tt.action, " ", "-"))
		b.Run(chromedp.Click(`button[value="do"]`))
		b.Until(tt.action+": it is done", `location.pathname === "`+tt.then+`" && document.getElementById("live") !== null`)
		if !tt.done() {
			t.Errorf("%s: nothing was done; the page says\n%s", tt.action, Value[string](b, "document.body.innerText"))
		}
	}
	b.Quiet("the forms")
}

// write changes the config file: the first pool has one node more. The server of
// these tests reads it only when it is told to: nothing watches it.
func (f *farm) write(t *testing.T, node string) {
	t.Helper()
	const first = "tags: [storage], nodes: [\n"
	text := strings.Replace(fixture.ReadFile(t, "drover.yaml"), first, first+node, 1)
	if err := os.WriteFile("drover.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
