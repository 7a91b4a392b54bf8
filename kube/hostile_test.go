package kube_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drover/kube"
	"drover/pools"
	"drover/pools/resolve"
)

// These tests are about finding C2 of the attacks: the API server of one tenant sends
// anything, and drover ran out of memory with it. Each server is a real one, and runs in
// the process of the test.

// maxHeap is the largest heap of drover and of the hostile server.
const maxHeap = 400 << 20

// wantSmallHeap fails the test if the heap exceeds maxHeap until the test ends.
func wantSmallHeap(t *testing.T) {
	done := make(chan struct{})
	var peak uint64
	var work sync.WaitGroup
	work.Go(func() {
		var m runtime.MemStats
		for {
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() {
		close(done)
		work.Wait()
		if t.Logf("heap %d MiB", peak>>20); peak > maxHeap {
			t.Errorf("the heap had %d MiB", peak>>20)
		}
	})
}

// endless answers with head and then with again for ever.
func endless(head, again string) http.HandlerFunc {
	piece := []byte(strings.Repeat(again, 64<<10/len(again)+1))
	return func(w http.ResponseWriter, r *http.Request) {
		_, err := io.WriteString(w, head)
		for err == nil && r.Context().Err() == nil {
			_, err = w.Write(piece)
		}
	}
}

// as adds a header to the answers of h.
func as(name, value string, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(name, value)
		h(w, r)
	}
}

// status answers with another status than 200.
func status(code int, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(code)
		h(w, r)
	}
}

// bomb is 4 million Nodes in 200 kB of gzip.
func bomb(t *testing.T) http.HandlerFunc {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, nodeList)
	for range 4000 {
		_, _ = io.WriteString(z, strings.Repeat(`{"metadata":{"labels":{"drover/managed":""}}},`, 1000))
	}
	_, _ = io.WriteString(z, `{}]}`)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return as("Content-Encoding", "gzip", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(packed.Bytes()) })
}

// pages answers with one page after another, each with the same token to continue.
func pages(token string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":%q},"items":[{"metadata":{"name":"n"}}]}`, token)
	}
}

func redirect(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.String(), code) }
}

const nodeList = `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`

// beside returns two tenants, of which "hostile" is of that API server, and a count of
// the answers that were refused.
func beside(t *testing.T, hostile *apiServer, edit ...func(*kube.Clusters)) (c *kube.Clusters, refused *atomic.Int32) {
	refused = new(atomic.Int32)
	c = &kube.Clusters{
		Machines: &farm{plans: map[string]*resolve.Plan{}}, DeadAfter: 10 * time.Millisecond, Key: sealKey,
		OnRefused: func(cluster string) {
			if cluster != "hostile" {
				t.Errorf("an answer of cluster %q was refused", cluster)
			}
			refused.Add(1)
		},
	}
	for _, e := range edit {
		e(c)
	}
	c.Set([]pools.Cluster{{Name: "hostile", Kubeconfig: hostile.kubeconfig()}, {Name: "well", Kubeconfig: newAPIServer(t).kubeconfig()}})
	t.Cleanup(c.Close)
	return c, refused
}

// wantOthersWell fails the test unless nodes of the other tenant join, and /readyz names
// the hostile one alone.
func wantOthersWell(t *testing.T, c *kube.Clusters, want string) {
	t.Helper()
	wantJoin(t, c)
	got := c.Check(t.Context())
	if err := got["hostile"]; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("readiness: %v, want %q", err, want)
	}
	if got["well"] != nil {
		t.Errorf("readiness of the other tenant: %v", got["well"])
	}
}

// wantJoin fails the test unless a node of the other tenant joins.
func wantJoin(t *testing.T, c *kube.Clusters, edit ...func(*resolve.Plan)) {
	t.Helper()
	p := plan(append(edit, func(p *resolve.Plan) { p.Cluster = "well" })...)
	err := judged(func() error {
		_, err := c.Join(t.Context(), p, addr(), "")
		return err
	})
	if err != nil {
		t.Errorf("a join of the other tenant: %v", err)
	}
}

