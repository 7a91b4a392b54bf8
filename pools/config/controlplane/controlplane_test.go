package controlplane_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/config/controlplane"
)

func prefixes(all ...string) (out pools.Prefixes) {
	for _, s := range all {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// check returns the mistakes as lines, and fails the test for one without a remedy.
func check(t *testing.T, cp *pools.ControlPlane, subnets ...pools.Subnet) string {
	t.Helper()
	var lines []string
	for _, m := range controlplane.Check(cp, subnets) {
		if hint, ok := errors.AsType[*pools.HintError](m.Err); !ok || hint.Hint == "" {
			t.Errorf("%s: %v has no remedy", m.Path, m.Err)
		}
		lines = append(lines, m.Path+": "+m.Err.Error())
	}
	return strings.Join(lines, "\n")
}

// TestDefaults: a version is enough, and what is set stays.
func TestDefaults(t *testing.T) {
	cp := &pools.ControlPlane{Version: "v1.37.1"}
	controlplane.SetDefaults(cp)
	if got := check(t, cp, pools.Subnet{CIDR: netip.MustParsePrefix("10.28.0.0/16")}); got != "" {
		t.Error(got)
	}
	set := &pools.ControlPlane{
		Version: "v1.36.4", Endpoint: pools.ControlPlaneEndpoint{Address: netip.MustParseAddr("10.28.0.7"), Port: 30443, ServiceType: pools.NodePort},
		PodSubnet: prefixes("10.8.0.0/16", "fd00:8::/56"), ServiceSubnet: prefixes("10.9.0.0/16", "fd00:9::/112"), CertSANs: []string{"b.example.org", "192.0.2.1"},
		ExtraArgs: pools.ControlPlaneParts[map[string]string]{APIServer: map[string]string{"v": "2"}},
		Storage:   pools.ControlPlaneStorage{Class: "fast", Size: "0.5Ti"}, ImageRepository: "registry.example.org:5000/a/b-c",
	}
	controlplane.SetDefaults(set)
	if set.Endpoint.Port != 30443 || len(set.PodSubnet) != 2 || set.Storage.Size != "0.5Ti" || set.Replicas != 1 {
		t.Errorf("got %+v", set)
	}
	if got := check(t, set); got != "" {
		t.Error(got)
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		edit func(*pools.ControlPlane)
		want string
	}{
		{func(cp *pools.ControlPlane) { cp.Version = "1.37.1" }, "version: "},
		{func(cp *pools.ControlPlane) { cp.Version = "v1.37.1; reboot" }, "version: "},
		{func(cp *pools.ControlPlane) { cp.Replicas = 3 }, "replicas: 3: control planes of several pods"},
		{func(cp *pools.ControlPlane) { cp.Endpoint.ServiceType = "nodeport" }, `endpoint.serviceType: unknown type "nodeport" (did you mean "NodePort"?)`},
		{func(cp *pools.ControlPlane) { cp.Endpoint.ServiceType, cp.Endpoint.Port = pools.NodePort, 6443 }, "endpoint.port: 6443 of a NodePort"},
		{func(cp *pools.ControlPlane) {
			cp.Endpoint.ServiceType, cp.Endpoint.Address = pools.ClusterIP, netip.Addr{}
		}, "endpoint.address: a ClusterIP gives no address"},
		{func(cp *pools.ControlPlane) { cp.Endpoint.Address = netip.MustParseAddr("127.0.0.1") }, "endpoint.address: 127.0.0.1 cannot be"},
		{func(cp *pools.ControlPlane) { cp.Endpoint.Address = netip.MustParseAddr("169.254.1.1") }, "endpoint.address: "},
		{func(cp *pools.ControlPlane) { cp.Endpoint.Address = netip.MustParseAddr("10.96.0.1") }, "endpoint.address: 10.96.0.1 is in serviceSubnet"},
		{func(cp *pools.ControlPlane) { cp.Endpoint.Address = netip.MustParseAddr("fd00::7") }, "serviceSubnet: 10.96.0.0/12 is not of the address family"},
		{func(cp *pools.ControlPlane) { cp.Endpoint.Port = 65536 }, "endpoint.port: 65536 is not from 1"},
		{func(cp *pools.ControlPlane) { cp.Endpoint.Port = controlplane.AgentPort }, "endpoint.port: 8132 is that of another program"},
		{func(cp *pools.ControlPlane) { cp.PodSubnet = prefixes("10.1.0.0/16", "10.2.0.0/16") }, "podSubnet: 10.1.0.0/16,10.2.0.0/16 are not one network"},
		{func(cp *pools.ControlPlane) { cp.PodSubnet = prefixes("10.1.1.0/16") }, "podSubnet: 10.1.1.0/16 has host bits set"},
		{func(cp *pools.ControlPlane) { cp.PodSubnet = prefixes("10.1.0.0/25") }, "podSubnet: 10.1.0.0/25 has no room"},
		{func(cp *pools.ControlPlane) { cp.PodSubnet = prefixes("fd00::/32") }, "podSubnet: fd00::/32: a controller manager divides"},
		{func(cp *pools.ControlPlane) {
			cp.PodSubnet = prefixes("10.1.0.0/25")
			cp.ExtraArgs.ControllerManager = map[string]string{"node-cidr-mask-size": "27"}
		}, ""},
		{func(cp *pools.ControlPlane) { cp.PodSubnet = prefixes("10.28.128.0/17") }, "podSubnet: 10.28.128.0/17 overlaps subnet 10.28.0.0/16"},
		{func(cp *pools.ControlPlane) { cp.PodSubnet = prefixes("10.100.0.0/16") }, "serviceSubnet: 10.96.0.0/12 overlaps podSubnet"},
		{func(cp *pools.ControlPlane) { cp.ServiceSubnet = prefixes("11.0.0.0/8") }, "serviceSubnet: 11.0.0.0/8: an API server takes"},
		{func(cp *pools.ControlPlane) { cp.ServiceSubnet = prefixes("10.96.0.0/30") }, "serviceSubnet: "},
		{func(cp *pools.ControlPlane) { cp.CertSANs = []string{"a", "a_b"} }, `certSANs: "a_b" is neither`},
		{func(cp *pools.ControlPlane) { cp.CertSANs = []string{"a", "a"} }, `certSANs: "a" is there twice`},
		{func(cp *pools.ControlPlane) { cp.ExtraArgs.Scheduler = map[string]string{"--v": "2"} }, `extraArgs.scheduler: "--v" is not the name of a flag`},
		{func(cp *pools.ControlPlane) {
			cp.Resources.Etcd.Limits = map[string]string{"cpu": "100m", "memory": "much"}
		}, `resources.etcd.limits: memory: "much" is not an amount`},
		{func(cp *pools.ControlPlane) { cp.Resources.Etcd.Requests = map[string]string{"CPU": "1"} }, `resources.etcd.requests: "CPU" is not the name`},
		{func(cp *pools.ControlPlane) { cp.Storage.Size = "big" }, "storage.size: "},
		{func(cp *pools.ControlPlane) { cp.Storage.Class = "a b" }, "storage.class: "},
		{func(cp *pools.ControlPlane) { cp.ImageRepository = "https://registry.example.org" }, "imageRepository: "},
	} {
		cp := &pools.ControlPlane{Version: "v1.37.1", Endpoint: pools.ControlPlaneEndpoint{Address: netip.MustParseAddr("10.28.0.7")}}
		controlplane.SetDefaults(cp)
		tt.edit(cp)
		got := check(t, cp, pools.Subnet{CIDR: netip.MustParsePrefix("10.28.0.0/16")})
		if !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") || strings.Contains(got, "\n") {
			t.Errorf("got\n%s\nwant the one mistake\n%s", got, tt.want)
		}
	}
}

// TestOwnFlags: an operator can set none of the flags that make programs the parts of one control
// plane.
func TestOwnFlags(t *testing.T) {
	own, n := controlplane.OwnFlags(), 0
	for part, flags := range map[string][]string{
		"etcd": own.Etcd, "apiServer": own.APIServer, "controllerManager": own.ControllerManager, "scheduler": own.Scheduler, "konnectivity": own.Konnectivity,
	} {
		for _, flag := range flags {
			n++
			args := map[string]string{flag: "x"}
			cp := &pools.ControlPlane{Version: "v1.37.1"}
			controlplane.SetDefaults(cp)
			into := map[string]*map[string]string{
				"etcd": &cp.ExtraArgs.Etcd, "apiServer": &cp.ExtraArgs.APIServer, "controllerManager": &cp.ExtraArgs.ControllerManager,
				"scheduler": &cp.ExtraArgs.Scheduler, "konnectivity": &cp.ExtraArgs.Konnectivity,
			}
			*into[part] = args
			if got, want := check(t, cp), "extraArgs."+part+`: the flag "`+flag+`" is drover's own (remove it)`; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
	if n < 40 {
		t.Errorf("there are %d flags", n)
	}
}

// TestNames: the longest name fits into the names of all objects, and no Secret is of two tenants.
func TestNames(t *testing.T) {
	longest := strings.Repeat("a", controlplane.MaxName)
	for name, good := range map[string]bool{longest: true, longest + "a": false, "a": true, "2nd": false, "": true} {
		if err := controlplane.CheckName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, s := range controlplane.Secrets(longest) {
		if len(s) > 63 {
			t.Errorf("%s has %d characters", s, len(s))
		}
	}
}

// TestFiles: a flag that names a file outside of the pod is refused, and no other.
func TestFiles(t *testing.T) {
	for _, tt := range []struct {
		flag, value string
		refused     bool
	}{
		{"audit-policy-file", "/etc/kubernetes/audit.yaml", true},
		{"audit-policy-file", "audit.yaml", true},
		{"audit-policy-file", "/tmp/../etc/audit.yaml", true},
		{"encryption-provider-config", "/etc/kubernetes/encryption.yaml", true},
		{"authentication-config", "/oidc.yaml", true},
		{"config", "/scheduler.yaml", true},
		{"audit-log-path", "/var/log/audit.log", true},
		{"audit-log-path", "-", false},
		{"audit-log-path", "/tmp/audit.log", false},
		{"oidc-ca-file", "/etc/ssl/certs/ca-certificates.crt", false},
		{"encryption-provider-config-automatic-reload", "true", false},
		{"authorization-always-allow-paths", "/healthz,/livez", false},
		{"etcd-prefix", "/registry", false},
		{"audit-policy-file", "", false},
	} {
		cp := &pools.ControlPlane{Version: "v1.37.1"}
		controlplane.SetDefaults(cp)
		cp.ExtraArgs.APIServer = map[string]string{tt.flag: tt.value}
		want := ""
		if tt.refused {
			want = fmt.Sprintf("extraArgs.apiServer: the flag %q names %q, which is not in the pod", tt.flag, tt.value)
		}
		if got := check(t, cp); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("--%s=%s: got %q, want %q", tt.flag, tt.value, got, want)
		}
	}
}

func TestConflicts(t *testing.T) {
	tenant := func(name, address string, port int, of pools.ServiceType) pools.Cluster {
		e := pools.ControlPlaneEndpoint{Port: port, ServiceType: of}
		if address != "" {
			e.Address = netip.MustParseAddr(address)
		}
		return pools.Cluster{Name: name, ControlPlane: &pools.ControlPlane{Endpoint: e}}
	}
	const lb, np = pools.LoadBalancer, pools.NodePort
	for _, tt := range []struct {
		a, b pools.Cluster
		want string
	}{
		{tenant("a", "", 6443, lb), tenant("b", "", 6443, lb), ""}, // the load balancer gives each its own
		{tenant("a", "10.0.0.7", 6443, lb), tenant("b", "10.0.0.8", 6443, lb), ""},
		{tenant("a", "10.0.0.7", 6443, lb), tenant("b", "10.0.0.7", 6443, lb), `controlPlane.endpoint: 10.0.0.7:6443 is that of cluster "a" too`},
		{tenant("a", "10.0.0.7", 6443, lb), tenant("b", "10.0.0.7", 6444, lb), "controlPlane.endpoint: 10.0.0.7 is the address of cluster \"a\" too, and the konnectivity agents"},
		{tenant("a", "10.0.0.7", 30443, np), tenant("b", "10.0.0.7", 30444, np), ""},
		{tenant("a", "10.0.0.7", 30443, np), tenant("b", "10.0.0.8", 30443, np), "controlPlane.endpoint: the NodePort 30443"}, // one of the whole cluster
		{tenant("a", "10.0.0.7", 6443, lb), tenant("b", "10.0.0.7", 30443, np), ""},
		{tenant("a", "", 1, lb), tenant("a-front-proxy", "", 2, lb), `name: its Secret "a-front-proxy-ca" is that of cluster "a" too`},
		{tenant("a-front-proxy", "", 1, lb), tenant("a", "", 2, lb), "name: "},
		{tenant("a", "10.0.0.7", 6443, lb), pools.Cluster{Name: "b"}, ""},
		{tenant("a", "10.0.0.7", 6443, lb), tenant("a", "10.0.0.7", 6443, lb), ""}, // the name is the mistake
	} {
		found := controlplane.Conflicts([]pools.Cluster{{Name: "first"}, tt.a, tt.b})
		got := ""
		for _, c := range found {
			got += c.Path + ": " + c.Err.Error()
			if c.First != 1 || c.Second != 2 {
				t.Errorf("%s is of clusters %d and %d", got, c.First, c.Second)
			}
		}
		if !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") || len(found) > 1 {
			t.Errorf("%s %+v and %s %+v: got %q, want %q", tt.a.Name, tt.a.ControlPlane, tt.b.Name, tt.b.ControlPlane, got, tt.want)
		}
	}
}
