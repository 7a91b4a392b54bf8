package kube

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"drover/pools"
)

// registration is how a kubelet registers its Node.
type registration struct {
	node   string
	labels map[string]string // all of them, those included that a kubelet may not set
	taints []corev1.Taint    // not nil
	args   map[string]string // kubelet flags, without those that are made from labels and taints
}

// register makes the registration of a node, and refuses what would let its
// kubelet end at once: the reason would only be in the journal of a machine that
// nobody can log in to yet.
func register(p *pools.Plan, addr netip.Addr) (*registration, error) {
	if errs := validation.IsDNS1123Subdomain(p.Node); len(errs) > 0 {
		return nil, fmt.Errorf("its name cannot be that of a Node: %s", strings.Join(errs, "; "))
	}
	if !addr.IsValid() || addr.IsUnspecified() || addr.Zone() != "" {
		return nil, fmt.Errorf("address %q cannot be that of a Node", addr)
	}
	r, err := registerSettings(p)
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

// registerSettings makes the part of a registration that the Node shows: its
// labels and taints.
func registerSettings(p *pools.Plan) (*registration, error) {
	r := &registration{node: p.Node, labels: p.Labels, taints: []corev1.Taint{}}
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
		// A kubelet refuses two with the same key and effect. Tags are in
		// order: the last one counts.
		r.taints = slices.DeleteFunc(r.taints, func(o corev1.Taint) bool { return o.MatchTaint(&taint) })
		r.taints = append(r.taints, taint)
	}
	return r, nil
}

func (r *registration) addArg(name, value string) error {
	switch name {
	case "node-labels", "register-with-taints":
		return fmt.Errorf("kubelet argument %q is made from labels and taints", name)
	case "bootstrap-kubeconfig", "config", "hostname-override", "kubeconfig", "register-node":
		// They would undo the join, or make the Node another one.
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

// kubeletLabels returns the value of --node-labels: drover's mark, and what a
// kubelet may set itself.
func (r *registration) kubeletLabels() string {
	pairs := []string{markLabel + "=" + markValue}
	for _, key := range slices.Sorted(maps.Keys(r.labels)) {
		if KubeletMaySet(key) {
			pairs = append(pairs, key+"="+r.labels[key])
		}
	}
	return strings.Join(pairs, ",")
}
