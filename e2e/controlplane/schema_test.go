package controlplane_test

import (
	"fmt"
	"strings"
	"testing"

	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/pools"
)

// testSchema: objects with mistakes are refused by the API server, and right ones are not.
func testSchema(t *testing.T, p *controlplane.Cluster) {
	for _, tt := range []struct{ place, spec, want string }{
		{"Tenant ok", "{kubeconfig: secrets/a.kubeconfig, token: {mode: shared, ttl: 24h, rotate: 6h}, drain: {timeout: 90s}}", ""},
		{"Tenant ok", "{controlPlane: {version: v1.37.1, endpoint: {address: 10.28.0.7}, podSubnet: '10.244.0.0/16,fd00:244::/56', resources: {etcd: {requests: {cpu: 100m}}}, addons: {flannel: false}}, deletionPolicy: Delete}", ""},
		{"Tenant both", "{kubeconfig: a, secretRef: {namespace: a}}", "give one of kubeconfig, secretRef and controlPlane"},
		{"Tenant none", "{endpoint: 'a:6443'}", "give one of kubeconfig, secretRef and controlPlane"},
		{"Tenant out", "{kubeconfig: /etc/shadow}", "below the directory of drover.yaml"},
		{"Tenant out", "{kubeconfig: secrets/../../x}", "below the directory of drover.yaml"},
		{"Tenant policy", "{kubeconfig: a, deletionPolicy: Delete}", "deletionPolicy has no effect"},
		{"Tenant policy", "{controlPlane: {version: v1.37.1}, deletionPolicy: Keep}", "Unsupported value"},
		{"Tenant rotate", "{kubeconfig: a, token: {rotate: 6h}}", "rotate is for shared tokens"},
		{"Tenant version", "{controlPlane: {version: '1.37'}}", "spec.controlPlane.version"},
		{"Tenant port", "{controlPlane: {version: v1.37.1, endpoint: {port: 99999}}}", "spec.controlPlane.endpoint.port"},
		{"Tenant port", "{controlPlane: {version: v1.37.1, endpoint: {port: 10257}}}", "the port is that of another program"},
		{"Tenant flags", "{controlPlane: {version: v1.37.1, extraArgs: {apiServer: {v: '2', client-ca-file: /x}}}}", "extraArgs.apiServer has a flag of drover's own"},
		{"Tenant flags", "{controlPlane: {version: v1.37.1, extraArgs: {apiServer: {v: '2'}, etcd: {quota-backend-bytes: '8589934592'}}}}", ""},
		{"Tenant 2nd", "{controlPlane: {version: v1.37.1}}", "begins with a letter"},
		{"Tenant 2nd", "{kubeconfig: a}", ""},
		{"Tenant a-name-of-more-than-thirty-eight-letters", "{controlPlane: {version: v1.37.1}}", "38 characters at most"},
		{"Tenant nodeport", "{controlPlane: {version: v1.37.1, endpoint: {serviceType: NodePort}}}", "give the address"},
		{"Tenant key", "{kubeconfig: a, tokens: {}}", "unknown field"},
		{"Tenant a.b", "{kubeconfig: a}", "DNS label"},
		{"Pool ok", "{image: debian-12, cluster: a, tags: [x], catchall: true, range: 10.28.72.10-10.28.72.250, lease: 5m, match: {arch: 7}}", ""},
		{"Pool ok", "{image: a, lease: infinite}", ""},
		{"Pool ok", "{ignore: true}", ""},
		{"Pool image", "{cluster: a}", "a pool has an image"},
		{"Pool range", "{image: a, range: 10.28.72.10-10.28.72.250}", "only a catch-all pool"},
		{"Pool lease", "{image: a, lease: soon}", "spec.lease"},
		{"Pool nodes", "{image: a, nodes: []}", "unknown field"},
		{"Machine ok", `{pool: web, macs: ["52:54:00:12:34:56", 525400123457], ip: 10.28.0.10, dhcpOptions: {ntp-server: 10.28.0.1}}`, "must be of type string"},
		{"Machine ok", `{pool: web, macs: ["52:54:00:12:34:56", "5254.0012.3457"], ip: 10.28.0.10, ip6: "fd00::1", dhcpOptions: {ntp-server: 10.28.0.1, "6": [10.28.0.1, 10.28.0.2]}}`, ""},
		{"Machine ok", `{pool: web, match: {circuitID: eth7}, ignore: true}`, ""},
		{"Machine pool", `{macs: ["52:54:00:12:34:56"]}`, "spec.pool: Required value"},
		{"Machine macs", `{pool: web}`, "a machine has macs"},
		{"Machine mac", `{pool: web, macs: [x]}`, "spec.macs[0]"},
		{"Machine ip", `{pool: web, macs: ["52:54:00:12:34:56"], ip: 10.28}`, "spec.ip"},
		{"Machine exec", `{pool: web, macs: ["52:54:00:12:34:56"], power: {driver: exec, program: /bin/sh}}`, "programs of the server"},
		{"Machine power", `{pool: web, macs: ["52:54:00:12:34:56"], power: {driver: redfish, address: a}}`, "power over a network needs"},
		{"Tag ok", `{kernelArgs: "console=ttyS0", modules: {replace: [overlay]}, labels: {a: b}, files: {/etc/motd: {content: hello, mode: "0600"}}, menuTimeout: 5, taints: [{key: a, effect: NoSchedule}]}`, ""},
		{"Tag ok", `{kernelArgs: {replace: quiet}}`, ""},
		{"Tag menu", `{menuTimeout: 99999}`, "spec.menuTimeout"},
		{"Tag labels", `{labels: {a: 1}}`, "spec.labels.a"},
		{"Tag file", `{files: {/etc/motd: {fromFile: /etc/shadow}}}`, "unknown field"},
		{"Tag password", `{rootPasswordHash: {fromSecret: {namespace: drover, name: a-ca}}}`, "spec.rootPasswordHash"},
		{"Tag stage", `{scripts: {a: {stage: late, run: x}}}`, "Unsupported value"},
		{"Subnet ok", "{cidr: 10.28.0.0/16, router: 10.28.0.1, dns: [10.28.0.1], lease: 12h}", ""},
		{"Subnet cidr", "{router: 10.28.0.1}", "spec.cidr: Required value"},
		{"Subnet cidr", "{cidr: 10.28.0.0}", "spec.cidr"},
		{"Subnet rapid", "{cidr: 10.28.0.0/16, rapidCommit: true}", "rapidCommit is for IPv6"},
		{"Chassis ok", "{address: ilo-m1.example.org, passwordFile: secrets/m1.pass, pool: web, interval: 10m}", ""},
		{"Chassis pin", "{address: a, passwordFile: a, pool: web, via: rest, hostKey: 'SHA256:x'}", "hostKey is of SSH"},
		{"ExternalHost ok", "{cluster: a, address: 192.0.2.10, podCIDRSize: 27, expose: [{service: db.shop, port: 5432}, {service: web.default, port: 5432, hostPort: 80}]}", ""},
		{"ExternalHost cluster", "{address: 192.0.2.10}", "spec.cluster: Required value"},
		{"ExternalHost address", "{cluster: a, address: 'fd00::1'}", "spec.address"},
		{"ExternalHost size", "{cluster: a, address: 192.0.2.10, podCIDRSize: 31}", "spec.podCIDRSize"},
		{"ExternalHost service", "{cluster: a, address: 192.0.2.10, expose: [{service: web, port: 80}]}", "spec.expose[0].service"},
		{"ExternalHost twice", "{cluster: a, address: 192.0.2.10, expose: [{service: db.shop, port: 80}, {service: web.default, port: 8080, hostPort: 80}]}", "leads to one Service"},
		{"ExternalHost drover-host-range", "{cluster: a, address: 192.0.2.10}", "the Node that holds hostPodCIDR"},
		{"ExternalHost named", "{name: a, cluster: a, address: 192.0.2.10}", "unknown field"},
		{"Chassis via", "{address: a, passwordFile: a, pool: web, via: telnet}", "Unsupported value"},
	} {
		_, err := p.Kubectl(t.Context(), strings.NewReader(oneObject(tt.place, tt.spec)), "create", "--dry-run=server", "--validate=strict", "-f", "-")
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s %s: %v", tt.place, tt.spec, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s %s: got %v, want %q", tt.place, tt.spec, err, tt.want)
		}
	}
	testKept(t, p)
	out, err := p.Kubectl(t.Context(), nil, "explain", "machines.drover.dev.spec.pool")
	fixture.WantText(t, "kubectl explain", fmt.Sprint(out, err), "Name of its pool")
	for _, kind := range pools.ObjectKinds {
		out, err := p.Kubectl(t.Context(), nil, "explain", kind.Plural()+".drover.dev.status.conditions")
		fixture.WantText(t, "kubectl explain "+string(kind), fmt.Sprint(out, err), "KIND:       "+string(kind), "VERSION:    v1alpha1", "lastTransitionTime")
	}
}

