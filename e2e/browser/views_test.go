package browser

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
)

// populate gives the machines of a farm states of all kinds: boots that are complete, under way,
// failing and stuck, machines that no node declares, and leases.
func (f *farm) populate(t *testing.T) {
	t.Helper()
	f.populateAPI(t)
	steps := len(boots.Steps())
	for i := range 20 {
		f.boot(t, mac(i), steps, time.Duration(i)*time.Hour, "")
	}
	f.boot(t, mac(0), 4, 0, "")
	for i := 20; i < 30; i++ {
		f.boot(t, mac(i), 3+i%4, time.Duration(i)*time.Second, "")
	}
	for i := 30; i < 36; i++ {
		f.boot(t, mac(i), 9, time.Minute, fmt.Sprintf("Get \"http://10.28.0.2/images/debian-12/root.squashfs\": dial tcp 10.28.%d.1: connection refused, and a name_without_any_place_to_break_it_in_a_narrow_column_of_a_phone", i))
	}
	f.boot(t, mac(36), 5, time.Hour, "")
	for i := range 8 {
		f.stranger(t, pools.MAC{0x52, 0x54, 0, 0, 1, byte(i)}, i%2 == 0)
	}
}

// stranger is a machine that no node declares. It has an address, and boots if it shall.
func (f *farm) stranger(t *testing.T, m pools.MAC, booting bool) {
	t.Helper()
	now := time.Now()
	plan := f.Live.Farm().Resolve(resolve.Query{MAC: m, Firmware: pools.UEFIx64})
	addr, _, err := f.Store.Leases.Offer(plan, netip.Addr{}, now)
	if err != nil {
		t.Fatal(err)
	}
	wait, err := f.Store.Leases.Commit(plan, addr, now)
	if err == nil {
		err = wait()
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Store.Unknowns.Seen(pools.Unknown{
		MAC: m, First: now.Add(-time.Hour), Last: now, Count: 12, Firmware: pools.UEFIx64, Class: "PXEClient:Arch:00007:UNDI:003016",
		Pool: plan.Pool, Address: addr, Circuit: "ge-0/0/17", Remote: "rack-12-switch-a",
	})
	if booting {
		f.boot(t, m, 5, 0, "")
	}
}

// links returns the paths of the navigation.
func (b *Tab) links() []string {
	b.t.Helper()
	return Value[[]string](b, `[...document.querySelectorAll("#views a")].map((a) => a.getAttribute("href"))`)
}

// look is how a page is shown.
type look struct {
	name   string
	width  int64
	height int64
	dark   bool
}

var looks = []look{{"wide", 1280, 900, false}, {"phone", 390, 844, false}, {"dark", 1280, 900, true}}

// show sets how pages are shown from now on.
func (b *Tab) show(l look) {
	b.t.Helper()
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	b.Run(chromedp.EmulateViewport(l.width, l.height), chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	}))
}

// sound fails the test if a page is wider than the window, or if its tables break words in two.
func (b *Tab) sound(what string) {
	b.t.Helper()
	if over := Value[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		widest := Value[string](b, `[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".wide, nav, .skip, pre")).map((e) => e.outerHTML.slice(0, 120)).slice(0, 3).join("\n")`)
		b.t.Errorf("%s: the page is %d pixels wider than the window:\n%s", what, over, widest)
	}
	broken := Value[[]string](b, `[...document.querySelectorAll("td.whole, td.whole a")].filter((e) => e.firstChild?.nodeType === Node.TEXT_NODE).filter((e) => { const r = document.createRange(); r.selectNodeContents(e.firstChild); return r.getClientRects().length > 1; }).map((e) => e.textContent)`)
	if len(broken) > 0 {
		b.t.Errorf("%s: names in two lines: %q", what, broken)
	}
}

