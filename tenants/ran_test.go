package tenants_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drover/pools"
	"drover/tenants"
)

func TestNewer(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{"", "", ""},
		{"", "v1.37.1", "v1.37.1"},
		{"v1.37.1", "", "v1.37.1"},
		{"v1.36.9", "v1.37.1", "v1.37.1"},
		{"v1.37.1", "v1.36.9", "v1.37.1"},
		{"garbage", "v1.36.9", "v1.36.9"},
		{"v1.36.9", "garbage", "v1.36.9"},
		{"garbage", "", ""},
	} {
		if got := tenants.Newer(tt.a, tt.b); got != tt.want {
			t.Errorf("%q and %q: got %q, want %q", tt.a, tt.b, got, tt.want)
		}
	}
}

// TestRan: an etcd that has begun has opened the data; an API server that never answered can
// be taken back.
func TestRan(t *testing.T) {
	yes, no := true, false
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	crashed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error"}}
	pulls := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}
	for _, tt := range []struct {
		name             string
		status           corev1.ContainerStatus
		answered, opened string
	}{
		{"ready", corev1.ContainerStatus{State: running, Ready: true}, "v1.37.1", "v1.37.1"},
		{"answered once", corev1.ContainerStatus{State: running, Started: &yes}, "v1.37.1", "v1.37.1"},
		{"starts", corev1.ContainerStatus{State: running, Started: &no}, "", "v1.37.1"},
		{"crashes", corev1.ContainerStatus{State: pulls, LastTerminationState: crashed}, "", "v1.37.1"},
		{"no image", corev1.ContainerStatus{State: pulls}, "", ""},
	} {
		for name, f := range map[string]func(*corev1.Pod) string{"kube-apiserver": tenants.Answered, "etcd": tenants.Opened} {
			want := tt.answered
			if name == "etcd" {
				want = tt.opened
			}
			tt.status.Name = name
			pod := &corev1.Pod{
				Spec:   corev1.PodSpec{InitContainers: []corev1.Container{{Name: "other", Image: "other:v9"}, {Name: name, Image: "registry.example.org:5000/x:v1.37.1"}}},
				Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{Name: "other", Ready: true, State: running}, tt.status}},
			}
			if got := f(pod); got != want {
				t.Errorf("%s, %s: got %q, want %q", name, tt.name, got, want)
			}
		}
	}
}

// TestPolicy: keys and data go only if nothing says that they stay.
func TestPolicy(t *testing.T) {
	for _, tt := range []struct{ declared, noted, want pools.DeletionPolicy }{
		{"", "", pools.Retain},
		{"", pools.Delete, pools.Delete},
		{"", pools.Retain, pools.Retain},
		{"", "garbage", pools.Retain},
		{pools.Retain, pools.Delete, pools.Retain},
		{pools.Delete, pools.Retain, pools.Retain},
		{pools.Delete, pools.Delete, pools.Delete},
		{pools.Delete, "", pools.Delete},
	} {
		got := tenants.PolicyOf(tt.declared, map[string]string{"drover.dev/deletion-policy": string(tt.noted)})
		if got != tt.want {
			t.Errorf("declared %q, noted %q: got %s, want %s", tt.declared, tt.noted, got, tt.want)
		}
	}
}

// TestPause: rounds come further apart once a start should have ended, and at once after a
// change.
func TestPause(t *testing.T) {
	const s, start = time.Second, time.Minute
	got := tenants.Pauses(s, []string{"a", "a", "a", "a", "a", "a", "a", "a", "b", "b"},
		[]time.Duration{0, s, start, start + s, start + 2*s, start + 3*s, start + 4*s, start + 5*s, start + 6*s, start + 7*s})
	if want := []time.Duration{s, s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s, s, s}; !slices.Equal(got, want) {
		t.Errorf("pauses %v, want %v", got, want)
	}
}