// testKept: what a control plane cannot change is refused in an edit; what says the same in
// other words is not.
func testKept(t *testing.T, p *controlplane.Cluster) {
	t.Helper()
	apply(t, p, oneObject("Tenant kept", "{controlPlane: {version: v1.37.1, storage: {class: fast}}}"))
	for spec, want := range map[string]string{
		"version: v1.37.2, storage: {class: fast, size: 8Gi}, podSubnet: 10.244.0.0/16": "",
		"version: v1.37.1, storage: {class: fast, size: 9Gi}":                           "storage.size cannot change: Kubernetes keeps the volumes of a StatefulSet",
		"version: v1.37.1": "storage.class cannot change",
		"version: v1.37.1, storage: {class: fast}, podSubnet: 10.245.0.0/16":    "podSubnet cannot change",
		"version: v1.37.1, storage: {class: fast}, serviceSubnet: 10.97.0.0/16": "serviceSubnet cannot change",
	} {
		out, err := p.Kubectl(t.Context(), strings.NewReader(oneObject("Tenant kept", "{controlPlane: {"+spec+"}}")), "apply", "--dry-run=server", "-f", "-")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %s, %v, want %q", spec, out, err, want)
		}
	}
	if _, err := p.Kubectl(t.Context(), nil, "delete", "tenants.drover.dev", "kept", "-n", "drover"); err != nil {
		t.Error(err)
	}
}