// TestViews: each view and each form, wide, on a phone and in the dark, has no fault of
// accessibility, no error in the console, and fits in the window.
func TestViews(t *testing.T) {
	f := newFarm(t, 60)
	f.populate(t)
	b := open(t, f)
	stranger := pools.CatchAllName(pools.MAC{0x52, 0x54, 0, 0, 1, 0})
	pages := append(b.links(),
		"/nodes/"+name(1), "/nodes/"+name(31), "/nodes/"+name(36), "/nodes/g1", "/nodes/"+stranger,
		"/nodes?state=failing", "/nodes?pool=gpu&sort=-name", "/nodes?q=nothing+has+this", "/nodes/of-nobody",
		"/change?do=add", "/change?do=edit&pick=g1", "/change?do=move&pick=g1&pick=g2&pick="+name(1), "/change?do=tag&pick=g1", "/change?do=remove&pick=g1&pick=g2",
		"/change?do=next&pick=g1", "/change?do=power&pick=g1&pick=g2", "/change?do=forget&pick=52:54:00:00:01:01", "/change?do=release&pick=10.28.250.10",
		"/change?do=read&pick=m1", "/change?do=reload", "/change?do=move",
		"/change?do=list", "/change?do=adopt&pick=52:54:00:00:01:01&pick=52:54:00:00:01:03", "/change?do=boots&pick="+name(1),
	)
	if len(b.links()) < 12 {
		t.Errorf("the navigation has %q", b.links())
	}
	for _, l := range looks {
		b.show(l)
		for _, path := range pages {
			what := l.name + path
			b.Visit(path)
			b.sound(what)
			b.accessible(what)
			b.Picture(strings.NewReplacer("/", "_", "?", "_", "&", "_", "=", "-", ":", "").Replace(what))
			if !failure(path) {
				b.Quiet(what)
			}
			b.forget()
		}
	}
}

// failure reports whether a page answers with an error, which the console has, too.
func failure(path string) bool { return path == "/nodes/of-nobody" || path == "/change?do=move" }

// TestPhone: on a phone the heads of a list sort it, and it is a table for screen readers still.
func TestPhone(t *testing.T) {
	f := newFarm(t, 60)
	f.populate(t)
	b := open(t, f)
	b.show(looks[1])
	b.Visit("/nodes?pool=compute")
	b.Run(chromedp.Click(`//th/a[text()="Node"]`))
	b.Until("the reverse order", `document.querySelector('th[aria-sort="descending"] a')?.textContent === "Node" && document.querySelector("tbody tr").id === "row-`+name(59)+`"`)
	if high := Value[float64](b, `document.querySelector("th a").getBoundingClientRect().height`); high < 24 {
		t.Errorf("the heads that sort are %.0f pixels high, which no finger hits", high)
	}
	roles := Value[string](b, `["table", "thead", "thead tr", "thead th", "tbody", "tbody tr", "tbody td:empty"].map((s) => document.querySelector(".list" + (s === "table" ? "" : " " + s))?.role).join(" ")`)
	if roles != "table rowgroup row columnheader rowgroup row cell" {
		t.Errorf("a screen reader finds %s", roles)
	}
	hidden := Value[int](b, `[...document.querySelectorAll(".list th, .list td")].filter((e) => !e.checkVisibility()).length`)
	heads, cells := Value[int](b, `document.querySelectorAll(".list thead th").length`), Value[int](b, `document.querySelector(".list tbody tr").cells.length`)
	if hidden > 0 || heads != cells {
		t.Errorf("%d cells are not there for it; %d heads, %d cells in a row", hidden, heads, cells)
	}
	b.sound("a list")
	b.accessible("a list")
	b.Quiet("a list")
}

// TestWithoutScript: a reader whose browser runs no scripts reads everything, searches, sorts and
// pages, and nothing looks as if it would refresh.
func TestWithoutScript(t *testing.T) {
	f := newFarm(t, 150)
	f.populate(t)
	b := open(t, f)
	b.Run(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
	b.Visit("/nodes")
	if Value[bool](b, `document.documentElement.classList.contains("script")`) {
		t.Fatal("the browser runs scripts")
	}
	for _, path := range b.links() {
		b.Visit(path)
		if heading := Value[string](b, `document.querySelector("h1").textContent`); heading == "" {
			t.Errorf("%s has no heading", path)
		}
	}
	b.Visit("/nodes")
	if Value[bool](b, `document.getElementById("mark").checkVisibility()`) {
		t.Error("there is a box to mark all rows, which needs a script")
	}
	b.Run(chromedp.Click(`a[rel="next"]`))
	b.Until("the second page", `location.search === "?page=2" && document.querySelectorAll("tbody tr").length > 0`)
	b.Run(chromedp.Click(`//th/a[text()="State"]`))
	b.Until("another order", `document.querySelector('th[aria-sort="ascending"]')?.textContent === "State"`)
	b.Run(chromedp.SetValue(`main input[type="search"]`, name(31)), chromedp.Submit(`main input[type="search"]`))
	b.Until("one machine", `document.querySelectorAll("tbody tr").length === 1`)
	b.Run(chromedp.Click(`td a`))
	b.Until("its view", `document.querySelector("h1").textContent === "`+name(31)+`" && document.querySelector(".waterfall") !== null`)
	b.Run(chromedp.Click(`#script > summary`))
	b.Until("its script", `document.querySelector('#script pre').innerText.includes("#!ipxe")`)
	b.Quiet("reading")
}
