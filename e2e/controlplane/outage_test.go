package controlplane_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"drover/e2e/controlplane"
	"drover/kube"
	"drover/kube/cluster"
	"drover/pools"
	"drover/pools/resolve"
)

// hole is a proxy before an API server that can turn into a black hole: it accepts
// connections, and sends nothing back.
type hole struct {
	net.Listener
	open sync.WaitGroup
	dark atomic.Bool

	mu    sync.Mutex
	conns []net.Conn
}

func newHole(t *testing.T, to string) *hole {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hole{Listener: l}
	t.Cleanup(func() {
		_ = l.Close()
		h.cut()
		h.open.Wait()
	})
	h.open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			h.keep(c)
			if h.dark.Load() {
				continue
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = c.Close()
				continue
			}
			h.keep(server)
			h.open.Go(func() { _, _ = io.Copy(server, c); _ = server.Close() })
			h.open.Go(func() { _, _ = io.Copy(c, server); _ = c.Close() })
		}
	})
	return h
}

func (h *hole) keep(c net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns = append(h.conns, c)
}

// cut ends all connections.
func (h *hole) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		_ = c.Close()
	}
	h.conns = nil
}

// turn turns the black hole on or off.
func (h *hole) turn(dark bool) {
	h.dark.Store(dark)
	h.cut()
}

// through writes drover's kubeconfig with the hole as its server.
func (h *hole) through(t *testing.T, p *controlplane.Cluster) string {
	t.Helper()
	return h.throughAs(t, p, p.Client)
}

// throughAs is through for another kubeconfig.
func (h *hole) throughAs(t *testing.T, p *controlplane.Cluster, kubeconfig string) string {
	t.Helper()
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte(p.Endpoint()), []byte(h.Addr().String()), 1)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// joinAll joins n nodes of a cluster at the same time, and returns the duration of each,
// sorted. An answer with a retry time is an error.
func joinAll(t *testing.T, c *kube.Clusters, cluster, prefix, bootID string, n int) []time.Duration {
	t.Helper()
	took := make([]time.Duration, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			start := time.Now()
			plan := &resolve.Plan{Node: fmt.Sprintf("%s%d", prefix, i), Cluster: cluster}
			if _, err := c.Join(t.Context(), plan, netip.MustParseAddr("10.28.36.173"), bootID); err != nil {
				t.Error(err)
			}
			took[i] = time.Since(start)
		})
	}
	wg.Wait()
	slices.Sort(took)
	return took
}

// testOutage turns one tenant's API server into a black hole while its nodes join.
// The other tenant's nodes join as before (that they wait for nothing is tested in
// kube, without a clock); its own do when it is back.
func testOutage(t *testing.T, a, b *controlplane.Cluster) {
	h := newHole(t, a.Endpoint())
	c := &kube.Clusters{}
	c.Set([]pools.Cluster{{Name: a.Name, Kubeconfig: h.through(t, a)}, {Name: b.Name, Kubeconfig: b.Client}})
	t.Cleanup(c.Close)
	const nodes = 50
	joinAll(t, c, a.Name, "warm", "", 1)
	joinAll(t, c, b.Name, "warm", "", 1)
	before := joinAll(t, c, b.Name, "before", "", nodes)

	h.turn(true)
	var waiting sync.WaitGroup
	var refused, back atomic.Int32
	dark := time.Now()
	for i := range nodes { // each asks again as its agent would
		waiting.Go(func() {
			plan := &resolve.Plan{Node: fmt.Sprintf("waits%d", i), Cluster: a.Name}
			for time.Since(dark) < 10*time.Minute {
				_, err := c.Join(t.Context(), plan, netip.MustParseAddr("10.28.36.173"), "")
				if err == nil {
					back.Add(1)
					return
				}
				busy, ok := errors.AsType[*cluster.Error](err)
				if !ok {
					t.Error(err)
					return
				}
				refused.Add(1)
				time.Sleep(busy.RetryAfter())
			}
		})
	}
	time.Sleep(500 * time.Millisecond)
	during := joinAll(t, c, b.Name, "during", "", nodes)
	err := c.Check(t.Context())
	if err[b.Name] != nil || err[a.Name] == nil || !strings.Contains(err[a.Name].Error(), "the API server does not answer in time") {
		t.Errorf("check: %v", err)
	}
	t.Logf("the other tenant's %d joins: median %v, slowest %v; during the outage %v, %v", nodes,
		before[nodes/2], before[nodes-1], during[nodes/2], during[nodes-1])
	time.Sleep(time.Until(dark.Add(12 * time.Second))) // requests have run into their time limit
	h.turn(false)
	light := time.Now()
	waiting.Wait()
	if back.Load() != nodes {
		t.Errorf("%d of %d nodes joined when their tenant was back", back.Load(), nodes)
	}
	t.Logf("their own tenant's %d nodes were told to wait %d times, and were in %v after it was back", nodes, refused.Load(), time.Since(light))
	if refused.Load() == 0 {
		t.Error("no node had to wait: the test proves nothing")
	}
}

// testPowerCut joins all machines of a room at the same time, as after a power cut: the
// cluster has a dead Node of each, which drover must delete.
func testPowerCut(t *testing.T, p *controlplane.Cluster) {
	const nodes = 200
	var manifest strings.Builder
	for i := range nodes {
		fmt.Fprintf(&manifest, "---\n{apiVersion: v1, kind: Node, metadata: {name: cut%d, labels: {drover/managed: 'true'}}}\n", i)
	}
	if _, err := p.Kubectl(t.Context(), strings.NewReader(manifest.String()), "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	c := &kube.Clusters{DeadAfter: 3 * time.Second}
	c.Set([]pools.Cluster{{Name: p.Name, Kubeconfig: p.Client}})
	t.Cleanup(c.Close)
	for i := range nodes {
		c.Expect(&resolve.Plan{Node: fmt.Sprintf("cut%d", i), Cluster: p.Name})
	}
	time.Sleep(c.DeadAfter + 2*time.Second)
	took := joinAll(t, c, p.Name, "cut", "boot-2", nodes)
	left, err := p.Kubectl(t.Context(), nil, "get", "nodes", "-l", "drover/managed", "-o", "name")
	if err != nil || strings.Contains(left, "node/cut") {
		t.Errorf("Nodes left: %s, %v", left, err)
	}
	t.Logf("%d joins at once after a power cut: median %v, p99 %v", nodes, took[nodes/2], took[nodes*99/100])
}
