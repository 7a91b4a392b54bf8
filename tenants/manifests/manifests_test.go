package manifests_test

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/config/controlplane"
	"drover/tenants/manifests"
)

// plane returns a control plane with the defaults of the config.
func plane(change func(*manifests.Plane)) *manifests.Plane {
	p := &manifests.Plane{
		Name: "tenant-a", Namespace: "farm", Version: "v1.37.1", Policy: pools.Retain, Address: netip.MustParseAddr("10.28.0.7"),
		AgentPort: manifests.Konnectivity, CA: []byte("CA"), KeysID: "0123", VNI: 100,
	}
	p.Spec = pools.ControlPlane{
		Version: p.Version, Replicas: 1, Storage: pools.ControlPlaneStorage{Size: "8Gi"},
		Endpoint:  pools.ControlPlaneEndpoint{Address: p.Address, Port: 6443, ServiceType: pools.LoadBalancer},
		PodSubnet: pools.Prefixes{netip.MustParsePrefix("10.244.0.0/16")}, ServiceSubnet: pools.Prefixes{netip.MustParsePrefix("10.96.0.0/12")},
	}
	p.Ask = p.Address
	change(p)
	return p
}

// objects decodes all that a plane renders.
func objects(t *testing.T, p *manifests.Plane) (all []map[string]any) {
	t.Helper()
	var text []byte
	for _, render := range []func() ([]byte, error){p.Front, p.Pods, p.Bootstrap, func() ([]byte, error) {
		on, _, err := p.Addons()
		return on, err
	}} {
		b, err := render()
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, "\n---\n"...), b...)
	}
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		var o map[string]any
		if err := yaml.UnmarshalStrict([]byte(doc), &o); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if len(o) > 0 {
			all = append(all, o)
		}
	}
	return all
}

func named(t *testing.T, all []map[string]any, kind, name string) map[string]any {
	t.Helper()
	for _, o := range all {
		if o["kind"] == kind && o["metadata"].(map[string]any)["name"] == name {
			return o
		}
	}
	t.Fatalf("no %s %s", kind, name)
	return nil
}

// TestGolden shows a control plane as it is applied.
func TestGolden(t *testing.T) {
	p := plane(func(p *manifests.Plane) {
		p.Spec.Endpoint.Annotations = map[string]string{"example.org/pool": "tenants"}
		p.Spec.ExtraArgs.APIServer = map[string]string{"v": "2"}
		p.Spec.Storage.Class = "fast"
	})
	for name, render := range map[string]func() ([]byte, error){"front": p.Front, "pods": p.Pods, "bootstrap": p.Bootstrap} {
		text, err := render()
		if err != nil {
			t.Fatal(err)
		}
		fixture.Golden(t, "testdata/"+name+".yaml", text)
	}
	addons, removed, err := p.Addons()
	if err != nil || len(removed) > 0 {
		t.Fatalf("removed %s, %v", removed, err)
	}
	fixture.Golden(t, "testdata/addons.yaml", addons)
}

// TestRendersEqual: the same plane gives the same text.
func TestRendersEqual(t *testing.T) {
	change := func(p *manifests.Plane) {
		p.Spec.ExtraArgs.APIServer = map[string]string{"v": "2", "audit-log-path": "-", "max-requests-inflight": "100"}
		p.Spec.Endpoint.Annotations = map[string]string{"a/a": "1", "b/b": "2", "c/c": "3"}
	}
	first, err := plane(change).Pods()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := plane(change).Pods()
		if err != nil || string(again) != string(first) {
			t.Fatalf("another text (%v):\n%s", err, again)
		}
	}
}

// TestValuesStayValues: text that a person chose adds no field.
func TestValuesStayValues(t *testing.T) {
	evil := "x\"\n  evil: true\n---\nkind: Secret # {{.Name}} "
	all := objects(t, plane(func(p *manifests.Plane) {
		p.Spec.Endpoint.Annotations = map[string]string{"example.org/a": evil}
		p.Spec.ExtraArgs.APIServer = map[string]string{"v": evil}
		p.Spec.ExtraArgs.Etcd = map[string]string{"log-level": evil}
		p.Spec.Storage.Class = evil
	}))
	for _, o := range all {
		if o["kind"] == "Secret" || o["evil"] != nil {
			t.Errorf("object %v", o)
		}
	}
	service := named(t, all, "Service", "tenant-a-api")
	if got := service["metadata"].(map[string]any)["annotations"].(map[string]any)["example.org/a"]; got != evil {
		t.Errorf("annotation %q", got)
	}
}

