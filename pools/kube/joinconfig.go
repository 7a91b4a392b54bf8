package kube

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The types below are the part of kubeadm.k8s.io/v1beta4 that a worker node
// needs. kubeadm 1.31 and later read it. (k8s.io/kubernetes,
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
	Taints           []corev1.Taint `json:"taints"` // [] means none; if it were absent, kubeadm would choose
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

// render writes the JoinConfiguration. Endpoint replaces the one of
// cluster-info, if not empty.
//
// kubeadm dials it to read cluster-info and to check the CA. From then on it,
// and the kubelet, dial the server that is named there.
func (r *registration) render(tok token, info *clusterInfo, endpoint string) (string, error) {
	if endpoint == "" {
		endpoint = info.endpoint
	}
	conf := joinConfiguration{
		APIVersion: "kubeadm.k8s.io/v1beta4",
		Kind:       "JoinConfiguration",
		Discovery: discovery{
			BootstrapToken:    bootstrapToken{Token: tok.full(), APIServerEndpoint: endpoint, CACertHashes: info.hashes},
			TLSBootstrapToken: tok.full(),
		},
		NodeRegistration: nodeRegistration{
			Name:             r.node,
			CRISocket:        "unix:///run/containerd/containerd.sock",
			Taints:           r.taints,
			KubeletExtraArgs: r.kubeletArgs(),
		},
		// A kubelet that cannot start is not noticed earlier than its health
		// check ends; kubeadm's default is 4 minutes. The node tries again.
		Timeouts: timeouts{Discovery: "2m", TLSBootstrap: "3m", KubeletHealthCheck: "2m"},
	}
	text, err := yaml.Marshal(conf)
	return string(text), err
}

func (r *registration) kubeletArgs() []arg {
	args := maps.Clone(r.args)
	args["node-labels"] = r.kubeletLabels()
	list := make([]arg, 0, len(args))
	for _, name := range slices.Sorted(maps.Keys(args)) {
		list = append(list, arg{name, args[name]})
	}
	return list
}
