package kube_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drover/e2e/fixture"
	"drover/kube"
	"drover/kube/cluster"
	"drover/pools/resolve"
)

// A machine requests its join, and the cluster has a Node of its name.
func TestRejoin(t *testing.T) {
	const n = "m1c29"
	tests := []struct {
		name    string
		set     func(s *apiServer)
		bootID  string
		deleted bool
		err     string
		log     string
	}{
		{"of the boot before", func(*apiServer) {}, "b2", true, "", "deleted the Node of an earlier boot"},
		{"of the boot before, Lease and all", func(s *apiServer) { s.leases[n] = "7" }, "b2", true, "", "deleted"},
		{"of this boot: it tries again", func(*apiServer) {}, "b1", false, "", ""},
		{"the node does not tell its boot", func(*apiServer) {}, "", false, "", ""},
		{"not drover's", func(s *apiServer) { s.edit(n, func(n *corev1.Node) { n.Labels = nil }) }, "b2", false, "kubectl label node m1c29 drover/managed=true", ""},
		{"not drover's, in this boot", func(s *apiServer) { s.edit(n, func(n *corev1.Node) { n.Labels = nil }) }, "b1", false, "give the machine another name", ""},
		{"another drover's", func(s *apiServer) {
			s.edit(n, func(n *corev1.Node) { n.Annotations = map[string]string{"drover/seal": "00"} })
		}, "b2", false, "kubectl annotate node m1c29 drover/seal-", ""},
		{"a control-plane host", func(s *apiServer) {
			s.edit(n, func(n *corev1.Node) { n.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""} })
		}, "b2", false, "control-plane host", ""},
		{"a control-plane host in this boot", func(s *apiServer) {
			s.edit(n, func(n *corev1.Node) { n.Labels["node-role.kubernetes.io/control-plane"] = "" })
		}, "b1", false, "give the machine another name", ""},
		{"a control-plane host by its taint, without a boot", func(s *apiServer) {
			s.edit(n, func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/master"}} })
		}, "", false, "control-plane host", ""},
		{"may not delete", func(s *apiServer) { s.set("DELETE nodes", fail(403, "Forbidden", "no")) }, "b2", false, "", "drover may not delete it"},
		{"a policy keeps it", func(s *apiServer) { s.set("DELETE nodes", fail(422, "Invalid", "control plane")) }, "b2", false, "", "drover may not delete it"},
		{"may not see Leases", func(s *apiServer) { s.set("GET leases", fail(403, "Forbidden", "no")) }, "b2", false, "", "may not see whether its kubelet lives"},
		{"Leases are out of order", func(s *apiServer) { s.set("GET leases", fail(500, "InternalError", "no leader")) }, "b2", false,
			"read the Lease of the Node's kubelet: the API server is busy or not well", ""},
		{"deletion is out of order", func(s *apiServer) { s.set("DELETE nodes", fail(500, "InternalError", "no leader")) }, "b2", false,
			"delete the Node of an earlier boot: the API server is busy", ""},
		{"another Node of that name came meanwhile", func(s *apiServer) { s.set("DELETE nodes", fail(409, "Conflict", "UID")) }, "b2", false,
			"delete the Node of an earlier boot: the API server refuses", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newAPIServer(t)
			s.setNode(n, "u1", "b1", corev1.ConditionTrue, beat(1))
			tt.set(s)
			c, log := newClusters(t, s.kubeconfig())
			_, err := c.Join(t.Context(), plan(), addr(), tt.bootID)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %v, want %q", err, tt.err)
			}
			if minted := s.count("POST secrets"); (minted == 1) != (err == nil) {
				t.Errorf("%d tokens minted", minted)
			}
			if got := slices.Equal(s.deletedNodes, []string{"u1"}); got != tt.deleted {
				t.Errorf("deleted %q, want it: %t", s.deletedNodes, tt.deleted)
			}
			if !strings.Contains(log.String(), tt.log) {
				t.Errorf("log: %s\nwant %q", log, tt.log)
			}
		})
	}
}

