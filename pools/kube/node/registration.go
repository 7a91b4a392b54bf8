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

	"drover/pools"
)

// Mark is the label that a kubelet gives its Node when it joins by drover's
// JoinConfiguration. drover deletes and changes no Node without it; a policy of
// deploy/rbac.yaml enforces that, and that drover marks no Node itself.
const (
	Mark      = "drover/managed"
	MarkValue = "true"
)

// Registration is how a kubelet registers its Node.
type Registration struct {
	node   string
	labels map[string]string // all of them, also those that a kubelet may not set
	taints []corev1.Taint    // not nil
	args   map[string]string // kubelet flags, without those that are made from labels and taints
}

// Register returns the registration of the node of p, which has the address addr.
// It refuses settings that would end the kubelet at once, since the reason would
// only be in the journal of a machine that nobody can log in to yet.
func Register(p *pools.Plan, addr netip.Addr) (*Registration, error) {
	if errs := validation.IsDNS1123Subdomain(p.Node); len(errs) > 0 {
		return nil, fmt.Errorf("its name cannot be that of a Node: %s", strings.Join(errs, "; "))
	}
	if !addr.IsValid() || addr.IsUnspecified() || addr.Zone() != "" {
		return nil, fmt.Errorf("address %q cannot be that of a Node", addr)
	}
	r, err := Settings(p)
	if err != nil {
		return nil, err
	}
	r.args = map[string]string{"node-ip": addr.Unmap().String()}
	for name, value := range p.KubeletArgs {
		if err = r.addArg(name, value); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Settings returns the part of a registration that the Node shows: its labels and
// taints.
func Settings(p *pools.Plan) (*Registration, error) {
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
		// A kubelet refuses two taints with the same key and effect. Tags are in
		// order: the last taint counts.
		r.taints = slices.DeleteFunc(r.taints, func(o corev1.Taint) bool { return o.MatchTaint(&taint) })
		r.taints = append(r.taints, taint)
	}
	return r, nil
}

func (r *Registration) addArg(name, value string) error {
	switch name {
	case "node-labels", "register-with-taints":
		return fmt.Errorf("kubelet argument %q is made from labels and taints", name)
	case "bootstrap-kubeconfig", "config", "hostname-override", "kubeconfig", "register-node":
		// They would undo the join, or give the Node another name.
		return fmt.Errorf("kubelet argument %q is not for the config to set", name)
	}
	switch {
	case len(validation.IsDNS1123Label(name)) > 0: // flags look like those
		return fmt.Errorf("kubelet argument %.100q is not like a flag without its dashes", name)
	case len(value) > 4096 || strings.ContainsFunc(value, unfit):
		// kubeadm writes all arguments into one shell-like line, which
		// systemd splits at white space.
		return fmt.Errorf("kubelet argument %q: value %.100q has white space, quotes, $ or control characters, or is too long", name, value)
	}
	r.args[name] = value
	return nil
}

func unfit(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"'\\$`", r) }

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

// Render returns the JoinConfiguration (kubeadm.k8s.io/v1beta4, which kubeadm 1.31
// and later read), with the full text of a join token, and the host:port of an API
// server with the pins of its CAs.
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

// kubeletLabels returns the value of --node-labels: drover's mark, and the labels
// that a kubelet may set itself.
func (r *Registration) kubeletLabels() string {
	pairs := []string{Mark + "=" + MarkValue}
	for _, key := range slices.Sorted(maps.Keys(r.labels)) {
		if KubeletMaySet(key) {
			pairs = append(pairs, key+"="+r.labels[key])
		}
	}
	return strings.Join(pairs, ",")
}

// KubeletMaySet reports whether a kubelet may give its own Node the label with that
// key. A kubelet that is configured with another label ends at once, and the
// NodeRestriction admission plugin refuses such a label: only the control plane may
// set it.
//
// Labels outside of kubernetes.io and k8s.io are all free. Of those inside, the
// namespaces kubelet.kubernetes.io and node.kubernetes.io are, and a fixed list.
// (k8s.io/kubelet/pkg/apis, well_known_labels.go)
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

// within reports whether a domain is one of others, or below one.
func within(domain string, others ...string) bool {
	return slices.ContainsFunc(others, func(o string) bool { return domain == o || strings.HasSuffix(domain, "."+o) })
}

func checkLabel(key, value string) error {
	if key == Mark {
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