// judged returns the first of ten errors that is not about time, or the last: on a busy host
// the time limit of a request can end before its answer is read, and drover and nodes ask again.
func judged(next func() error) (err error) {
	for range 10 {
		if err = next(); err == nil || !strings.Contains(err.Error(), "does not answer in time") {
			break
		}
	}
	return err
}

func TestHostileLists(t *testing.T) {
	tests := []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"objects without end", endless(nodeList, `{},`), "takes more than 32 MiB of memory"},
		{"a string without end", endless(nodeList+`{"metadata":{"name":"`, "x"), "one of its objects takes more than 2 MiB"},
		{"labels without end", endless(nodeList+`{"metadata":{"labels":{`, `"a":"",`), "one of its objects takes more than 2 MiB"},
		{"containers without end", endless(nodeList+`{"status":{"images":[`, `{},`), "one of its objects takes more than 2 MiB"},
		{"blanks without end", endless("", " "), "takes more than 32 MiB"},
		{"values without end", endless("", "{}"), "takes more than 32 MiB"},
		{"brackets without end", endless("", "["), "nested deeper than 100"},
		{"objects inside of objects", endless(nodeList, `{"a":`), "nested deeper than 100"},
		{"gzip", bomb(t), `its encoding is "gzip", and none was asked for`},
		{"protobuf", as("Content-Type", "application/vnd.kubernetes.protobuf", endless("k8s\x00", "\x12\x00")), "and JSON was asked for"},
		{"CBOR", as("Content-Type", "application/cbor", endless("", "\x9f")), "and JSON was asked for"},
		{"YAML", as("Content-Type", "application/yaml; charset=utf-8", endless("", "- a\n")), "and JSON was asked for"},
		{"no type at all", as("Content-Type", ";", endless("", "[")), `its type is ";"`},
		{"a page of text", as("Content-Type", "text/html", endless("<html>", "<p>")), "too long for an error"},
		{"an error without end", status(500, endless(`{"kind":"Status","message":"`, "x")), "too long for an error"},
		{"causes without end", status(422, endless(`{"kind":"Status","details":{"causes":[`, "{},")), "too long for an error"},
		{"pages without end", pages("again"), "more than 500 pages"},
		{"a huge token to continue", pages(strings.Repeat("x", 1<<20)), "its continue token has 1048576 bytes"},
		{"a redirect to itself", redirect(302), "status 302 leads elsewhere"},
		{"a redirect with method and body", redirect(307), "status 307 leads elsewhere"},
		{"a header without end", as("X", strings.Repeat("x", 1<<20), pages("")), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantSmallHeap(t)
			s := newAPIServer(t)
			s.set("GET nodes", tt.answer)
			errs := make(chan error, 100)
			c, refused := beside(t, s, func(c *kube.Clusters) {
				c.OnReconcile = func(cluster string, _ int, err error) {
					if cluster == "hostile" {
						errs <- err
					}
				}
			})
			c.Refresh()
			if err := judged(func() error { return <-errs }); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if tt.want == "" { // net/http does not read that
				return
			}
			if refused.Load() == 0 {
				t.Error("it was not counted as refused")
			}
			wantOthersWell(t, c, tt.want)
		})
	}
}

// numbered returns n times form, each with its number.
func numbered(form string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, form, i)
	}
	return b.String()
}

// fifteen returns a page with so many copies of an object.
func fifteen(object string) string { return nodeList + strings.Repeat(object+",", 14) + object + "]}" }

