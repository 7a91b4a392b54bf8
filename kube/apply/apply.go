// Package apply applies manifests with server-side apply. It knows no cluster and no
// manifest: callers pass a client and a text.
package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

// Objects decodes a manifest: documents of YAML, each an object or empty.
func Objects(manifest []byte) (all []*unstructured.Unstructured, err error) {
	docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		o := &unstructured.Unstructured{}
		switch err := docs.Decode(&o.Object); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case len(o.Object) > 0:
			all = append(all, o)
		}
	}
}

// Manifest applies the objects of a manifest as a field manager. They are cluster-wide or
// name their namespace. It calls done, if not nil, with each object that it applied. After
// an error the earlier objects stay applied.
func Manifest(ctx context.Context, client dynamic.Interface, manager string, manifest []byte, done func(*unstructured.Unstructured)) error {
	all, err := Objects(manifest)
	if err != nil {
		return err
	}
	for _, o := range all {
		applied, err := resource(client, o).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: manager, Force: true})
		if err != nil {
			return fmt.Errorf("%s %q: %w", o.GetKind(), o.GetName(), err)
		}
		if done != nil {
			done(applied)
		}
	}
	return nil
}

// Guarded is [Manifest] for a namespace that has objects of others: check, which is called
// with each object that is there before it is changed, returns an error for one that must
// stay as it is.
func Guarded(ctx context.Context, client dynamic.Interface, manager string, manifest []byte, check func(live *unstructured.Unstructured) error, done func(*unstructured.Unstructured)) error {
	all, err := Objects(manifest)
	if err != nil {
		return err
	}
	for _, o := range all {
		live, err := Live(ctx, client, o)
		if err != nil {
			return err
		}
		if live != nil {
			if err := check(live); err != nil {
				return err
			}
			o.SetUID(live.GetUID()) // and no other of its name
		}
		applied, err := resource(client, o).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: manager, Force: true})
		if err != nil {
			return fmt.Errorf("%s %q: %w", o.GetKind(), o.GetName(), err)
		}
		if done != nil {
			done(applied)
		}
	}
	return nil
}

// Live returns an object of a kind and name as it is, or nil if there is none. It needs the
// right to patch it, and not that to get it.
func Live(ctx context.Context, client dynamic.Interface, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live, err := resource(client, o).Patch(ctx, o.GetName(), types.MergePatchType, []byte("{}"), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", o.GetKind(), o.GetName(), err)
	}
	return live, nil
}

// DryRun returns an object as it were after [Manifest].
func DryRun(ctx context.Context, client dynamic.Interface, manager string, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	after, err := resource(client, o).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: manager, Force: true, DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", o.GetKind(), o.GetName(), err)
	}
	return after, nil
}

// Remove deletes the objects of a manifest that have the given label, the last first.
// Objects that do not exist, or are another's, are left alone.
func Remove(ctx context.Context, client dynamic.Interface, label, value string, manifest []byte) error {
	all, err := Objects(manifest)
	if err != nil {
		return err
	}
	for _, o := range slices.Backward(all) {
		if err := Delete(ctx, client, label, value, o); err != nil {
			return err
		}
	}
	return nil
}

// Delete deletes an object that has the given label, as it was when that was read. One that
// does not exist, or is another's, is left alone.
func Delete(ctx context.Context, client dynamic.Interface, label, value string, o *unstructured.Unstructured) error {
	live, err := Live(ctx, client, o)
	if err != nil || live == nil || live.GetLabels()[label] != value || live.GetDeletionTimestamp() != nil {
		return err
	}
	err = resource(client, o).Delete(ctx, o.GetName(), Exactly(live))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s %q: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// Exactly returns the options that delete an object only while it is as given.
func Exactly(o metav1.Object) metav1.DeleteOptions {
	background, uid, version := metav1.DeletePropagationBackground, o.GetUID(), o.GetResourceVersion()
	return metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
}

func resource(client dynamic.Interface, o *unstructured.Unstructured) dynamic.ResourceInterface {
	name, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind()) // right for all kinds that drover applies
	if o.GetNamespace() == "" {
		return client.Resource(name)
	}
	return client.Resource(name).Namespace(o.GetNamespace())
}
