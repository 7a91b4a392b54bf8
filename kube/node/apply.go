package node

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drover/kube/cluster"
)

// Annotations of drover's: the labels and taints that drover applied to a Node, and so
// may remove.
const (
	labelsAnnotation = "drover/labels" // keys, separated by commas
	taintsAnnotation = "drover/taints" // key:effect, separated by commas
	sealAnnotation   = "drover/seal"   // proof that drover wrote the other two
)

// ErrUnmarked is the error of [Registration.Apply] for a Node that drover did not make.
var ErrUnmarked = errors.New("the Node has no label " + Managed + ": drover did not make it")

// Applied is the names of the labels and taints that drover applied to a Node.
type Applied struct{ labels, taints []string }

// Applied returns the names of the labels and taints of r.
func (r *Registration) Applied() Applied {
	n := Applied{labels: slices.Sorted(maps.Keys(r.labels))}
	for _, t := range r.taints {
		n.taints = append(n.taints, taintName(t))
	}
	slices.Sort(n.taints)
	return n
}

func taintName(t corev1.Taint) string { return t.Key + ":" + string(t.Effect) }

// annotations returns n as annotations of the Node with that UID. They are sealed: a
// kubelet may write the annotations of its own Node, but not its taints and some of its
// labels. Without the seal an intruder on the node could list labels and taints of an
// administrator there, and drover would remove them.
func (n Applied) annotations(key []byte, uid types.UID) map[string]string {
	labels, taints := strings.Join(n.labels, ","), strings.Join(n.taints, ",")
	return map[string]string{labelsAnnotation: labels, taintsAnnotation: taints, sealAnnotation: Seal(key, string(uid), labels, taints)}
}

