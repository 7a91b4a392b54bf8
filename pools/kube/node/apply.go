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

	"drover/pools/kube/cluster"
)

// Annotations of drover's own: which labels and taints drover gave a Node, and so
// may take away.
const (
	labelsNote = "drover/labels" // keys
	taintsNote = "drover/taints" // key:effect
	sealNote   = "drover/seal"   // proof that drover wrote the two
)

// ErrUnmarked is the error of a Node that drover did not make.
var ErrUnmarked = errors.New("the Node has no label " + Mark + ": drover did not make it")

// Note is the labels and taints that drover gave a Node.
type Note struct{ labels, taints []string }

// Note returns the note of a Node that was registered by r.
func (r *Registration) Note() Note {
	n := Note{labels: slices.Sorted(maps.Keys(r.labels))}
	for _, t := range r.taints {
		n.taints = append(n.taints, taintName(t))
	}
	slices.Sort(n.taints)
	return n
}

func taintName(t corev1.Taint) string { return t.Key + ":" + string(t.Effect) }

// annotations returns the note as annotations of the Node of that UID. They are
// sealed since a kubelet may write the annotations of its own Node, but may not
// touch its taints and some of its labels: a node that was broken into could
// otherwise name those that an administrator gave it, and have drover remove them.
func (n Note) annotations(key []byte, uid types.UID) map[string]string {
	labels, taints := strings.Join(n.labels, ","), strings.Join(n.taints, ",")
	return map[string]string{labelsNote: labels, taintsNote: taints, sealNote: Seal(key, string(uid), labels, taints)}
}

// Seal returns the proof that the holder of key wrote some lines.
func Seal(key []byte, lines ...string) string {
	mac := hmac.New(sha256.New, key)
	for _, line := range lines {
		fmt.Fprintf(mac, "%s\n", line)
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// readNote returns the note of a Node, and whether drover wrote it.
func readNote(key []byte, n *corev1.Node) (Note, bool) {
	split := func(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) }
	got := Note{split(n.Annotations[labelsNote]), split(n.Annotations[taintsNote])}
	if n.Annotations[sealNote] == "" {
		return Note{}, true // none yet
	}
	seal := got.annotations(key, n.UID)[sealNote]
	return got, hmac.Equal([]byte(seal), []byte(n.Annotations[sealNote]))
}

// Own reports whether the holder of key has made a Node: it has the mark, which any
// drover gives, and the seal, which only this one can write.
func Own(key []byte, n *corev1.Node) bool {
	_, genuine := readNote(key, n)
	return n.Labels[Mark] != "" && n.Annotations[sealNote] != "" && genuine
}

// changes returns the merge patch that gives a Node the labels and taints of r, and
// takes away those that drover gave it and that r does not have; nil if there is
// nothing to change. More is what drover gave the Node besides what its note says.
// The patch is valid for this version of the Node only: an API server can only
// replace all taints at once.
func (r *Registration) changes(n *corev1.Node, key []byte, more Note) ([]byte, error) {
	given, genuine := readNote(key, n)
	if !genuine { // remove only what the kubelet could remove as well
		given = Note{labels: slices.DeleteFunc(given.labels, func(l string) bool { return l == Mark || !KubeletMaySet(l) })}
	}
	given.labels, given.taints = append(given.labels, more.labels...), append(given.taints, more.taints...)

	labels := map[string]any{}
	for _, k := range given.labels {
		if _, ok := n.Labels[k]; ok && k != Mark {
			labels[k] = nil
		}
	}
	for k, v := range r.labels {
		delete(labels, k)
		if have, ok := n.Labels[k]; !ok || have != v {
			labels[k] = v
		}
	}
	annotations := r.Note().annotations(key, n.UID)
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

// taintsOf returns the taints that a Node is to have: others' unchanged and in their
// order, and those of r.
func (r *Registration) taintsOf(n *corev1.Node, given Note) []corev1.Taint {
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

// Apply gives a Node the labels and taints of r, takes away others that drover gave
// it, and reports whether anything was to change. Key seals the note on the Node;
// more is what drover gave it besides what the note says. A Node that somebody else
// writes at the same time is read again.
func (r *Registration) Apply(ctx context.Context, c *cluster.Cluster, n *corev1.Node, key []byte, more Note) (bool, error) {
	for uid, try := n.UID, 0; ; try++ {
		if n.UID != uid {
			return false, nil // another boot's Node, which has its own caller
		}
		if n.Labels[Mark] == "" {
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
