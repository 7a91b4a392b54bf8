package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/deploy/oci"
	"drover/e2e/buildcache"
	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/pools/boots"
)

// registry is the address of the images and of the reports of testdata/services.
const registry = "10.77.0.1:5000"

// TestServices boots two machines into a cluster whose network is kube-proxy, as
// kubeadm installs it, and flannel, and runs a Deployment on both. Each node, in
// its own network and in that of a pod, reaches both replicas by their addresses
// and by the ClusterIP of a Service: in kube-proxy's mode nftables first, then in
// mode iptables, with a Service that was not there before.
func TestServices(t *testing.T) {
	soak(t)
	b := build(t)
	network, err := buildcache.Network(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, b, site.Config{Name: "drover-e2e-services", Farm: "testdata/services.yaml"})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	p := s.Planes["tenant"]
	modes := []string{"nftables", "iptables"}
	answers := new(probes)
	serve(t, s, filepath.Join(network, "images"), answers)
	machines := map[string]string{"n1": "52:54:00:77:01:01", "n2": "52:54:00:77:01:02"}
	for n, mac := range machines {
		// More memory than in the other tests, for the images of kube-proxy and
		// flannel.
		powerOn(t, s, lab.Machine{Name: n, Memory: 2048, NICs: card(mac)})
	}
	defer clusterStory(t, p)
	on := time.Now()
	if err := p.StartScheduler(filepath.Join(network, "kube-scheduler")); err != nil {
		t.Fatal(err)
	}
	if err := p.InstallKubeProxy(ctx, registry, modes[0]); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"flannel", "hello", "probe"} {
		if _, err := p.Kubectl(ctx, nil, "apply", "-f", filepath.Join("testdata", "services", file+".yaml")); err != nil {
			t.Fatal(err)
		}
	}
	for n, mac := range machines {
		fixture.Until(ctx, t, n+" is Ready", func() (bool, error) { // from drover: a request to its cluster costs more
			return reached(bootOf(ctx, t, s, mac), boots.StepReady), nil
		})
	}
	fixture.Until(ctx, t, "the Deployment is rolled out", func() (bool, error) {
		_, err := p.Kubectl(ctx, nil, "rollout", "status", "deployment/hello", "--timeout=20s")
		return err == nil, err
	})
	replicas := helloPods(ctx, t, s)
	t.Logf("%.1f s after power-on: %v", time.Since(on).Seconds(), replicas)

	for _, mode := range modes {
		start := time.Now()
		if mode != modes[0] {
			switchMode(ctx, t, p, mode)
		}
		r := expose(ctx, t, s, mode, replicas)
		answers.begin(r)
		for _, from := range []string{"n1/host", "n2/host", "n1/pod", "n2/pod"} {
			fixture.Until(ctx, t, mode+": "+from+" reaches both replicas, and the Service", func() (bool, error) {
				err := r.check(answers.last(from))
				return err == nil, err
			})
		}
		for _, node := range []string{"10.77.0.21", "10.77.0.22"} {
			fixture.Until(ctx, t, mode+": both replicas answer on the port of "+node, func() (bool, error) {
				err := r.outside(s.HTTPClient(), node)
				return err == nil, err
			})
		}
		t.Logf("mode %s: %.1f s", mode, time.Since(start).Seconds())
	}
}

// serve serves container images to the nodes, and receives the reports of probes.
func serve(t *testing.T, s *site.Site, images string, reports http.Handler) {
	t.Helper()
	l, err := s.Listen("tcp", registry)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/v2/", oci.Registry(images))
	mux.Handle("POST /probe", reports)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// helloPods returns the answers of the replicas, by address. They run on two nodes.
func helloPods(ctx context.Context, t *testing.T, s *site.Site) map[string]string {
	t.Helper()
	var pods struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct{ NodeName string }
			Status   struct{ PodIP string }
		}
	}
	if err := s.Get(ctx, "tenant", &pods, "pods", "-l", "app=hello"); err != nil {
		t.Fatal(err)
	}
	replicas, nodes := map[string]string{}, map[string]bool{}
	for _, p := range pods.Items {
		replicas[p.Status.PodIP] = "hello from " + p.Metadata.Name + "\n"
		nodes[p.Spec.NodeName] = true
	}
	if len(replicas) != 2 || len(nodes) != 2 {
		t.Fatalf("want a replica on each node, got %+v", pods.Items)
	}
	return replicas
}

