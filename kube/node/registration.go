package node

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"drover/pools/kubelet"
	"drover/pools/resolve"
)

// Managed is the label that a kubelet with drover's JoinConfiguration gives its Node.
// drover deletes and changes no Node without it. A policy of deploy/rbac.yaml enforces
// that, and forbids drover to set the label itself.
const (
	Managed      = "drover/managed"
	ManagedValue = "true"
)

// Registration is the data with which a kubelet registers its Node.
type Registration struct {
	node   string
	labels map[string]string // all, including those that a kubelet may not set
	taints []corev1.Taint    // not nil
	args   map[string]string // kubelet flags, except those made from labels and taints
}

// Register returns the registration of the node of p, which has the addresses addrs: one,
// or one of each family, the primary one first. It refuses settings with which the kubelet
// would exit at once: the reason would only be in the journal of a machine that does not
// accept logins yet.
func Register(p *resolve.Plan, addrs ...netip.Addr) (*Registration, error) {
	if errs := validation.IsDNS1123Subdomain(p.Node); len(errs) > 0 {
		return nil, fmt.Errorf("its name cannot be that of a Node: %s", strings.Join(errs, "; "))
	}
	nodeIP, err := nodeIPs(addrs)
	if err != nil {
		return nil, err
	}
	r, err := Settings(p)
	if err != nil {
		return nil, err
	}
	r.args = map[string]string{"node-ip": nodeIP}
	for name, value := range p.KubeletArgs {
		if err = kubelet.CheckArg(name, value); err != nil {
			return nil, err
		}
		r.args[name] = value
	}
	return r, nil
}

// nodeIPs returns the value of --node-ip.
func nodeIPs(addrs []netip.Addr) (string, error) {
	var all []string
	for i, addr := range addrs {
		if addr = addr.Unmap(); !addr.IsValid() || addr.IsUnspecified() || addr.IsLinkLocalUnicast() || addr.Zone() != "" {
			return "", fmt.Errorf("address %q cannot be that of a Node", addr)
		}
		if i > 1 || i == 1 && addr.Is4() == addrs[0].Unmap().Is4() {
			return "", fmt.Errorf("a Node has one address of each family, not %v", addrs)
		}
		all = append(all, addr.String())
	}
	if len(all) == 0 {
		return "", errors.New("a Node needs an address")
	}
	return strings.Join(all, ","), nil
}

// Settings returns a registration with the labels and taints of p, and without kubelet
// flags.
func Settings(p *resolve.Plan) (*Registration, error) {
	r := &Registration{node: p.Node, labels: p.Labels, taints: []corev1.Taint{}}
	for key, value := range p.Labels {
		if err := checkLabel(key, value); err != nil {
			return nil, err
		}
	}
	for _, t := range p.Taints {
		taint := corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)}
		if err := checkTaint(taint); err != nil {
			return nil, err
		}
		// A kubelet refuses two taints with the same key and effect. The last one
		// counts, as for all settings of tags.
		r.taints = slices.DeleteFunc(r.taints, func(o corev1.Taint) bool { return o.MatchTaint(&taint) })
		r.taints = append(r.taints, taint)
	}
	return r, nil
}

func checkTaint(t corev1.Taint) error {
	var errs []string
	errs = append(errs, validation.IsQualifiedName(t.Key)...)
	errs = append(errs, validation.IsValidLabelValue(t.Value)...)
	if !slices.Contains([]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}, t.Effect) {
		errs = append(errs, fmt.Sprintf("effect %q is not NoSchedule, PreferNoSchedule or NoExecute", t.Effect))
	}
	if len(errs) > 0 {
		return fmt.Errorf("taint %q: %w", t.Key, errors.New(strings.Join(errs, "; ")))
	}
	return nil
}

// Render returns the JoinConfiguration in YAML (kubeadm.k8s.io/v1beta4, for kubeadm 1.31
// and later). token is the full join token, endpoint the host:port of the API server,
// and hashes are the pins of its CAs.
//
// kubeadm dials the endpoint to read cluster-info and to check the CA. From then on
// kubeadm and the kubelet dial the server that cluster-info names.
func (r *Registration) Render(token, endpoint string, hashes []string) (string, error) {
	type object = map[string]any
	args := maps.Clone(r.args)
	args["node-labels"] = r.kubeletLabels()
	extra := make([]object, 0, len(args))
	for _, name := range slices.Sorted(maps.Keys(args)) {
		extra = append(extra, object{"name": name, "value": args[name]})
	}
	text, err := yaml.Marshal(object{
		"apiVersion": "kubeadm.k8s.io/v1beta4",
		"kind":       "JoinConfiguration",
		"discovery": object{
			"bootstrapToken":    object{"token": token, "apiServerEndpoint": endpoint, "caCertHashes": hashes},
			"tlsBootstrapToken": token,
		},
		"nodeRegistration": object{
			"name":             r.node,
			"criSocket":        "unix:///run/containerd/containerd.sock",
			"taints":           r.taints, // [] means none; without the field kubeadm would choose some
			"kubeletExtraArgs": extra,
		},
		// kubeadm notices a kubelet that cannot start only at the end of its health
		// check, by default after 4 minutes. The node tries again.
		"timeouts": object{"discovery": "2m", "tlsBootstrap": "3m", "kubeletHealthCheck": "2m"},
	})
	return string(text), err
}

// kubeletLabels returns the value of --node-labels: Managed, and the labels that a
// kubelet may set itself.
func (r *Registration) kubeletLabels() string {
	pairs := []string{Managed + "=" + ManagedValue}
	for _, key := range slices.Sorted(maps.Keys(r.labels)) {
		if KubeletMaySet(key) {
			pairs = append(pairs, key+"="+r.labels[key])
		}
	}
	return strings.Join(pairs, ",")
}

// KubeletMaySet reports whether a kubelet may set a label on its own Node. A kubelet
// that is configured with another label exits at once, and the NodeRestriction
// admission plugin refuses the label: only the control plane may set it.
//
// All labels outside of kubernetes.io and k8s.io are allowed. Inside, the namespaces
// kubelet.kubernetes.io and node.kubernetes.io and a fixed list of labels are allowed;
// see well_known_labels.go in k8s.io/kubelet/pkg/apis.
func KubeletMaySet(label string) bool {
	namespace, _, ok := strings.Cut(label, "/")
	if !ok || !within(namespace, "kubernetes.io", "k8s.io") {
		return true
	}
	return within(namespace, "kubelet.kubernetes.io", "node.kubernetes.io") || slices.Contains([]string{
		"kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch",
		"topology.kubernetes.io/zone", "topology.kubernetes.io/region",
		"failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
		"beta.kubernetes.io/instance-type", "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
	}, label)
}

// within reports whether domain is one of others, or a subdomain of one.
func within(domain string, others ...string) bool {
	return slices.ContainsFunc(others, func(o string) bool { return domain == o || strings.HasSuffix(domain, "."+o) })
}

func checkLabel(key, value string) error {
	if key == Managed {
		return fmt.Errorf("label %q is drover's own mark of the Nodes that it made", key)
	}
	if errs := validation.IsQualifiedName(key); len(errs) > 0 {
		return fmt.Errorf("label %q: %s", key, strings.Join(errs, "; "))
	}
	if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
		return fmt.Errorf("label %q: value %q: %s", key, value, strings.Join(errs, "; "))
	}
	return nil
}