// Seal returns the HMAC of lines with key: the proof that the holder of key wrote them.
func Seal(key []byte, lines ...string) string {
	mac := hmac.New(sha256.New, key)
	for _, line := range lines {
		fmt.Fprintf(mac, "%s\n", line)
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// readApplied returns the labels and taints that drover applied to a Node, by its
// annotations, and reports whether drover wrote those.
func readApplied(key []byte, n *corev1.Node) (Applied, bool) {
	split := func(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) }
	got := Applied{split(n.Annotations[labelsAnnotation]), split(n.Annotations[taintsAnnotation])}
	if n.Annotations[sealAnnotation] == "" {
		return Applied{}, true // no annotations yet
	}
	seal := got.annotations(key, n.UID)[sealAnnotation]
	return got, hmac.Equal([]byte(seal), []byte(n.Annotations[sealAnnotation]))
}

// Owned reports whether the drover with that key made a Node. Such a Node has the label
// [Managed], which any drover gives, and the seal of the key.
func Owned(key []byte, n *corev1.Node) bool {
	_, genuine := readApplied(key, n)
	return n.Labels[Managed] != "" && n.Annotations[sealAnnotation] != "" && genuine
}

// Foreign says why no other machine may have the name, and so the certificate, of a Node, with the
// remedy: it is a control-plane host, or the drover with that key did not make it. It is empty for
// a Node of drover's, also for one that was never Ready, and so never sealed. Without a key nobody
// can tell which drover made it.
func Foreign(key []byte, n *corev1.Node) string {
	_, genuine := readApplied(key, n)
	switch {
	case controlsPlane(n):
		return fmt.Sprintf("the Node %s is a control-plane host, whose certificate no other machine may have; give the machine another name", n.Name)
	case n.Labels[Managed] == "":
		return fmt.Sprintf("drover did not make the Node %s; give the machine another name, or, if it is that machine: kubectl label node %s %s=%s", n.Name, n.Name, Managed, ManagedValue)
	case len(key) > 0 && !genuine:
		return fmt.Sprintf("another drover made the Node %s, or the key of this one was lost; give the machine another name, or, if it is that machine: kubectl annotate node %s %s-", n.Name, n.Name, sealAnnotation)
	}
	return ""
}

// changes returns the merge patch that gives a Node the labels and taints of r, and
// removes others that drover applied; nil if nothing has to change. more is applied by
// drover too, but not in the annotations yet. The patch is valid for this version of
// the Node only, since a merge patch replaces all taints at once.
func (r *Registration) changes(n *corev1.Node, key []byte, more Applied) ([]byte, error) {
	given, genuine := readApplied(key, n)
	if !genuine { // remove only what the kubelet could remove as well
		given = Applied{labels: slices.DeleteFunc(given.labels, func(l string) bool { return l == Managed || !KubeletMaySet(l) })}
	}
	given.labels, given.taints = append(given.labels, more.labels...), append(given.taints, more.taints...)

	labels := map[string]any{}
	for _, k := range given.labels {
		if _, ok := n.Labels[k]; ok && k != Managed {
			labels[k] = nil
		}
	}
	for k, v := range r.labels {
		delete(labels, k)
		if have, ok := n.Labels[k]; !ok || have != v {
			labels[k] = v
		}
	}
	annotations := r.Applied().annotations(key, n.UID)
	maps.DeleteFunc(annotations, func(k, v string) bool { have, ok := n.Annotations[k]; return ok && have == v })
	taints := r.taintsOf(n, given)
	sameTaints := slices.EqualFunc(taints, n.Spec.Taints, func(a, b corev1.Taint) bool { return a.MatchTaint(&b) && a.Value == b.Value })
	if len(labels) == 0 && len(annotations) == 0 && sameTaints {
		return nil, nil
	}
	metadata := map[string]any{"uid": n.UID, "resourceVersion": n.ResourceVersion}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	patch := map[string]any{"metadata": metadata}
	if !sameTaints {
		patch["spec"] = map[string]any{"taints": taints}
	}
	return json.Marshal(patch)
}

// taintsOf returns the desired taints of a Node: those of other clients, unchanged and
// in their order, and those of r.
func (r *Registration) taintsOf(n *corev1.Node, given Applied) []corev1.Taint {
	taints := []corev1.Taint{}
	desired := slices.Clone(r.taints)
	for _, t := range n.Spec.Taints {
		i := slices.IndexFunc(desired, func(w corev1.Taint) bool { return w.MatchTaint(&t) })
		switch {
		case i >= 0 && desired[i].Value == t.Value:
			taints = append(taints, t) // it has the time when it was added
			desired = slices.Delete(desired, i, i+1)
		case i >= 0:
			taints = append(taints, desired[i])
			desired = slices.Delete(desired, i, i+1)
		case !slices.Contains(given.taints, taintName(t)):
			taints = append(taints, t)
		}
	}
	return append(taints, desired...)
}

// Apply gives a Node the labels and taints of r, removes others that drover applied,
// and reports whether the Node changed. key seals the annotations of the Node. more is
// applied by drover too, but not in the annotations yet. After a conflict with another
// client Apply reads the Node again. The error is [ErrUnmarked] for a Node without the
// label [Managed].
func (r *Registration) Apply(ctx context.Context, c *cluster.Cluster, n *corev1.Node, key []byte, more Applied) (bool, error) {
	for uid, try := n.UID, 0; ; try++ {
		if n.UID != uid {
			return false, nil // the Node of another boot, for another caller
		}
		if n.Labels[Managed] == "" {
			return false, ErrUnmarked
		}
		body, err := r.changes(n, key, more)
		if err != nil || body == nil {
			return false, err
		}
		err = Patch(ctx, c, n.Name, body)
		if apierrors.IsConflict(err) && try < 5 {
			if n, err = Get(ctx, c, n.Name); err == nil {
				continue
			}
		}
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, c.Wrap("label and taint the Node", err)
	}
}

// Patch applies a merge patch to a Node. The error is the API server's own.
func Patch(ctx context.Context, c *cluster.Cluster, name string, body []byte) error {
	_, err := c.Client().CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: cluster.FieldManager})
	return err
}
