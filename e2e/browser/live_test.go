package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
)

// discover begins a boot of a machine.
func (f *farm) discover(m pools.MAC) {
	f.Store.Boots.Discover(f.Live.Farm().Resolve(resolve.Query{MAC: m, Firmware: pools.UEFIx64}), time.Now())
}

// proxy starts a proxy in front of the server, and returns its URL. The handler passes on what it
// does not answer itself.
func (f *farm) proxy(t *testing.T, handle func(w http.ResponseWriter, r *http.Request, pass http.Handler)) string {
	server, err := url.Parse(f.url)
	if err != nil {
		t.Fatal(err)
	}
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(server) }}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, pass) }))
	t.Cleanup(proxy.CloseClientConnections)
	return proxy.URL
}

// TestStream: each page has a stream, also after many others, and does not ask without a reason.
func TestStream(t *testing.T) {
	f := newFarm(t, 4)
	b := open(t, f)
	for range 12 {
		b.Visit("/nodes?sort=-name")
		b.Until("a stream", `document.getElementById("stream")._htmx?.sse?.status === 200`)
		Value[bool](b, `window.asked = 0; addEventListener("htmx:before:request", () => asked++); true`)
	}
	time.Sleep(6 * time.Second) // three times the interval without a stream
	if n := Value[int](b, `window.asked`); n > 0 {
		t.Errorf("a page that does not change asked %d times", n)
	}
	b.Quiet("the streams")
}

// TestWithoutStream: a page refreshes behind a proxy that keeps its stream back, or refuses it.
func TestWithoutStream(t *testing.T) {
	f := newFarm(t, 4)
	proxy := f.proxy(t, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		switch {
		case r.URL.Path == "/events/nodes":
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case strings.HasPrefix(r.URL.Path, "/events/"):
			http.Error(w, "no", http.StatusServiceUnavailable)
		default:
			pass.ServeHTTP(w, r)
		}
	})
	b := Open(t, proxy, f.token)
	b.Visit("/nodes")
	b.forget() // that the overview's stream was refused
	f.discover(mac(1))
	b.Until("a refresh", `document.querySelector('tr[id="row-`+name(1)+`"]').className === "booting"`)
	b.Quiet("a proxy that keeps the stream back")
	b.Visit("/nodes/" + name(2))
	f.discover(mac(2))
	b.Until("a refresh", `document.querySelector(".top .state").textContent === "booting"`)
	if text := Value[string](b, `document.getElementById("stale").textContent`); text != "" {
		t.Errorf("the page says %q", text)
	}
}

// TestUndisturbed: text that is selected stays as it is; what has changed meanwhile comes later.
func TestUndisturbed(t *testing.T) {
	f := newFarm(t, 4)
	b := open(t, f)
	b.Visit("/nodes/" + name(1))
	Value[bool](b, `window.mark = true; getSelection().selectAllChildren(document.querySelector("h1")); window.waits = 0; addEventListener("htmx:before:request", (e) => { if (e.defaultPrevented) waits++; }); true`)
	f.discover(mac(1))
	b.Until("it waits", `window.waits > 2`)
	if state := Value[string](b, `document.querySelector(".top .state").textContent + getSelection()`); state != "new"+name(1) {
		t.Errorf("the page shows %q", state)
	}
	Value[bool](b, `getSelection().removeAllRanges(); true`)
	b.Until("a refresh", `window.mark && document.querySelector(".top .state").textContent === "booting"`)
	b.Quiet("a selection")
}

// TestSessionOver: a page whose session is over becomes the login, which leads back to it, at
// whatever time its stream begins. The console has no error.
func TestSessionOver(t *testing.T) {
	const logout = `fetch("/logout", {method: "POST"}).then(() => true)`
	login := func(t *testing.T, b *Tab) {
		b.Until("the login", `document.querySelector('#token') !== null && document.querySelector('input[name=next]').value === "/nodes?q=m1"`)
		b.Quiet("the end of a session")
	}
	t.Run("with a stream", func(t *testing.T) {
		b := open(t, newFarm(t, 4))
		b.Visit("/nodes?q=m1")
		b.Until("a stream", `document.getElementById("stream")._htmx?.sse?.status === 200`)
		Value[bool](b, logout)
		login(t, b)
	})
	t.Run("before its stream", func(t *testing.T) {
		f := newFarm(t, 4)
		over := make(chan struct{})
		b := Open(t, f.proxy(t, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
			if r.URL.Path == "/events/nodes" {
				<-over
			}
			pass.ServeHTTP(w, r)
		}), f.token)
		b.Visit("/nodes?q=m1")
		Value[bool](b, logout)
		close(over)
		login(t, b)
	})
}

// hostile is what a machine may send as any text: tags, attributes of htmx and its own tags, and
// what stands for the digest of the page.
const hostile = `"'><script>pwned=1</script><img src=x onerror=pwned=1><div hx-get="/logout" hx-trigger="load" hx-on:click="pwned=1"></div>` +
	`<hx-partial hx-target="body"><b>pwned</b></hx-partial><template hx type="partial" hx-target="body"></template></main></body>"@tag@" javascript:pwned=1` + "\x1b[2J\u202e"

// TestHostile: texts of machines are texts in a browser, when a page is loaded and when it
// refreshes.
func TestHostile(t *testing.T) {
	f := newFarm(t, 4)
	stranger := pools.MAC{0x52, 0x54, 0, 0, 1, 0}
	f.stranger(t, stranger, true)
	report := func(m pools.MAC, try string) {
		if err := f.Store.Boots.Step(m, "", boots.Event{Step: boots.StepImage, Error: try + hostile, Detail: hostile}); err != nil {
			t.Fatal(err)
		}
	}
	seen := func(try string) {
		text := try + hostile
		f.Store.Unknowns.Seen(pools.Unknown{
			MAC: stranger, First: time.Now(), Last: time.Now(), Count: 1, Firmware: pools.Firmware(text), Class: text, Pool: "catchall", Circuit: text, Remote: text,
			Inventory: &pools.Inventory{Vendor: text, Product: text, Serial: text},
		})
	}
	f.boot(t, mac(1), 5, 0, "")
	b := open(t, f)
	for i, path := range []string{"/", "/nodes", "/nodes/" + name(1), "/nodes/" + pools.CatchAllName(stranger), "/unknown", "/nodes?q=" + url.QueryEscape(hostile) + "&state=" + url.QueryEscape(hostile)} {
		b.Visit(path)
		before := Value[string](b, `document.getElementById("live").getAttribute("hx-headers")`)
		try := fmt.Sprintf("try %d ", i)
		report(mac(1), try)
		report(stranger, try)
		seen(try)
		if strings.Contains(path, "?") { // it shows what was asked for, and nothing fits
			try = ""
		}
		b.Until(path+" refreshes", `document.querySelector("main").innerHTML.includes("pwned=1") && document.querySelector("main").textContent.includes("`+try+`")`)
		if !strings.Contains(before, `\"`) || strings.Contains(before, "tag") {
			t.Errorf("%s: the ETag is %s", path, before)
		}
		if bad := Value[string](b, `window.pwned ?? [...document.querySelectorAll("main :is(script, img, template, b[hx-get], [hx-get], [onerror], a[href^='javascript:']), body > :not(a, header, main, footer)")].map((e) => e.outerHTML).join("\n")`); bad != "" {
			t.Errorf("%s has\n%s", path, bad)
		}
		b.Quiet(path)
	}
}
