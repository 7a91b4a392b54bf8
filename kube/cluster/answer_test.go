package cluster_test

import (
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drover/kube/cluster"
	"drover/pools"
)

// TestRetryAfter: C2: client-go obeys this header of an API server, up to ten times. It
// must not stop a loop of drover's for years.
func TestRetryAfter(t *testing.T) {
	for sent, want := range map[string]string{"": "", "1": "1", "5": "5", "1000000000": "5", "99999999999999999999": "5", "Wed, 21 Oct 2099 07:28:00 GMT": "5"} {
		server := roundTrip(func(*http.Request) (*http.Response, error) {
			resp := &http.Response{StatusCode: 503, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}
			if sent != "" {
				resp.Header.Set("Retry-After", sent)
			}
			return resp, nil
		})
		c := cluster.New(pools.Cluster{}, "", time.Now)
		resp, err := cluster.NewLimiter(c, server).RoundTrip(get(t, t.Context(), "https://a/api/v1/nodes"))
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.Header.Get("Retry-After"); got != want {
			t.Errorf("Retry-After %q became %q, want %q", sent, got, want)
		}
		_ = resp.Body.Close()
	}
}

// TestAnswersTogether: C2: many answers, each within its limit, are read no faster than
// their memory can be given back.
func TestAnswersTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := `{"items":[` + strings.Repeat(`[""],`, 400) + `""]}` // 0.9 MiB of memory
		sent := 0
		server := roundTrip(func(*http.Request) (*http.Response, error) {
			sent++
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer))}, nil
		})
		c := cluster.New(pools.Cluster{}, "", time.Now)
		refused := 0
		c.OnRefused = func(*cluster.RefusedError) { refused++ }
		rt := cluster.NewLimiter(c, server)
		start := time.Now()
		for range 1000 {
			resp, err := rt.RoundTrip(get(t, t.Context(), "https://a/api/v1/nodes"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(resp.Body); err != nil {
				t.Fatal(err)
			}
		}
		// One after another they are only slowed down.
		if took := time.Since(start); took < 10*time.Second || refused > 0 || sent != 1000 {
			t.Errorf("%d answers in %s, %d refused: want them to wait for each other", sent, took, refused)
		}
	})
}

// TestCost: C2: the cost of JSON is in the order of the memory that its objects take.
func TestCost(t *testing.T) {
	node := corev1.Node{}
	for i := range 20 {
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names: []string{"registry.example.org/library/name@sha256:" + strings.Repeat("0", 64), "registry.example.org/library/name:v1"}, SizeBytes: int64(i),
		})
	}
	text, err := json.Marshal(corev1.NodeList{Items: []corev1.Node{node, node, node, node}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"Nodes":  string(text),
		"empty":  `{"items":[` + strings.Repeat("{},", 1000) + `{}]}`,
		"labels": `{"items":[{"metadata":{"labels":{"a":"b","c":"d","e":"f","quoted \" ] } ,":"\\"}}}]}`,
	} {
		cost, err := cluster.Cost(text, 1<<30)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var before, after runtime.MemStats
		list := new(corev1.NodeList)
		runtime.ReadMemStats(&before)
		if err := json.Unmarshal([]byte(text), list); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		runtime.ReadMemStats(&after)
		grown := int(after.TotalAlloc - before.TotalAlloc)
		if grown > 4*cost+1<<16 {
			t.Errorf("%s: it costs %d, and took %d bytes", name, cost, grown)
		}
		if _, err := cluster.Cost(text, cost-1); err == nil {
			t.Errorf("%s: no error beyond its limit", name)
		}
	}
	if _, err := cluster.Cost(strings.Repeat(`{"a":`, 101), 1<<30); err == nil {
		t.Error("no error for deep nesting")
	}
}
