package manifests

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// Where pods see keys and configuration.
const (
	keysDir   = "/etc/kubernetes/pki"
	configDir = "/etc/drover"
)

// flags are the flags of a program without their dashes.
type flags map[string]string

// args returns the flags of a part in a fixed order. fixed are the flags that make it a
// part of this control plane, [controlplane.OwnFlags]: nobody can change them. Others are
// defaults.
func args(fixed, defaults, extra flags) []string {
	all := flags{}
	for _, f := range []flags{defaults, extra, fixed} {
		maps.Copy(all, f)
	}
	list := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, "--"+name+"="+all[name])
	}
	return list
}

// Args returns the arguments of a program of the pod.
func (p *Plane) Args(program string) ([]string, error) {
	extra := p.Spec.ExtraArgs
	switch program {
	case "etcd":
		return args(p.etcd(), flags{"log-level": "warn"}, extra.Etcd), nil
	case "kube-apiserver":
		return args(p.apiServer(), flags{
			"enable-admission-plugins":           "NodeRestriction",
			"kubelet-preferred-address-types":    "InternalIP,ExternalIP,Hostname",
			"profiling":                          "false",
			"requestheader-allowed-names":        "front-proxy-client",
			"requestheader-extra-headers-prefix": "X-Remote-Extra-",
			"requestheader-group-headers":        "X-Remote-Group",
			"requestheader-username-headers":     "X-Remote-User",
		}, extra.APIServer), nil
	case "kube-controller-manager":
		return args(p.controllerManager(), flags{
			"controllers": "*,bootstrapsigner,tokencleaner", // the two are off by default
			"profiling":   "false",
		}, extra.ControllerManager), nil
	case "kube-scheduler":
		return args(p.scheduler(), flags{"profiling": "false"}, extra.Scheduler), nil
	case "konnectivity-server":
		return args(p.konnectivity(), flags{
			"logtostderr":      "true",
			"proxy-strategies": "destHost,default", // the agent of the node itself, or else any
		}, extra.Konnectivity), nil
	}
	return nil, fmt.Errorf("no program %q", program)
}

// etcd listens without TLS, inside the pod only. A member of several would have its peers
// at the name of its pod below the StatefulSet's Service.
func (p *Plane) etcd() flags {
	const client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
	return flags{
		"name":                        "$(POD_NAME)",
		"data-dir":                    "/var/lib/etcd/data",
		"listen-client-urls":          client,
		"advertise-client-urls":       client,
		"listen-peer-urls":            peer,
		"initial-advertise-peer-urls": peer,
		"initial-cluster":             "$(POD_NAME)=" + peer,
		"listen-metrics-urls":         "http://" + net.JoinHostPort(p.anyAddress(), "2381"), // the kubelet's probes
	}
}

func (p *Plane) apiServer() flags {
	f := flags{
		// Nodes find the Service "kubernetes" of the tenant at these two.
		"advertise-address": p.Address.String(),
		"secure-port":       strconv.Itoa(p.Spec.Endpoint.Port),

		"etcd-servers":                     "http://127.0.0.1:2379",
		"allow-privileged":                 "true",
		"authorization-mode":               "Node,RBAC",
		"enable-bootstrap-token-auth":      "true",
		"client-ca-file":                   keysDir + "/ca.crt",
		"tls-cert-file":                    keysDir + "/apiserver.crt",
		"tls-private-key-file":             keysDir + "/apiserver.key",
		"kubelet-client-certificate":       keysDir + "/apiserver-kubelet-client.crt",
		"kubelet-client-key":               keysDir + "/apiserver-kubelet-client.key",
		"proxy-client-cert-file":           keysDir + "/front-proxy-client.crt",
		"proxy-client-key-file":            keysDir + "/front-proxy-client.key",
		"requestheader-client-ca-file":     keysDir + "/front-proxy-ca.crt",
		"service-account-issuer":           "https://kubernetes.default.svc." + clusterDomain,
		"service-account-key-file":         keysDir + "/sa.pub",
		"service-account-signing-key-file": keysDir + "/sa.key",
		"service-cluster-ip-range":         p.Spec.ServiceSubnet.String(),
		"egress-selector-config-file":      configDir + "/egress.yaml",
		// Webhooks and aggregated APIs are dialed at the addresses of pods: the node of
		// the agent needs no kube-proxy.
		"enable-aggregator-routing": "true",
	}
	if p.IPv6() {
		f["bind-address"] = p.anyAddress()
	}
	return f
}

// anyAddress is what programs bind for requests from outside of the pod. That of IPv6 takes
// requests by IPv4 too, and does not exist on hosts without IPv6.
func (p *Plane) anyAddress() string {
	if p.IPv6() {
		return netip.IPv6Unspecified().String()
	}
	return netip.IPv4Unspecified().String()
}

func (p *Plane) controllerManager() flags {
	return p.withKubeconfig("controller-manager.conf", flags{
		"bind-address":                     p.anyAddress(), // the kubelet's probes; all else needs a user
		"client-ca-file":                   keysDir + "/ca.crt",
		"requestheader-client-ca-file":     keysDir + "/front-proxy-ca.crt",
		"root-ca-file":                     keysDir + "/ca.crt",
		"cluster-name":                     p.Name,
		"cluster-signing-cert-file":        keysDir + "/signing.crt",
		"cluster-signing-key-file":         keysDir + "/signing.key",
		"service-account-private-key-file": keysDir + "/sa.key",
		"use-service-account-credentials":  "true",
		"allocate-node-cidrs":              "true",
		"cluster-cidr":                     p.Spec.PodSubnet.String(),
		"service-cluster-ip-range":         p.Spec.ServiceSubnet.String(),
	})
}

func (p *Plane) scheduler() flags {
	return p.withKubeconfig("scheduler.conf", flags{
		"bind-address":                 p.anyAddress(),
		"client-ca-file":               keysDir + "/ca.crt",
		"requestheader-client-ca-file": keysDir + "/front-proxy-ca.crt",
	})
}

func (p *Plane) withKubeconfig(name string, f flags) flags {
	for _, flag := range []string{"kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"} {
		f[flag] = configDir + "/" + name
	}
	// A lone pod that starts anew would wait for the lease of the one before.
	f["leader-elect"] = strconv.FormatBool(p.Spec.Replicas > 1)
	return f
}

func (p *Plane) konnectivity() flags {
	return flags{
		"mode":                     "grpc",
		"uds-name":                 "/run/konnectivity/server.socket",
		"delete-existing-uds-file": "true",
		"server-port":              "0",
		"server-count":             strconv.Itoa(p.Spec.Replicas),
		"agent-port":               strconv.Itoa(Konnectivity),
		"admin-port":               "8133",
		"health-port":              "8134",
		"cluster-cert":             keysDir + "/konnectivity.crt",
		"cluster-key":              keysDir + "/konnectivity.key",
		"kubeconfig":               configDir + "/konnectivity.conf",
		"agent-namespace":          "kube-system",
		"agent-service-account":    "konnectivity-agent",
		"authentication-audience":  Audience,
	}
}

// Audience is the audience of the tokens of konnectivity agents.
const Audience = "system:konnectivity-server"