// TestOwnFlags: extraArgs replace defaults, and not what the checks of the config call drover's
// own; those are all flags that extraArgs do not replace.
func TestOwnFlags(t *testing.T) {
	own := controlplane.OwnFlags()
	for program, of := range map[string]struct {
		flags []string
		extra func(*pools.ControlPlane) *map[string]string
	}{
		"etcd":                    {own.Etcd, func(c *pools.ControlPlane) *map[string]string { return &c.ExtraArgs.Etcd }},
		"kube-apiserver":          {own.APIServer, func(c *pools.ControlPlane) *map[string]string { return &c.ExtraArgs.APIServer }},
		"kube-controller-manager": {own.ControllerManager, func(c *pools.ControlPlane) *map[string]string { return &c.ExtraArgs.ControllerManager }},
		"kube-scheduler":          {own.Scheduler, func(c *pools.ControlPlane) *map[string]string { return &c.ExtraArgs.Scheduler }},
		"konnectivity-server":     {own.Konnectivity, func(c *pools.ControlPlane) *map[string]string { return &c.ExtraArgs.Konnectivity }},
	} {
		p := plane(func(p *manifests.Plane) { p.Address = netip.MustParseAddr("fd00:28::7") }) // its API server has one flag more
		args, err := p.Args(program)
		if err != nil {
			t.Fatal(err)
		}
		extra := map[string]string{}
		for _, arg := range args {
			name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
			extra[name] = "replaced"
		}
		*of.extra(&p.Spec) = extra
		if args, err = p.Args(program); err != nil {
			t.Fatal(err)
		}
		var fixed []string
		for _, arg := range args {
			if name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "="); value != "replaced" {
				fixed = append(fixed, name)
			}
		}
		if want := slices.Sorted(slices.Values(of.flags)); !slices.Equal(fixed, want) {
			t.Errorf("%s: extraArgs do not replace %q, and drover's own are %q", program, fixed, want)
		}
	}
}

// TestSecrets: the names of Secrets are those that the checks of the config compare.
func TestSecrets(t *testing.T) {
	p := plane(func(*manifests.Plane) {})
	got := []string{p.CASecret(), p.FrontProxySecret(), p.AccountsSecret(), p.LeafSecret(), p.DroverSecret(), p.AdminSecret()}
	if want := controlplane.Secrets(p.Name); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPorts: the ports of the pod beside that of the API server are those that the checks of
// the config keep free.
func TestPorts(t *testing.T) {
	text, err := plane(func(*manifests.Plane) {}).Pods()
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`(?:port: |Port: |:|-port=)([0-9]{4,5})\b`).FindAllStringSubmatch(string(text), -1) {
		port, _ := strconv.Atoi(found[1])
		if port != 6443 && port != 65532 && !slices.Contains(controlplane.Ports(), port) {
			t.Errorf("port %d in %q is not kept free", port, found[0])
		}
	}
}

func TestDefaultsReplaced(t *testing.T) {
	p := plane(func(p *manifests.Plane) {
		p.Spec.ExtraArgs.APIServer = map[string]string{"enable-admission-plugins": "NodeRestriction,PodSecurity"}
	})
	args, err := p.Args("kube-apiserver")
	if err != nil || !slices.Contains(args, "--enable-admission-plugins=NodeRestriction,PodSecurity") || slices.Contains(args, "--enable-admission-plugins=NodeRestriction") {
		t.Errorf("a default is not replaced: %q, %v", args, err)
	}
}

func TestImages(t *testing.T) {
	tests := []struct{ version, repository, program, want string }{
		{"v1.37.1", "", "kube-apiserver", "registry.k8s.io/kube-apiserver:v1.37.1"},
		{"v1.37.1", "", "etcd", "registry.k8s.io/etcd:3.7.0-0"},
		{"v1.36.4", "", "etcd", "registry.k8s.io/etcd:3.6.6-0"},
		{"v1.33.0", "", "etcd", "registry.k8s.io/etcd:3.5.24-0"},
		{"v1.40.0", "", "etcd", "registry.k8s.io/etcd:3.7.0-0"},
		{"v1.37.1", "10.0.0.1:5000/k", "coredns", "10.0.0.1:5000/k/coredns:v1.14.6"},
		{"v1.37.1", "10.0.0.1:5000", "konnectivity-server", "10.0.0.1:5000/proxy-server:v0.36.0"},
		{"v1.37.1", "", "flannel", "ghcr.io/flannel-io/flannel:v0.28.4"},
	}
	for _, tt := range tests {
		p := plane(func(p *manifests.Plane) { p.Version, p.Spec.ImageRepository = tt.version, tt.repository })
		if got, err := p.Image(tt.program); err != nil || got != tt.want {
			t.Errorf("%+v: got %s, %v", tt, got, err)
		}
	}
}

