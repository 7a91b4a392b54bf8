package kube_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/e2e/fixture"
	"drover/pools/resolve"
)

func beat(n int) metav1.Time { return metav1.Unix(1_800_000_000+int64(n), 0) }

// A machine that reboots is still Ready in its cluster. Only states that a kubelet wrote
// after the machine's request to join count.
func TestReady(t *testing.T) {
	const n = "m1c29"
	none, yes, no, unknown := corev1.ConditionStatus(""), corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	type status struct {
		uid, bootID string
		ready       corev1.ConditionStatus
		beat        int
	}
	tests := []struct {
		name   string
		before status
		not    []status // seen after the join, not Ready in this boot
		then   status   // Ready in this boot
	}{
		{"a new node", status{ready: none}, []status{{"u1", "b1", no, 1}}, status{"u1", "b1", yes, 2}},
		{"Ready at first sight", status{ready: none}, nil, status{"u1", "b1", yes, 1}},
		{"a fast reboot", status{"u1", "b1", yes, 1}, []status{{"u1", "b1", yes, 1}, {"u1", "b1", unknown, 2}, {"u1", "b2", no, 3}}, status{"u1", "b2", yes, 4}},
		{"a fast reboot, never NotReady", status{"u1", "b1", yes, 1}, []status{{"u1", "b1", yes, 1}}, status{"u1", "b2", yes, 1}},
		{"a reboot after a long time", status{"u1", "b1", unknown, 1}, []status{{"u1", "b1", unknown, 1}}, status{"u1", "b2", yes, 2}},
		{"the old Node was deleted", status{"u1", "b1", yes, 1}, []status{{"u1", "b1", yes, 1}}, status{"u2", "b2", yes, 1}},
		{"asked again in the same boot", status{"u1", "b2", no, 1}, []status{{"u1", "b2", no, 2}}, status{"u1", "b2", yes, 3}},
		{"asked again when Ready", status{"u1", "b2", yes, 1}, []status{{"u1", "b2", yes, 1}}, status{"u1", "b2", yes, 2}},
		{"the node's clock is behind", status{"u1", "b1", yes, 100}, []status{{"u1", "b1", yes, 100}}, status{"u1", "b2", yes, 5}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newAPIServer(t)
			c, log := newClusters(t, s.kubeconfig())
			ready := make(chan *resolve.Plan, 10)
			c.OnReady = func(p *resolve.Plan, _ time.Time) { ready <- p }
			if tt.before.ready != none {
				s.setNode(n, tt.before.uid, tt.before.bootID, tt.before.ready, beat(tt.before.beat))
			}
			p := plan(func(p *resolve.Plan) {
				p.Labels = map[string]string{"a": "b", "node-role.kubernetes.io/worker": ""}
			})
			if _, err := c.Join(t.Context(), p, addr(), ""); err != nil {
				t.Fatal(err)
			}
			fixture.Eventually(t, "watched", func() bool { return s.count("WATCH nodes") > 0 })
			for _, st := range tt.not {
				s.setNode(n, st.uid, st.bootID, st.ready, beat(st.beat))
			}
			// This does not prove that OnReady is never called, but the
			// watch delivers events in order.
			select {
			case <-ready:
				t.Fatalf("Ready before %+v", tt.then)
			case <-time.After(20 * time.Millisecond):
			}
			s.setNode(n, tt.then.uid, tt.then.bootID, tt.then.ready, beat(tt.then.beat))
			select {
			case got := <-ready:
				if got != p {
					t.Errorf("another Plan is Ready: %+v", got)
				}
			case <-time.After(2 * time.Minute):
				t.Fatalf("not Ready within 2 minutes: %s", log)
			}
			labels := s.node(n).Labels
			if _, role := labels["node-role.kubernetes.io/worker"]; !role || labels["a"] != "b" {
				t.Errorf("labels %v", labels)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.deleted) != 1 {
				t.Errorf("deleted %q, want the token", s.deleted)
			}
			want := `application/merge-patch+json fieldManager=drover {"metadata":{`
			if len(s.patches) != 1 || !strings.HasPrefix(s.patches[0], want) || !strings.Contains(s.patches[0], `"uid":"`+tt.then.uid+`"`) {
				t.Errorf("patched %q, want one %s of this Node", s.patches, want)
			}
		})
	}
}

// drover may mint tokens, but not read Nodes: the node joins, and is not followed.
func TestMayNotSeeNodes(t *testing.T) {
	s := newAPIServer(t)
	s.set("GET nodes", fail(403, "Forbidden", "no"))
	c, log := newClusters(t, s.kubeconfig())
	if _, err := c.Join(t.Context(), plan(), addr(), ""); err != nil {
		t.Fatal(err)
	}
	if c.Followed() != 0 || !strings.Contains(log.String(), "not followed") {
		t.Errorf("%d nodes followed, want none and a line in the log: %s", c.Followed(), log)
	}
}

// Watches break: the API server restarts, or forgets old versions.
func TestWatchBreaks(t *testing.T) {
	s := newAPIServer(t)
	s.set("WATCH nodes", fail(410, "Expired", "too old resource version"))
	c, _ := newClusters(t, s.kubeconfig())
	ready := make(chan bool, 1)
	c.OnReady = func(*resolve.Plan, time.Time) { ready <- true }
	if _, err := c.Join(t.Context(), plan(), addr(), ""); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "a watch has failed", func() bool { return s.count("WATCH nodes") > 0 })
	s.setNode("m1c29", "u1", "b1", corev1.ConditionTrue, beat(1))
	<-ready
}

// Labels that fail at first are tried again; the node is Ready meanwhile.
func TestLabelsTriedAgain(t *testing.T) {
	s := newAPIServer(t)
	s.set("PATCH nodes", fail(500, "InternalError", "etcd has no leader"))
	c, _ := newClusters(t, s.kubeconfig())
	ready := make(chan bool, 1)
	c.OnReady = func(*resolve.Plan, time.Time) { ready <- true }
	if _, err := c.Join(t.Context(), plan(func(p *resolve.Plan) { p.Labels = map[string]string{"a": "b"} }), addr(), ""); err != nil {
		t.Fatal(err)
	}
	s.setNode("m1c29", "u1", "b1", corev1.ConditionTrue, beat(1))
	<-ready
	s.set("PATCH nodes", nil)
	fixture.Eventually(t, "labeled", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.patches) == 1
	})
}

func TestCloseEndsFollowing(t *testing.T) {
	s := newAPIServer(t)
	c, _ := newClusters(t, s.kubeconfig())
	if _, err := c.Join(t.Context(), plan(), addr(), ""); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "watched", func() bool { return s.count("WATCH nodes") > 0 })
	c.Close()
	if got := c.Followed(); got != 0 {
		t.Errorf("%d nodes followed after Close", got)
	}
	if _, err := c.Join(t.Context(), plan(), addr(), ""); err == nil {
		t.Error("joined after Close")
	}
}