// The Node's kubelet lives, so the request is from another machine: one that forged a
// whole boot, or one whose MAC exists twice. It gets no token, and the Node stays,
// whatever boot ID the machine sends.
func TestALivingKubeletIsLeftAlone(t *testing.T) {
	for _, bootID := range []string{"b2", "b1", ""} {
		s := newAPIServer(t)
		s.setNode("m1c29", "u1", "b1", corev1.ConditionTrue, beat(1))
		s.leases["m1c29"] = "7"
		c, _ := newWatching(t, s.kubeconfig(), 300*time.Millisecond)
		c.Expect(plan())
		fixture.Eventually(t, "the first read", func() bool { return c.Expecting("tenant-a", "m1c29") })
		s.mu.Lock()
		s.leases["m1c29"] = "8"
		s.mu.Unlock()

		_, err := c.Join(t.Context(), plan(), addr(), bootID)
		e, ok := errors.AsType[*cluster.Error](err)
		if want := "a machine that calls itself m1c29 still runs there: its kubelet renewed its Lease within the last"; !ok || !strings.Contains(err.Error(), want) {
			t.Fatalf("boot %q: got %v, want %q", bootID, err, want)
		}
		if e.RetryAfter() <= 0 || s.count("POST secrets") != 0 || s.count("DELETE nodes") != 0 || s.count("PATCH nodes") != 0 {
			t.Errorf("boot %q: retry after %s; requests %v", bootID, e.RetryAfter(), s.requests)
		}
		// The machine of the Node is switched off.
		if _, err := c.Join(t.Context(), plan(), addr(), bootID); err != nil {
			t.Errorf("boot %q, after the kubelet's end: %v", bootID, err)
		}
	}
}

// The wait includes the time between the first read of the Lease, when the node gets
// its config, and the join.
func TestExpectSavesTheWait(t *testing.T) {
	s := newAPIServer(t)
	s.setNode("m1c29", "u1", "b1", corev1.ConditionTrue, beat(1))
	const watch = 10 * time.Minute // so long that Join would not wait for it
	c, _ := newWatching(t, s.kubeconfig(), watch)
	now := new(clock)
	c.Now = now.now
	c.Expect(plan())
	fixture.Eventually(t, "the first read", func() bool { return c.Expecting("tenant-a", "m1c29") })
	now.seconds.Add(int64(watch / time.Second))
	if _, err := c.Join(t.Context(), plan(), addr(), "b2"); err != nil {
		t.Fatal(err)
	}
	if c.Expecting("tenant-a", "m1c29") {
		t.Error("the first read is kept for the next boot")
	}
}

// watchLease returns a Clusters that takes the duration from the Lease, as the server
// does, with a Node whose machine boots now.
func watchLease(t *testing.T, s *apiServer, seconds int32) (*kube.Clusters, *clock) {
	s.setNode("m1c29", "u1", "b1", corev1.ConditionTrue, beat(1))
	s.renew("m1c29", "7")
	s.mu.Lock()
	s.leaseSeconds = seconds
	s.mu.Unlock()
	c, _ := newWatching(t, s.kubeconfig(), 0)
	now := new(clock)
	c.Now = now.now
	c.Expect(plan())
	fixture.Eventually(t, "the first read", func() bool { return c.Expecting("tenant-a", "m1c29") })
	return c, now
}

// TestDeathTakesTheLeasesDuration: M13: 11 seconds without a renewal meant that the
// kubelet is dead, while one renewal may take longer than that.
func TestDeathTakesTheLeasesDuration(t *testing.T) {
	tests := []struct {
		seconds   int32 // in the Lease; 0: none
		dead      int64 // after so many seconds
		unchanged []int64
	}{
		{0, 40, []int64{11, 13}}, {40, 40, []int64{11, 14}}, {100, 100, []int64{24, 40, 70}}, {600, 600, []int64{160, 570}},
		{1, 10, nil}, {1 << 30, 3600, []int64{60, 3500}},
	}
	for _, tt := range tests {
		s := newAPIServer(t)
		c, now := watchLease(t, s, tt.seconds)
		for _, at := range tt.unchanged {
			now.seconds.Store(at)
			_, err := c.Join(t.Context(), plan(), addr(), "b2")
			e, ok := errors.AsType[*cluster.Error](err)
			if !ok || e.RetryAfter() <= 0 || s.count("POST secrets") != 0 || s.count("DELETE nodes") != 0 {
				t.Errorf("a Lease of %d s that did not change for %d s: %v, want it to wait", tt.seconds, at, err)
			}
		}
		now.seconds.Store(tt.dead)
		s.renew("m1c29", "8") // late
		if _, err := c.Join(t.Context(), plan(), addr(), "b2"); err == nil || !strings.Contains(err.Error(), "still runs there") {
			t.Errorf("a Lease of %d s that was renewed: %v", tt.seconds, err)
		}
		now.seconds.Add(tt.dead)
		if _, err := c.Join(t.Context(), plan(), addr(), "b2"); err != nil {
			t.Errorf("a Lease of %d s after its end: %v", tt.seconds, err)
		}
	}
}