// TestEtcd: etcd does not go back to a version that is older than the data.
func TestEtcd(t *testing.T) {
	tests := []struct{ version, data, want string }{
		{"v1.36.4", "", "3.6.6-0"},
		{"v1.36.4", "3.5.24-0", "3.6.6-0"},
		{"v1.36.4", "3.6.6-0", "3.6.6-0"},
		{"v1.36.4", "3.7.0-0", "3.7.0-0"},
		{"v1.36.4", "3.10.0-0", "3.10.0-0"},
		{"v1.36.4", "3.6.6-1", "3.6.6-1"},
		{"v1.37.1", "garbage", "3.7.0-0"},
	}
	for _, tt := range tests {
		p := plane(func(p *manifests.Plane) { p.Version, p.Etcd = tt.version, tt.data })
		if got, err := p.Image("etcd"); err != nil || got != "registry.k8s.io/etcd:"+tt.want {
			t.Errorf("%+v: got %s, %v", tt, got, err)
		}
	}
}

// TestNetworks has the addresses and the pod network of each family.
func TestNetworks(t *testing.T) {
	prefixes := func(text string) (p pools.Prefixes) {
		if err := p.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return p
	}
	tests := []struct{ pods, services, dns, flannel string }{
		{"10.244.0.0/16", "10.96.0.0/12", "10.96.0.10", `{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan", "VNI": 100}}`},
		{"fd00:1::/56", "fd00:2::/112", "fd00:2::a", `{"EnableIPv4": false, "EnableIPv6": true, "IPv6Network": "fd00:1::/56", "Backend": {"Type": "vxlan", "VNI": 100}}`},
		{
			"10.244.0.0/16,fd00:1::/56", "10.96.0.0/12,fd00:2::/112", "10.96.0.10 fd00:2::a",
			`{"Network": "10.244.0.0/16", "EnableIPv6": true, "IPv6Network": "fd00:1::/56", "Backend": {"Type": "vxlan", "VNI": 100}}`,
		},
		{"10.244.0.0/16", "10.96.0.0/29", "10.96.0.6", `{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan", "VNI": 100}}`},
	}
	for _, tt := range tests {
		p := plane(func(p *manifests.Plane) {
			p.Spec.PodSubnet, p.Spec.ServiceSubnet = prefixes(tt.pods), prefixes(tt.services)
		})
		if got := strings.Join(p.DNS(), " "); got != tt.dns {
			t.Errorf("%s: DNS %s, want %s", tt.services, got, tt.dns)
		}
		config := named(t, objects(t, p), "ConfigMap", "flannel")["data"].(map[string]any)["net-conf.json"]
		if config != tt.flannel {
			t.Errorf("%s: flannel's %s, want %s", tt.pods, config, tt.flannel)
		}
	}
}

// TestIPv6: with an endpoint of IPv6 all that is asked from outside of the pod is bound for
// IPv6, and the Services get an address of it.
func TestIPv6(t *testing.T) {
	p := plane(func(p *manifests.Plane) {
		p.Address = netip.MustParseAddr("fd00:28::7")
		p.Spec.Endpoint.Address = p.Address
	})
	for program, want := range map[string]string{
		"etcd": "--listen-metrics-urls=http://[::]:2381", "kube-apiserver": "--bind-address=::", "kube-controller-manager": "--bind-address=::", "kube-scheduler": "--bind-address=::",
	} {
		if args, err := p.Args(program); err != nil || !slices.Contains(args, want) {
			t.Errorf("%s: %q, %v; want %s", program, args, err, want)
		}
	}
	all := objects(t, p)
	if got := named(t, all, "Service", "tenant-a-api")["spec"].(map[string]any)["ipFamilyPolicy"]; got != "PreferDualStack" {
		t.Errorf("ipFamilyPolicy %v", got)
	}
	if _, ok := named(t, objects(t, plane(func(*manifests.Plane) {})), "Service", "tenant-a-api")["spec"].(map[string]any)["ipFamilyPolicy"]; ok {
		t.Error("with IPv4 the admin cluster chooses the family")
	}
}

// TestAddonsOff: an add-on that is off is rendered to be removed.
func TestAddonsOff(t *testing.T) {
	off := false
	p := plane(func(p *manifests.Plane) { p.Spec.Addons.Flannel = &off })
	installed, removed, err := p.Addons()
	if err != nil || strings.Contains(string(installed), "flannel") || !strings.Contains(string(removed), "kube-flannel") || strings.Contains(string(removed), "coredns") {
		t.Errorf("installed\n%s\nremoved\n%s\n%v", installed, removed, err)
	}
}
