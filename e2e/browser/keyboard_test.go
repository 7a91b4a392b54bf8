package browser

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// maxTabs bounds the way to something with the Tab key.
const maxTabs = 150

// key presses a key, or types a text.
func (b *Tab) key(keys string, options ...chromedp.KeyOption) {
	b.t.Helper()
	b.Run(chromedp.KeyEvent(keys, options...))
}

// slash presses "/" as a keyboard does: its character comes only if no script keeps it. [Tab.key]
// sends the character apart.
func (b *Tab) slash() {
	b.t.Helper()
	b.Run(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
			e := input.DispatchKeyEventParams{Type: kind, Key: "/", Code: "Slash", WindowsVirtualKeyCode: 191}
			if kind == input.DispatchKeyEventTypeKeyDown {
				e.Text = "/"
			}
			if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, e); err != nil {
				return err
			}
		}
		return nil
	}))
}

// tabTo presses the Tab key until an element has the focus, and fails the test if no outline
// shows where it is.
func (b *Tab) tabTo(selector string, options ...chromedp.KeyOption) {
	b.t.Helper()
	for range maxTabs {
		b.key(kb.Tab, options...)
		if Value[bool](b, `document.activeElement.matches(`+"`"+selector+"`"+`)`) {
			if !Value[bool](b, `document.activeElement.matches(":focus-visible") && getComputedStyle(document.activeElement).outlineStyle !== "none"`) {
				b.t.Errorf("nothing shows that %s has the focus", selector)
			}
			return
		}
	}
	b.t.Fatalf("%d times Tab do not lead to %s", maxTabs, selector)
}

// TestKeyboard: a machine is found, read, marked and moved without a mouse.
func TestKeyboard(t *testing.T) {
	f := newFarm(t, 12)
	f.populateAPI(t)
	b := open(t, f)
	b.Visit("/nodes")
	b.tabTo(".skip")
	b.key(kb.Enter)
	b.Until("the content", `document.activeElement.id === "live"`)

	b.slash()
	b.Until("the search", `document.activeElement.type === "search"`)
	b.key("gpu" + kb.Enter)
	b.Until("the machines of the pool", `location.search.includes("q=gpu") && document.querySelectorAll("tbody tr").length === 4`)

	b.tabTo(`input[value="g2"]`)
	b.key(" ")
	b.Until("the mark", `document.querySelector('input[value="g2"]').checked`)
	b.tabTo(`button[value="move"]`, chromedp.KeyModifiers(chromedp.ModifierShift))
	b.key(kb.Enter)
	b.Until("the form", `document.querySelector("#in-pool") !== null`)
	b.tabTo("#in-pool")
	b.key("comp") // chooses by the first letters
	b.Until("the choice", `document.querySelector("#in-pool").value === "compute"`)
	b.tabTo(`button[value="preview"]`)
	b.key(kb.Enter)
	b.Until("the preview", `document.querySelector('button[value="do"]') !== null`)
	b.tabTo(`button[value="do"]`)
	b.key(kb.Enter)
	b.Until("the machine", `location.pathname === "/nodes/g2"`)
	if got := pool(f, "g2"); got != "compute" {
		t.Errorf("g2 is in the pool %s", got)
	}

	b.tabTo(`#reply > summary`)
	b.key(kb.Enter)
	b.Until("the reply", `document.querySelector('#reply').open`)
	b.Visit("/chassis")
	b.tabTo(`a.slot`)
	b.key(kb.Enter)
	b.Until("the machine in the slot", `location.pathname.startsWith("/nodes/g")`)
	b.tabTo(`.session button`)
	b.key(kb.Enter)
	b.Until("the login", `document.querySelector("#token") !== null && document.activeElement.id === "token"`)
	b.Quiet("the keyboard")
}
