package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"drover/internal/printable"
	"drover/pools"
	"drover/pools/config/declared"
	"drover/pools/config/mistake"
)

// FieldManager owns the fields of status that this package writes. The controller of
// control planes has another.
const FieldManager = "drover-farm"

// The reasons of conditions.
const (
	inForce  = "InForce"
	invalid  = "Invalid"
	lastGood = "LastGoodInForce"
	noNode   = "NoNode" // of an ExternalHost: its Node or credentials are not as they should be
)

// status is what this package writes into an object.
type status struct {
	pools.MachineStatus
	PodCIDR netip.Prefix `json:"podCIDR,omitzero"` // of an ExternalHost
}

// statusOf returns the status that an object has.
func statusOf(u *unstructured.Unstructured) (s status) {
	b, err := json.Marshal(u.Object["status"])
	if err != nil || json.Unmarshal(b, &s) != nil {
		return status{} // of another version: it is written anew
	}
	return s
}

// condition returns the condition of a type.
func (s status) condition(kind string) (c pools.Condition) {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return c
}

// differs reports whether a status lacks anything of s.
func (s status) differs(from status) bool {
	a, b := s.MachineStatus, from.MachineStatus
	for _, c := range s.Conditions {
		if !sameCondition(c, from.condition(c.Type)) {
			return true
		}
	}
	a.Conditions, b.Conditions = nil, nil
	a.Since, b.Since = a.Since.UTC().Truncate(time.Second), b.Since.UTC().Truncate(time.Second)
	return s.PodCIDR != from.PodCIDR || !reflect.DeepEqual(a, b)
}

func sameCondition(a, b pools.Condition) bool {
	a.LastTransitionTime, b.LastTransitionTime = time.Time{}, time.Time{}
	return a == b
}

// want returns the status that an object should have.
func (w *Watcher) want(s *seen, choice declared.Choice) (want status) {
	if s.Kind == pools.KindMachine && w.Machine != nil {
		want.MachineStatus = w.Machine(s.Name)
		if want.ImageGeneration == "" && want.Step != "" && want.Image == s.status.Image {
			want.ImageGeneration = s.status.ImageGeneration // known before a restart
		}
		want.Error = printable.Line(want.Error, maxText)
	}
	c := pools.Condition{Status: "True", Reason: inForce, ObservedGeneration: s.Generation}
	if errs, wrong := choice.Wrong[s.Key]; wrong {
		c.Status, c.Reason, c.Message = "False", invalid, words(errs)
		if o := choice.Find(s.Key); o != nil {
			c.Reason = lastGood
			c.Message += fmt.Sprintf("\nGeneration %d stays in force.", o.Generation)
		}
	}
	want.ObservedGeneration, want.Conditions = s.Generation, []pools.Condition{w.dated(s, pools.Accepted, c)}
	if s.Kind == pools.KindExternalHost && w.Host != nil && c.Status == "True" {
		var err error
		if want.PodCIDR, err = w.Host(s.cluster, s.Name); err != nil {
			c.Status, c.Reason, c.Message = "False", noNode, printable.Line(err.Error(), maxText)
		}
	}
	if !s.hosted || c.Status != "True" { // the controller of a control plane leaves Ready alone while its Tenant is refused
		want.Conditions = append(want.Conditions, w.dated(s, pools.Ready, c))
		return want
	}
	ready := s.status.condition(pools.Ready)
	refused := ready.Reason == invalid || ready.Reason == lastGood
	if refused { // it stays until that controller takes it over: without Ready an object counts as healthy
		want.Conditions = append(want.Conditions, ready)
	}
	if refused || ready.ObservedGeneration != s.Generation {
		want.ObservedGeneration = s.status.ObservedGeneration // its controller has not seen this one yet
	}
	return want
}

// dated returns a condition of a type with the time when its status changed.
func (w *Watcher) dated(s *seen, kind string, c pools.Condition) pools.Condition {
	c.Type = kind
	c.LastTransitionTime = w.now().UTC().Truncate(time.Second)
	if old := s.status.condition(kind); old.Status == c.Status && !old.LastTransitionTime.IsZero() {
		c.LastTransitionTime = old.LastTransitionTime
	}
	return c
}

// words returns mistakes as drover check writes them, without their place.
func words(errs mistake.Errors) string {
	lines := make([]string, len(errs))
	for i, e := range errs {
		lines[i] = printable.Line(e.Text(), maxText/2)
	}
	text := strings.Join(lines, "\n")
	return text[:min(len(text), 4*maxText)]
}

// write writes the status of queued objects.
func (w *Watcher) write(ctx context.Context) {
	stop := context.AfterFunc(ctx, w.queue.ShutDown)
	defer stop()
	for {
		k, done := w.queue.Get()
		if done {
			return
		}
		if err := w.writeOne(ctx, k); err != nil && ctx.Err() == nil {
			w.Log.Debug("status of an object not written", "object", k, "err", err)
			w.queue.add(k, retryDelay)
		}
		w.queue.Done(k)
	}
}

func (w *Watcher) writeOne(ctx context.Context, k declared.Key) error {
	choice := w.Farm.Objects()
	w.mu.Lock()
	s := w.seen[k]
	var copied seen
	if s != nil {
		copied = *s
	}
	w.mu.Unlock()
	if s == nil || !decided(&copied, choice) {
		return nil
	}
	want := w.want(&copied, choice)
	if !want.differs(copied.status) {
		return nil
	}
	if err := w.queue.rate.Wait(ctx); err != nil {
		return err
	}
	written, err := w.patch(ctx, &copied, want)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it was deleted, perhaps made anew: the watch tells
	}
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.seen[k]; now != nil && now.uid == copied.uid {
		now.status = statusOf(written)
	}
	return nil
}

// decided reports whether a choice is about the newest spec of an object: it is in force,
// or wrong.
func decided(s *seen, c declared.Choice) bool {
	_, wrong := c.Wrong[s.Key]
	o := c.Find(s.Key)
	return wrong || o != nil && o.Same(s.Object)
}

// patch writes a status by server-side apply: fields of other parties stay.
func (w *Watcher) patch(ctx context.Context, s *seen, want status) (*unstructured.Unstructured, error) {
	client, err := w.client(s.Kind)
	if err != nil {
		return nil, err
	}
	var body any = want.ObjectStatus
	switch s.Kind {
	case pools.KindMachine:
		body = want.MachineStatus
	case pools.KindExternalHost:
		body = pools.ExternalHostStatus{ObjectStatus: want.ObjectStatus, PodCIDR: want.PodCIDR}
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": pools.ObjectGroup + "/" + pools.ObjectVersion, "kind": s.Kind,
		"metadata": map[string]any{"name": s.Name, "namespace": w.Namespace, "uid": s.uid}, "status": body,
	})
	if err != nil {
		return nil, err
	}
	force := true
	return client.Patch(ctx, s.Name, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: FieldManager, Force: &force}, "status")
}

func (w *Watcher) now() time.Time {
	if w.Now != nil {
		return w.Now()
	}
	return time.Now()
}
