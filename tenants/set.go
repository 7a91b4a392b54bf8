package tenants

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"drover/kube/apply"
)

// readSet reads the StatefulSet.
func (w *worker) readSet(ctx context.Context) error {
	c := w.controller
	set, err := c.typed().AppsV1().StatefulSets(c.Namespace).Get(ctx, w.plane.StatefulSet(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := w.owned("StatefulSet", set.Name, set.Labels); err != nil {
		return err
	}
	w.set = set
	return nil
}

// noteSet writes annotations of the StatefulSet, if there is one. Empty ones stay as they are.
func (w *worker) noteSet(ctx context.Context, notes map[string]string) error {
	if w.set == nil {
		return nil
	}
	if _, changed := annotated(w.set.Annotations, notes); !changed {
		return nil
	}
	given, _ := annotated(nil, notes)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": w.set.UID, "annotations": given}})
	if err != nil {
		return err
	}
	c := w.controller
	set, err := c.typed().AppsV1().StatefulSets(c.Namespace).Patch(ctx, w.set.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
	if err != nil {
		return err
	}
	w.set = set
	return nil
}

// apply applies the StatefulSet and what its pods need. If that starts pods, others wait.
func (w *worker) apply(ctx context.Context) error {
	text, err := w.plane.Pods()
	if err != nil {
		return err
	}
	if starts, err := w.startsPods(ctx, text); err != nil {
		return err
	} else if starts && !w.holds {
		select {
		case w.controller.starts <- struct{}{}:
			w.hold()
		default:
			w.queued = true
			return &waiting{inQueue, "another control plane starts"}
		}
	}
	var broken error
	err = w.applyOwned(ctx, text, func(o *unstructured.Unstructured) {
		if o.GetKind() == "StatefulSet" {
			w.set = &appsv1.StatefulSet{}
			broken = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, w.set)
		}
	})
	if err == nil {
		err = broken
	}
	return err
}

// startsPods reports whether a manifest changes the StatefulSet as it is, and so its pods.
func (w *worker) startsPods(ctx context.Context, manifest []byte) (bool, error) {
	if w.set == nil {
		return true, nil
	}
	all, err := apply.Objects(manifest)
	if err != nil {
		return false, err
	}
	for _, o := range all {
		if o.GetKind() != "StatefulSet" {
			continue
		}
		after, err := apply.DryRun(ctx, w.controller.dyn(), manager, o)
		if err != nil {
			return false, err
		}
		return after.GetGeneration() != w.set.Generation, nil
	}
	return false, fmt.Errorf("no StatefulSet is rendered")
}

// hold holds up the starts of other control planes.
func (w *worker) hold() { w.holds, w.heldSince = true, w.now() }

// started lets others start.
func (w *worker) started() {
	if w.holds {
		w.holds = false
		<-w.controller.starts
	}
}

// health reads the state of the pods. rolledOut is nil once all pods run as they are
// meant to. The error is one of the admin cluster, or says that the API server does not
// run.
func (w *worker) health(ctx context.Context) (rolledOut, err error) {
	c := w.controller
	set, err := c.typed().AppsV1().StatefulSets(c.Namespace).Get(ctx, w.plane.StatefulSet(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		w.status.Parts = nil
		return nil, w.down(&waiting{starting, "there is no pod yet"})
	}
	if err != nil {
		return nil, err
	}
	pods, err := c.typed().CoreV1().Pods(c.Namespace).List(ctx, w.ofPods())
	if err != nil {
		return nil, err
	}
	w.status.Parts = nil
	if len(pods.Items) == 0 {
		return nil, w.down(&waiting{starting, "there is no pod yet"})
	}
	pod := &pods.Items[0]
	w.status.Parts = parts(pod)
	if message := pending(pod); message != "" {
		return nil, w.down(&waiting{starting, message})
	}
	for _, part := range w.status.Parts {
		if part.Name == "kube-apiserver" && !part.Ready {
			return nil, w.down(&waiting{starting, "kube-apiserver: " + part.Detail})
		}
		if !part.Ready && rolledOut == nil {
			rolledOut = &waiting{starting, part.Name + ": " + part.Detail}
		}
	}
	if !current(set) && rolledOut == nil {
		rolledOut = &waiting{starting, "its pod is replaced"}
	}
	return rolledOut, nil
}

// ofPods selects the pods of the control plane.
func (w *worker) ofPods() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: w.plane.Selector()})}
}

// down notes that the API server does not run.
func (w *worker) down(e *waiting) error {
	w.status.set(Available, false, e.reason, e.message, w.now())
	return e
}

// pending returns the reason why a pod has not started, or "".
func pending(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return "its pod ends"
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	if len(pod.Status.InitContainerStatuses) == 0 {
		return "its pod is prepared"
	}
	return ""
}

// current reports whether all pods are of the newest template.
func current(s *appsv1.StatefulSet) bool {
	return s.Status.ObservedGeneration >= s.Generation && s.Status.CurrentRevision == s.Status.UpdateRevision && s.Status.ReadyReplicas == s.Status.Replicas
}
