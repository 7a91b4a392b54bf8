package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"drover/e2e/buildcache"
	"drover/e2e/fixture"
)

// patience bounds the wait for anything that a browser does.
const patience = 5 * time.Minute

// Tab is a tab of a Chromium of its own.
type Tab struct {
	context.Context
	t   testing.TB
	url string // of the server

	told bool // the log names the folder of the screenshots

	mu     sync.Mutex
	errors []string // of the console
}

// Open starts a Chromium and logs in to a server with a token.
func Open(t testing.TB, url, token string) *Tab {
	t.Helper()
	b := Start(t, url)
	b.Run(chromedp.Navigate(url), chromedp.SendKeys("#token", token), chromedp.Submit("#token"))
	b.Until("the overview", `document.getElementById("live") !== null`)
	return b
}

// Start starts a Chromium for a server.
func Start(t testing.TB, url string) *Tab {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		fixture.Missing(t, err)
	}
	options := slices.Concat(chromedp.DefaultExecAllocatorOptions[:], []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.WindowSize(1280, 900),
	})
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	b := &Tab{t: t, url: url}
	ctx, cancel := chromedp.NewContext(alloc, chromedp.WithListener(b.listen))
	t.Cleanup(cancel)
	b.Context = ctx
	if err := chromedp.Do(ctx); err != nil { // the first call starts the browser, and has no limit
		t.Fatal(err)
	}
	return b
}

// listen notes errors of the console: of scripts, of the Content-Security-Policy, of the
// network.
func (b *Tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.errors = append(b.errors, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		b.errors = append(b.errors, fmt.Sprintf("console.%s", e.Type))
	case *log.EventEntryAdded:
		if strings.HasPrefix(e.Entry.Text, "Autofocus processing was blocked") {
			return // not an error: [Open] was faster than the browser, and has the focus already
		}
		b.errors = append(b.errors, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	}
}

// Quiet fails the test if the console has an error.
func (b *Tab) Quiet(what string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.errors) > 0 {
		b.t.Errorf("%s: the console has %s", what, strings.Join(b.errors, "\n"))
		b.errors = nil
	}
}

// forget drops the errors of the console.
func (b *Tab) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.errors = nil
}

// Run runs actions, one after the other.
func (b *Tab) Run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.Context, patience)
	defer cancel()
	for _, a := range actions {
		err := chromedp.Do(ctx, a)
		for err != nil && strings.Contains(err.Error(), replaced) && ctx.Err() == nil {
			err = chromedp.Do(ctx, a)
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// replaced is the error of an action that found its element in the page before: it has done nothing.
const replaced = "Could not find node with given id"

// Value returns the value of an expression, which may be a promise.
func Value[T any](b *Tab, expression string) T {
	b.t.Helper()
	return get(b, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// get returns the value of an action.
func get[T any](b *Tab, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.Context, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// Until waits until an expression is true. Pages are loaded meanwhile.
func (b *Tab) Until(what, expression string) {
	b.t.Helper()
	end := time.Now().Add(patience)
	for time.Now().Before(end) {
		ctx, cancel := context.WithTimeout(b.Context, patience)
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
		cancel()
		if err == nil && ok {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.t.Fatalf("%s: %s never became true; the page says\n%s", what, expression, Value[string](b, "document.body.innerText"))
}

// Visit loads a page of the server.
func (b *Tab) Visit(path string) {
	b.t.Helper()
	b.Run(chromedp.Navigate(b.url + path))
	b.Until(path, `document.readyState === "complete" && document.getElementById("live") !== null`)
}

// maxPictures bounds the screenshots of a run: some 50 MB.
const maxPictures = 400

// pictures is the folder of the screenshots of this program: those of the run before are gone. It is
// empty if none are kept.
var pictures = sync.OnceValues(func() (string, error) {
	if os.Getenv("DROVER_E2E") != "1" {
		return "", nil
	}
	cache, err := buildcache.CacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "screenshots", strings.TrimSuffix(filepath.Base(os.Args[0]), ".test"))
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o755)
})

// taken is the number of screenshots of this program.
var taken atomic.Int64

// Picture keeps a screenshot if DROVER_E2E is 1. The test's log names the folder.
func (b *Tab) Picture(name string) {
	b.t.Helper()
	dir, err := pictures()
	if err != nil {
		b.t.Fatal(err)
	}
	if dir == "" || taken.Add(1) > maxPictures {
		return
	}
	if !b.told {
		b.told = true
		b.t.Logf("screenshots are in %s", dir)
	}
	png := get(b, chromedp.FullScreenshot(100))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		b.t.Error(err)
	}
}
