package browser

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
)

// TestLive: the steps of a boot appear without a reload, and disturb no reader.
func TestLive(t *testing.T) {
	f := newFarm(t, 60)
	b := open(t, f)
	plan := f.Live.Farm().Resolve(resolve.Query{MAC: mac(3), Firmware: pools.UEFIx64})
	f.Store.Boots.Discover(plan, time.Now())
	b.Visit("/nodes/" + name(3))
	b.Run(chromedp.Click(`#reply > summary`))
	Value[bool](b, `window.mark = true; document.querySelector('#reply > summary').focus(); true`)
	for _, s := range boots.Steps()[1:] {
		if s.Optional {
			continue
		}
		began := time.Now()
		var err error
		if s.Step == boots.StepScript {
			_, err = f.Store.Boots.Issue(plan)
		} else {
			err = f.Store.Boots.Step(mac(3), "", boots.Event{Step: s.Step, Detail: "<b>detail</b> of " + string(s.Step)})
		}
		if err != nil {
			t.Fatal(err)
		}
		b.Until(string(s.Step), `[...document.querySelectorAll(".waterfall tbody th")].some((th) => th.textContent === "`+string(s.Step)+`")`)
		t.Logf("%s appeared after %s", s.Step, time.Since(began).Round(10*time.Millisecond))
	}
	b.Until("the end", `document.querySelector(".top .state").textContent === "ready"`)
	if !Value[bool](b, `window.mark && document.querySelector('#reply').open && document.activeElement.matches('#reply > summary')`) {
		t.Error("the page was loaded again, or has closed what was open, or lost the focus")
	}
	b.Quiet("a boot")
}

// TestActions: machines are marked in the list, and moved, tagged, removed after a preview. A
// refresh keeps the marks.
func TestActions(t *testing.T) {
	f := newFarm(t, 4)
	f.populateAPI(t)
	b := open(t, f)
	b.Visit("/nodes?pool=gpu")
	b.Run(chromedp.Click(`input[value="g1"]`), chromedp.Click(`input[value="g3"]`))
	f.boot(t, pools.MAC{0x02, 0xd3, 0, 0, 0, 2}, 5, 0, "")
	b.Until("a refresh", `document.querySelector('tr[id="row-g2"]').className === "booting"`)
	if !Value[bool](b, `document.querySelector('input[value="g1"]').checked && document.querySelector('input[value="g3"]').checked && !document.querySelector('input[value="g2"]').checked`) {
		t.Error("a refresh has changed the marks")
	}
	b.Run(chromedp.Click(`button[value="move"]`))
	b.Until("the form", `document.querySelector("#in-pool") !== null && document.querySelector("#in-pool").value === ""`)
	b.Run(chromedp.SetValue("#in-pool", "compute"), chromedp.Click(`button[value="preview"]`))
	b.Until("the preview", `document.body.innerText.includes("pool: gpu → compute") && document.querySelectorAll(".change tbody tr").length === 2`)
	b.Picture("preview")
	b.accessible("the preview")
	b.Run(chromedp.Click(`button[value="do"]`))
	b.Until("the list", `location.pathname === "/nodes"`)
	if got := pool(f, "g1") + pool(f, "g2") + pool(f, "g3"); got != "computegpucompute" {
		t.Errorf("the pools are %s", got)
	}
	b.Visit("/nodes/g4")
	b.Run(chromedp.Click(`//a[text()="Remove"]`))
	b.Until("the preview", `document.querySelector('button[value="do"]') !== null`)
	b.Run(chromedp.Click(`button[value="do"]`))
	b.Until("the list", `location.pathname === "/nodes" && !document.body.innerText.includes("g4")`)
	b.Quiet("the forms")
}

func pool(f *farm, node string) string {
	n, _ := f.Live.Farm().Node(node)
	return n.Pool
}
