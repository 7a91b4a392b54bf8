package kube

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
)

// The mark is a label that a kubelet gives its Node when it joins by drover's
// JoinConfiguration. drover deletes and changes no Node without it; a policy of
// deploy/rbac.yaml sees to it that it cannot, and that it marks none itself.
const (
	markLabel = "drover/managed"
	markValue = "true"
)

// Annotations of drover's own: which labels and taints of a Node it gave it, and
// so may take away.
const (
	labelsNote = "drover/labels" // keys
	taintsNote = "drover/taints" // key:effect
	sealNote   = "drover/seal"   // proof that drover wrote the two
)

// errUnmarked is a Node that is none of drover's.
var errUnmarked = errors.New("the Node has no label " + markLabel + ": drover did not make it")

// note is what drover gave a Node.
type note struct{ labels, taints []string }

func (r *registration) note() note {
	n := note{labels: slices.Sorted(maps.Keys(r.labels))}
	for _, t := range r.taints {
		n.taints = append(n.taints, taintName(t))
	}
	slices.Sort(n.taints)
	return n
}

func taintName(t corev1.Taint) string { return t.Key + ":" + string(t.Effect) }

// annotations writes the note for the Node of that UID. The seal is there since
// a kubelet may write the annotations of its own Node, but may not touch its
// taints and some of its labels: a node that was broken into would otherwise
// name what an administrator has put on it, and have drover take it off.
func (n note) annotations(key []byte, uid types.UID) map[string]string {
	labels, taints := strings.Join(n.labels, ","), strings.Join(n.taints, ",")
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s\n%s\n%s\n", uid, labels, taints)
	return map[string]string{labelsNote: labels, taintsNote: taints, sealNote: hex.EncodeToString(mac.Sum(nil))}
}

// readNote reads the note of a Node, and tells whether drover wrote it.
func readNote(key []byte, n *corev1.Node) (note, bool) {
	split := func(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) }
	got := note{split(n.Annotations[labelsNote]), split(n.Annotations[taintsNote])}
	if n.Annotations[sealNote] == "" {
		return note{}, true // none yet
	}
	seal := got.annotations(key, n.UID)[sealNote]
	return got, hmac.Equal([]byte(seal), []byte(n.Annotations[sealNote]))
}

// changes returns the merge patch that gives a Node the labels and taints of r,
// and takes away those that drover gave it and that are asked for no more; nil
// when there is nothing to change. More is what drover gave it besides what the
// Node's note says. The patch holds for this version of the Node only: taints
// are one value to an API server, which knows no other way to change some.
func (r *registration) changes(n *corev1.Node, key []byte, more note) ([]byte, error) {
	given, genuine := readNote(key, n)
	if !genuine {
		given = note{labels: slices.DeleteFunc(given.labels, func(l string) bool { return !kubeletMayRemove(l) })}
	}
	given.labels, given.taints = append(given.labels, more.labels...), append(given.taints, more.taints...)

	labels := map[string]any{}
	for _, k := range given.labels {
		if _, ok := n.Labels[k]; ok && k != markLabel {
			labels[k] = nil
		}
	}
	for k, v := range r.labels {
		delete(labels, k)
		if have, ok := n.Labels[k]; !ok || have != v {
			labels[k] = v
		}
	}
	annotations := r.note().annotations(key, n.UID)
	maps.DeleteFunc(annotations, func(k, v string) bool { have, ok := n.Annotations[k]; return ok && have == v })
	taints := r.taintsOf(n, given)
	sameTaints := slices.EqualFunc(taints, n.Spec.Taints, sameTaint)
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

// kubeletMayRemove tells whether a kubelet may take that label off its own Node:
// then it does no harm to do it in its name.
func kubeletMayRemove(label string) bool { return label != markLabel && KubeletMaySet(label) }

// taintsOf returns the taints that a Node is to have: others' as they are, in
// their order, and those of r.
func (r *registration) taintsOf(n *corev1.Node, given note) []corev1.Taint {
	taints := []corev1.Taint{}
	wanted := slices.Clone(r.taints)
	for _, t := range n.Spec.Taints {
		i := slices.IndexFunc(wanted, func(w corev1.Taint) bool { return w.MatchTaint(&t) })
		switch {
		case i >= 0 && wanted[i].Value == t.Value:
			taints = append(taints, t) // with the time that it was added
			wanted = slices.Delete(wanted, i, i+1)
		case i >= 0:
			taints = append(taints, wanted[i])
			wanted = slices.Delete(wanted, i, i+1)
		case !slices.Contains(given.taints, taintName(t)):
			taints = append(taints, t)
		}
	}
	return append(taints, wanted...)
}

func sameTaint(a, b corev1.Taint) bool { return a.MatchTaint(&b) && a.Value == b.Value }

// tend gives a Node its labels and taints, and tells whether anything was to
// change. A Node that somebody else writes at the same time is read again.
func (c *cluster) tend(ctx context.Context, n *corev1.Node, reg *registration, key []byte, more note) (bool, error) {
	client, err := c.connect()
	if err != nil {
		return false, err
	}
	uid := n.UID
	for try := 0; ; try++ {
		if n.UID != uid {
			return false, nil // another boot's; who follows that tends it
		}
		if n.Labels[markLabel] == "" {
			return false, errUnmarked
		}
		patch, err := reg.changes(n, key, more)
		if err != nil || patch == nil {
			return false, err
		}
		call, cancel := context.WithTimeout(ctx, callTimeout)
		_, err = client.CoreV1().Nodes().Patch(call, n.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
		if apierrors.IsConflict(err) && try < 5 {
			n, err = client.CoreV1().Nodes().Get(call, n.Name, metav1.GetOptions{})
			cancel()
			if err == nil {
				continue
			}
		}
		cancel()
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, c.errorf("label and taint the Node", err)
		}
		return true, nil
	}
}