// The begin of a boot counts, not the last request before the join.
func TestDeathCountsFromTheFirstRead(t *testing.T) {
	s := newAPIServer(t)
	c, now := watchLease(t, s, 40)
	now.seconds.Store(30)
	reads := s.count("GET leases")
	c.Expect(plan())
	fixture.Eventually(t, "the second read", func() bool { return s.count("GET leases") > reads })
	now.seconds.Store(40)
	if _, err := c.Join(t.Context(), plan(), addr(), "b2"); err != nil {
		t.Error(err)
	}
}

// While an API server does not answer, no kubelet can renew its Lease: that time does
// not count.
func TestDeathNeedsTheAPIServer(t *testing.T) {
	s := newAPIServer(t)
	c, now := watchLease(t, s, 40)
	now.seconds.Store(35)
	s.set("GET nodes", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, _ = c.Join(ctx, plan(), addr(), "b2")
		cancel()
	}
	s.set("GET nodes", nil)
	now.seconds.Store(45)
	_, err := c.Join(t.Context(), plan(), addr(), "b2")
	if e, ok := errors.AsType[*cluster.Error](err); !ok || e.RetryAfter() != 30*time.Second {
		t.Errorf("10 s after an outage: %v, want it to wait for 30 s more", err)
	}
	now.seconds.Store(75)
	if _, err := c.Join(t.Context(), plan(), addr(), "b2"); err != nil {
		t.Errorf("40 s after an outage: %v", err)
	}
}

// With a long Lease it takes long to see that a kubelet is dead: the node gets an error
// with a retry time instead of waiting.
func TestLongLease(t *testing.T) {
	s := newAPIServer(t)
	s.setNode("m1c29", "u1", "b1", corev1.ConditionTrue, beat(1))
	c, _ := newWatching(t, s.kubeconfig(), 10*time.Minute)
	_, err := c.Join(t.Context(), plan(), addr(), "b2")
	e, ok := errors.AsType[*cluster.Error](err)
	if !ok || e.RetryAfter() < 9*time.Minute || !strings.Contains(err.Error(), "it takes 10m0s to see whether a kubelet of that name lives") {
		t.Errorf("got %v", err)
	}
}

func TestExpectErrors(t *testing.T) {
	var zero kube.Clusters
	zero.Expect(plan())
	s := newAPIServer(t)
	s.set("GET leases", fail(500, "InternalError", "no leader"))
	c, log := newClusters(t, s.kubeconfig())
	c.Expect(plan(func(p *resolve.Plan) { p.Cluster = "b" }))
	c.Expect(plan())
	fixture.Eventually(t, "it is logged", func() bool { return strings.Contains(log.String(), "cannot read the Lease") })
	c.Close()
	c.Expect(plan())
}

// TestLiving: the config of a node waits until its kubelet is dead for certain, and not without one.
func TestLiving(t *testing.T) {
	s := newAPIServer(t)
	c, now := watchLease(t, s, 0)
	living := func(at int64) (time.Duration, error) {
		t.Helper()
		now.seconds.Store(at)
		return c.Living(t.Context(), plan())
	}
	for at, want := range map[int64]time.Duration{1: 39 * time.Second, 30: 10 * time.Second, 40: 0} {
		if again, err := living(at); again != want || err != nil {
			t.Errorf("after %d s: got %s, %v; want %s", at, again, err, want)
		}
	}
	s.renew("m1c29", "8")
	if _, err := living(41); err == nil || !strings.Contains(err.Error(), "still runs there") {
		t.Errorf("a kubelet that renews its Lease: got %v", err)
	}
	if again, err := living(42); again != 39*time.Second || err != nil {
		t.Errorf("after its last renewal: got %s, %v", again, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if again, err := c.Living(ended, plan()); again <= 0 || err != nil {
		t.Errorf("a request that was broken off: got %s, %v", again, err)
	}
	s.mu.Lock()
	delete(s.leases, "m1c29")
	s.mu.Unlock()
	if again, err := living(43); again != 0 || err != nil {
		t.Errorf("without a Lease: got %s, %v", again, err)
	}
	s.Close()
	if again, err := living(44); again != 0 || err != nil {
		t.Errorf("without the API server: got %s, %v", again, err)
	}
}
