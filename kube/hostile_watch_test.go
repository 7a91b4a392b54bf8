package kube_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/kube"
	"drover/kube/inspect"
	"drover/pools"
)

// requestEvent returns the event of a certificate request, with another name and UID for
// each i. One of 50 is by a token of this drover, for another node than it asks for.
func requestEvent(t *testing.T) func(i int) string {
	csr := request(t, "NAME", "aaaaaa", groupsOf("aaaaaa", "m1"), "m2")
	text, err := json.Marshal(csr)
	if err != nil {
		t.Fatal(err)
	}
	return func(i int) string {
		one := strings.Replace(string(text), `"name":"NAME","uid":"uid-of-NAME"`, fmt.Sprintf(`"name":"r%d","uid":"%d"`, i, i), 1)
		if i%50 > 0 {
			one = strings.Replace(one, "system:bootstrap:aaaaaa", "somebody", 1)
		}
		return `{"type":"ADDED","object":` + one + "}\n"
	}
}

// C2: what the watch of certificate requests gets.
func TestHostileWatches(t *testing.T) {
	event := requestEvent(t)
	flood := func(w http.ResponseWriter, r *http.Request) {
		var all strings.Builder // made before it is sent: what a busy host makes of it does not slow it down
		for i := range 2000 {
			all.WriteString(event(i))
		}
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, all.String()); err != nil {
				return
			}
		}
	}
	tests := []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"an event without end", endless(`{"type":"ADDED","object":{"kind":"x","a":"`, "x"), "takes more than 2 MiB"},
		{"elements without end", endless(`{"type":"ADDED","object":{"spec":{"groups":[`, `"",`), "takes more than 2 MiB"},
		{"blanks without end", endless("", "\n"), "takes more than 2 MiB"},
		{"events without end", flood, "its watches send too many events"},
		{"deletions without end", endless("", `{"type":"DELETED","object":{"kind":"CertificateSigningRequest","apiVersion":"certificates.k8s.io/v1"}}`), "too many events"},
		{"large events without end", endless("", `{"type":"MODIFIED","object":{"kind":"CertificateSigningRequest","apiVersion":"certificates.k8s.io/v1","spec":{"groups":[""`+
			strings.Repeat(`,""`, 7000)+`]}}}`), "all its answers together are too large"},
		{"protobuf", as("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch", endless("", "\x00\x00\x00\x01")), "JSON was asked for"},
		{"a redirect", redirect(302), "status 302 leads elsewhere"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantSmallHeap(t)
			s := newAPIServer(t)
			s.set("WATCH certificatesigningrequests", tt.answer)
			c, refused := beside(t, s, func(c *kube.Clusters) { c.StartLoops = true })
			fixture.Eventually(t, "refused", func() bool { return refused.Load() > 0 })
			wantOthersWell(t, c, tt.want)
		})
	}
}

// C2: lists of certificate requests, which drover holds as a whole.
func TestHostileRequests(t *testing.T) {
	const head = `{"kind":"CertificateSigningRequestList","apiVersion":"certificates.k8s.io/v1","metadata":{"resourceVersion":"1","continue":"x"},"items":[`
	one := strings.TrimSuffix(strings.TrimPrefix(requestEvent(t)(1), `{"type":"ADDED","object":`), "}\n")
	for name, answer := range map[string]http.HandlerFunc{
		"objects without end": endless(head, "{},"),
		"pages without end": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, head+strings.Repeat(one+",", 99)+one+"]}")
		},
	} {
		t.Run(name, func(t *testing.T) {
			wantSmallHeap(t)
			s := newAPIServer(t)
			s.set("GET certificatesigningrequests", answer)
			c, refused := beside(t, s, func(c *kube.Clusters) { c.StartLoops = true })
			fixture.Eventually(t, "refused", func() bool { return refused.Load() > 0 })
			wantOthersWell(t, c, "MiB of memory")
		})
	}
}

// C2: the pods of a node that moves.
func TestHostilePods(t *testing.T) {
	wantSmallHeap(t)
	p := newTwoTenants(t)
	p.a.set("GET pods", endless(`{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[`, `{"spec":{"containers":[{},{},{}]}},`))
	p.moveTo("tenant-b")
	p.at(t, pools.MoveBegun, "list the pods of the Node: the API server is broken or hostile")
}

// C2: the commands for clusters, over HTTP/2 and HTTP/1.1.
func TestHostileInspect(t *testing.T) {
	wantSmallHeap(t)
	for _, http2 := range []bool{true, false} {
		s := newAPIServer(t)
		s.Server = httptest.NewUnstartedServer(endless(`{"kind":"Info","gitVersion":"`, "x"))
		s.EnableHTTP2 = http2
		s.StartTLS()
		t.Cleanup(s.Close)
		c, _ := newClusters(t, s.kubeconfig())
		found, err := c.Inspect(t.Context(), "tenant-a")
		if err != nil || len(found) != 1 || found[0].OK || !strings.Contains(found[0].Detail, "the API server is broken or hostile") {
			t.Errorf("check: %+v, %v", found, err)
		}
		manifest := []byte("{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n")
		err = inspect.Apply(t.Context(), s.kubeconfig(), manifest, func(string) { t.Error("applied") })
		if err == nil || !strings.Contains(err.Error(), "answer refused") {
			t.Errorf("prepare: %v", err)
		}
	}
}

// C2: a redirect must not lead drover, with its credentials, to another server.
func TestRedirectIsNotFollowed(t *testing.T) {
	s := newAPIServer(t)
	other := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("drover sent %s %s, with %q", r.Method, r.URL, r.Header.Get("Authorization"))
	}))
	t.Cleanup(other.Close)
	for _, key := range []string{"GET nodes", "POST secrets", "GET configmaps"} {
		for _, code := range []int{301, 302, 303, 307, 308} {
			s.set(key, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, code) })
			c, _ := newClusters(t, s.kubeconfig())
			if _, err := c.Join(t.Context(), plan(), addr(), ""); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("status %d leads elsewhere", code)) {
				t.Errorf("%s, %d: %v", key, code, err)
			}
		}
		s.set(key, nil)
	}
}
