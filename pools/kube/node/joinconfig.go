package node

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The types below are the part of kubeadm.k8s.io/v1beta4 that a worker node
// needs. kubeadm 1.31 and later read them. (k8s.io/kubernetes,
// cmd/kubeadm/app/apis/kubeadm/v1beta4/types.go)

type joinConfiguration struct {
	APIVersion       string           `json:"apiVersion"`
	Kind             string           `json:"kind"`
	Discovery        discovery        `json:"discovery"`
	NodeRegistration nodeRegistration `json:"nodeRegistration"`
	Timeouts         timeouts         `json:"timeouts"`
}

type discovery struct {
	BootstrapToken    bootstrapToken `json:"bootstrapToken"`
	TLSBootstrapToken string         `json:"tlsBootstrapToken"`
}

type bootstrapToken struct {
	Token             string   `json:"token"`
	APIServerEndpoint string   `json:"apiServerEndpoint"`
	CACertHashes      []string `json:"caCertHashes"`
}

type nodeRegistration struct {
	Name             string         `json:"name"`
	CRISocket        string         `json:"criSocket"`
	Taints           []corev1.Taint `json:"taints"` // [] means none; without the field kubeadm would choose some
	KubeletExtraArgs []arg          `json:"kubeletExtraArgs"`
}

type arg struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type timeouts struct {
	Discovery          string `json:"discovery"`
	TLSBootstrap       string `json:"tlsBootstrap"`
	KubeletHealthCheck string `json:"kubeletHealthCheck"`
}

// Render returns the JoinConfiguration, with the full text of a join token, and the
// host:port of an API server with the pins of its CAs.
//
// kubeadm dials the endpoint to read cluster-info and to check the CA. From then on
// kubeadm and the kubelet dial the server that cluster-info names.
func (r *Registration) Render(token, endpoint string, hashes []string) (string, error) {
	conf := joinConfiguration{
		APIVersion: "kubeadm.k8s.io/v1beta4",
		Kind:       "JoinConfiguration",
		Discovery: discovery{
			BootstrapToken:    bootstrapToken{Token: token, APIServerEndpoint: endpoint, CACertHashes: hashes},
			TLSBootstrapToken: token,
		},
		NodeRegistration: nodeRegistration{
			Name:             r.node,
			CRISocket:        "unix:///run/containerd/containerd.sock",
			Taints:           r.taints,
			KubeletExtraArgs: r.kubeletArgs(),
		},
		// kubeadm notices a kubelet that cannot start only at the end of its
		// health check, by default after 4 minutes. The node tries again.
		Timeouts: timeouts{Discovery: "2m", TLSBootstrap: "3m", KubeletHealthCheck: "2m"},
	}
	text, err := yaml.Marshal(conf)
	return string(text), err
}

func (r *Registration) kubeletArgs() []arg {
	args := maps.Clone(r.args)
	args["node-labels"] = r.kubeletLabels()
	list := make([]arg, 0, len(args))
	for _, name := range slices.Sorted(maps.Keys(args)) {
		list = append(list, arg{name, args[name]})
	}
	return list
}