// switchMode restarts kube-proxy in another mode.
func switchMode(ctx context.Context, t *testing.T, p *controlplane.Cluster, mode string) {
	t.Helper()
	if err := p.InstallKubeProxy(ctx, registry, mode); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Kubectl(ctx, nil, "delete", "pods", "-n", "kube-system", "-l", "k8s-app=kube-proxy", "--grace-period=1", "--wait=false"); err != nil {
		t.Fatal(err)
	}
	fixture.Until(ctx, t, "kube-proxy is rolled out", func() (bool, error) {
		_, err := p.Kubectl(ctx, nil, "rollout", "status", "daemonset/kube-proxy", "-n", "kube-system", "--timeout=20s")
		return err == nil, err
	})
}

// expose makes a Service of the Deployment, with the name of the mode.
func expose(ctx context.Context, t *testing.T, s *site.Site, mode string, replicas map[string]string) *round {
	t.Helper()
	p := s.Planes["tenant"]
	if _, err := p.Kubectl(ctx, nil, "expose", "deployment", "hello", "--name", mode, "--type=NodePort", "--port=80", "--target-port=8080"); err != nil {
		t.Fatal(err)
	}
	type service struct {
		Spec struct {
			ClusterIP string
			Ports     []struct{ NodePort int }
		}
	}
	var made, nobody service
	if err := errors.Join(s.Get(ctx, "tenant", &made, "service", mode), s.Get(ctx, "tenant", &nobody, "service", "nobody")); err != nil {
		t.Fatal(err)
	}
	if len(made.Spec.Ports) != 1 {
		t.Fatalf("the Service has ports %v, want one", made.Spec.Ports)
	}
	return &round{mode: mode, replicas: replicas, service: made.Spec.ClusterIP, port: made.Spec.Ports[0].NodePort, nobody: nobody.Spec.ClusterIP}
}

// clusterStory prints the pods of a failed test, with events and logs.
func clusterStory(t *testing.T, p *controlplane.Cluster) {
	if !t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	say := func(args ...string) string {
		out, err := p.Kubectl(ctx, nil, args...)
		if err != nil {
			out += err.Error()
		}
		return out
	}
	t.Log(say("get", "pods", "-A", "-o", "wide") + say("get", "events", "-A", "--sort-by=.metadata.creationTimestamp"))
	// Kubelets serve no logs before their certificates are approved.
	if names := strings.Fields(say("get", "csr", "-o", "name")); len(names) > 0 {
		say(append([]string{"certificate", "approve"}, names...)...)
	}
	time.Sleep(5 * time.Second) // until the kubelets have their certificates
	for namespace, app := range map[string]string{"kube-system": "k8s-app=kube-proxy", "kube-flannel": "app=flannel", "default": "app=probe-host"} {
		t.Log(say("logs", "-n", namespace, "-l", app, "--all-containers", "--prefix", "--tail=40"))
	}
	for _, name := range []string{"kube-scheduler", "kube-controller-manager"} {
		b, _ := os.ReadFile(filepath.Join(p.LogDir, name+".log"))
		t.Logf("%s:\n%s", name, b[max(0, len(b)-4000):])
	}
}

// outside requests the Service at a node's address, from outside of the cluster.
func (r *round) outside(client *http.Client, node string) error {
	var got []string
	for range 12 {
		resp, err := client.Get(fmt.Sprintf("http://%s:%d/", node, r.port))
		if err != nil {
			return err
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return err
		}
		if !slices.Contains(got, string(b)) {
			got = append(got, string(b))
		}
	}
	slices.Sort(got)
	if want := r.everybody(); !slices.Equal(got, want) {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	return nil
}
