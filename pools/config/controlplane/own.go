package controlplane

import "drover/pools"

// MaxName is the longest name of a hosted tenant: the names of its objects, and the labels
// that Kubernetes makes from them, have at most 63 characters.
const MaxName = 38

// AgentPort is the port of the konnectivity-server for agents, beside that of the API server.
const AgentPort = 8132

// Ports are the ports of a control plane's pod that its API server cannot have: those of
// etcd, of the konnectivity-server, of the controller manager and of the scheduler.
func Ports() []int { return []int{2379, 2380, 2381, AgentPort, 8133, 8134, 10257, 10259} }

// Secrets returns the names of the Secrets of a tenant, in the namespace that all share.
func Secrets(tenant string) []string {
	var names []string
	for _, of := range []string{"ca", "front-proxy-ca", "sa", "certificates", "kubeconfig", "admin"} {
		names = append(names, tenant+"-"+of)
	}
	return names
}

// OwnFlags returns the flags, without dashes, that make programs the parts of one control
// plane: extraArgs cannot have them.
func OwnFlags() pools.ControlPlaneParts[[]string] {
	kubeconfigs := []string{"kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig", "leader-elect", "bind-address", "client-ca-file", "requestheader-client-ca-file"}
	return pools.ControlPlaneParts[[]string]{
		Etcd: []string{
			"name", "data-dir", "listen-client-urls", "advertise-client-urls", "listen-peer-urls", "initial-advertise-peer-urls", "initial-cluster", "listen-metrics-urls",
		},
		APIServer: []string{
			"advertise-address", "bind-address", "secure-port", "etcd-servers", "allow-privileged", "authorization-mode", "enable-bootstrap-token-auth", "client-ca-file",
			"tls-cert-file", "tls-private-key-file", "kubelet-client-certificate", "kubelet-client-key", "proxy-client-cert-file", "proxy-client-key-file",
			"requestheader-client-ca-file", "service-account-issuer", "service-account-key-file", "service-account-signing-key-file", "service-cluster-ip-range",
			"egress-selector-config-file", "enable-aggregator-routing",
		},
		ControllerManager: append([]string{
			"root-ca-file", "cluster-name", "cluster-signing-cert-file", "cluster-signing-key-file", "service-account-private-key-file", "use-service-account-credentials",
			"allocate-node-cidrs", "cluster-cidr", "service-cluster-ip-range",
		}, kubeconfigs...),
		Scheduler: kubeconfigs,
		Konnectivity: []string{
			"mode", "uds-name", "delete-existing-uds-file", "server-port", "server-count", "agent-port", "admin-port", "health-port", "cluster-cert", "cluster-key", "kubeconfig",
			"agent-namespace", "agent-service-account", "authentication-audience",
		},
	}
}
