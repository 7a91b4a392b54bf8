package browser

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"syscall"
	"testing"
	"time"

	"drover/pools/boots"
	"drover/web/auth"
	"drover/web/page/snapshot"
)

// BenchmarkRefresh is the time of refreshes at 10 000 machines, of which 2 000 boot: first of
// collecting the machines, which all open pages share, then of views that nobody else has open. It
// needs no browser. Run it with -test.cpu 1, as DHCP has it on a host with one processor. The
// processor time is that of the whole process, its garbage collector and the client included; on a
// busy host it is the figure to trust.
func BenchmarkRefresh(b *testing.B) {
	const nodes, booting = 10_000, 2_000
	f := newFarm(b, nodes)
	for i := range nodes {
		n := len(boots.Steps())
		if i >= nodes-booting {
			n = 2 + i%6
		}
		f.boot(b, mac(i), n, time.Minute, "")
	}
	b.Run("collect", func(b *testing.B) {
		defer processor(b)()
		for b.Loop() {
			snapshot.New(f.Web.API, f.Live.Farm(), auth.Client{}, nil)
		}
	})
	c := loggedIn(b, f)
	for _, path := range []string{"/?", "/nodes?", "/nodes?q=m1c", "/nodes?state=booting,stuck&sort=-since", "/nodes?sort=address", "/nodes/" + name(nodes-1) + "?"} {
		b.Run(path, func(b *testing.B) {
			i := 0
			defer processor(b)()
			for b.Loop() {
				i++
				fetch(b, c, fmt.Sprintf("%s%s&other=%d", f.url, path, i))
			}
		})
	}
}

// processor returns a function that reports the processor time since, in ms for each operation.
func processor(b *testing.B) func() {
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/1e6/float64(b.N), "cpu-ms/op") }
}

// loggedIn returns a client with a session.
func loggedIn(t testing.TB, f *farm) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Jar: jar}
	resp, err := c.PostForm(f.url+"/login", url.Values{"token": {f.token}})
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return c
}

// fetch reads a page.
func fetch(t testing.TB, c *http.Client, url string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, resp.Status, err)
	}
}
