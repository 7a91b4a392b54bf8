package tenants

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"drover/kube/apply"
	"drover/pools"
	"drover/pools/config/controlplane"
	"drover/tenants/manifests"
)

// TestSeparate: each program of a tenant's pod is in one of the separate pods, with the
// volumes that it mounts, and finds etcd by its Service.
func TestSeparate(t *testing.T) {
	plane := &manifests.Plane{Name: "a", Namespace: "farm", Version: Version, Address: netip.MustParseAddr("10.77.0.100"), AgentPort: manifests.Konnectivity, VNI: 100}
	plane.Spec = pools.ControlPlane{Version: Version}
	plane.Spec.Endpoint.Address = plane.Address
	controlplane.SetDefaults(&plane.Spec)
	text, err := plane.Pods()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := apply.Objects(text)
	if err != nil {
		t.Fatal(err)
	}
	var set appsv1.StatefulSet
	for _, o := range objects {
		if o.GetKind() == "StatefulSet" {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &set)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &separate{Tenant: &Tenant{Name: "a"}, name: "a-separate", pod: set.Spec.Template.Spec, etcd: "10.201.0.9"}
	var got, want, args []string
	for _, programs := range layout {
		pod := s.podOf(programs)
		volumes := map[string]bool{}
		for _, v := range pod.Volumes {
			volumes[v.Name] = true
		}
		for _, c := range pod.Containers {
			got, args = append(got, c.Name), append(args, c.Args...)
			for _, m := range c.VolumeMounts {
				if !volumes[m.Name] {
					t.Errorf("%s mounts %s, which its pod does not have", c.Name, m.Name)
				}
			}
			if c.RestartPolicy != nil {
				t.Errorf("%s has a restart policy of its own", c.Name)
			}
		}
		if len(pod.InitContainers) > 0 || len(pod.Containers) != len(programs) {
			t.Errorf("the pod of %q has %d containers", programs, len(pod.Containers))
		}
	}
	for _, c := range slices.Concat(set.Spec.Template.Spec.InitContainers, set.Spec.Template.Spec.Containers) {
		want = append(want, c.Name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if len(want) != 5 || !slices.Equal(got, want) {
		t.Errorf("programs %q, want %q", got, want)
	}
	for _, arg := range []string{"--etcd-servers=http://10.201.0.9:2379", "--listen-client-urls=http://0.0.0.0:2379", "--advertise-client-urls=http://10.201.0.9:2379"} {
		if !slices.Contains(args, arg) {
			t.Errorf("no program has %s", arg)
		}
	}
}

// TestPSS: the memory of this process is counted under its name.
func TestPSS(t *testing.T) {
	name, parent, err := process("/proc/self")
	if err != nil || parent == "" || !strings.HasPrefix(os.Args[0][strings.LastIndex(os.Args[0], "/")+1:], name) {
		t.Fatalf("process %q of %q, %v", name, parent, err)
	}
	p := PSS{}
	for range 2 {
		if err := p.add(name, "/proc/self"); err != nil {
			t.Fatal(err)
		}
	}
	if n := p.Total(); n < 2<<20 || n > 2<<30 || n != p[name] {
		t.Errorf("%d bytes", n)
	}
}