// Pages just within the limits, as much memory as text can take.
func TestHostilePages(t *testing.T) {
	for name, page := range map[string]string{
		"objects":    nodeList + strings.Repeat("{},", 16_000) + "{}]}",
		"images":     fifteen(`{"status":{"images":[` + strings.Repeat("{},", 7_100) + "{}]}}"),
		"labels":     fifteen(`{"metadata":{"labels":{` + numbered(`"%06d":"",`, 46_000) + `"x":""}}}`),
		"quantities": fifteen(`{"status":{"capacity":{` + numbered(`"%06d":1,`, 47_000) + `"x":1}}}`),
		"text":       fifteen(`{"metadata":{"annotations":{"a":"` + strings.Repeat("x", 2<<20-4096) + `"}}}`),
	} {
		t.Run(name, func(t *testing.T) {
			wantSmallHeap(t)
			s := newAPIServer(t)
			s.set("GET nodes", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page) })
			errs := make(chan error, 100)
			c, _ := beside(t, s, func(c *kube.Clusters) {
				c.OnReconcile = func(cluster string, _ int, err error) {
					if cluster == "hostile" {
						errs <- err
					}
				}
			})
			c.Refresh()
			if err := judged(func() error { return <-errs }); err != nil {
				t.Errorf("the page is too large for the test: %v", err)
			}
		})
	}
}

// An answer that drips ends with the time limit of its request.
func TestHostileDrip(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t)
	s.set("GET nodes", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte(" "))
			w.(http.Flusher).Flush()
			time.Sleep(100 * time.Millisecond)
		}
	})
	c, _ := beside(t, s)
	failed := make(chan error)
	go func() {
		_, err := c.Join(t.Context(), plan(func(p *resolve.Plan) { p.Cluster = "hostile" }), addr(), "")
		failed <- err
	}()
	wantJoin(t, c)
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "the API server does not answer in time") {
		t.Errorf("got %v", err)
	}
}

// What a join reads.
func TestHostileJoins(t *testing.T) {
	tests := []struct {
		name   string
		key    string
		answer http.HandlerFunc
		want   string
	}{
		{"Node", "GET nodes", endless(`{"kind":"Node","apiVersion":"v1","metadata":{"annotations":{`, `"a":"b",`), "read the Node: the API server is broken or hostile"},
		{"cluster-info", "GET configmaps", endless(`{"kind":"ConfigMap","apiVersion":"v1","data":{"kubeconfig":"`, "x"), "read cluster-info: the API server is broken or hostile"},
		{"Lease", "GET leases", endless(`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"resourceVersion":"`, "1"), "read the Lease of the Node's kubelet: the API server is broken or hostile"},
		{"Lease of a huge version", "GET leases", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"resourceVersion":%q}}`, strings.Repeat("1", 1<<20))
		}, "its resourceVersion has 1048576 bytes"},
		{"token", "POST secrets", endless(`{"kind":"Secret","apiVersion":"v1","data":{`, `"a":"",`), "mint a join token: the API server is broken or hostile"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantSmallHeap(t)
			s := newAPIServer(t)
			s.setNode("m1c29", "u1", "b1", corev1.ConditionTrue, beat(1))
			s.set(tt.key, tt.answer)
			c, _ := beside(t, s)
			_, err := c.Join(t.Context(), plan(func(p *resolve.Plan) { p.Cluster = "hostile" }), addr(), "b2")
			retry, ok := err.(interface{ RetryAfter() time.Duration })
			if err == nil || !strings.Contains(err.Error(), tt.want) || !ok || retry.RetryAfter() <= 0 {
				t.Errorf("got %v, want %q and a time to try again", err, tt.want)
			}
			if len(err.Error()) > 2000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			wantJoin(t, c)
		})
	}
}

// Answers that are within the limits, but many at the same time.
func TestHostileCrowd(t *testing.T) {
	wantSmallHeap(t)
	s := newAPIServer(t)
	object := `{"kind":"Node","apiVersion":"v1","metadata":{"labels":{` + numbered(`"k%05d":"",`, 40_000) + `"b":""}}}`
	s.set("GET nodes", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, object) })
	c, _ := beside(t, s)
	var work sync.WaitGroup
	for i := range 500 {
		work.Go(func() {
			p := plan(func(p *resolve.Plan) { p.Cluster, p.Node = "hostile", fmt.Sprintf("n%d", i) })
			_, _ = c.Join(t.Context(), p, addr(), "b2")
		})
	}
	for i := range 20 {
		wantJoin(t, c, func(p *resolve.Plan) { p.Node = fmt.Sprintf("n%d", i) })
	}
	c.Close()
	work.Wait()
}
