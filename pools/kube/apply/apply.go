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

// Remove deletes the objects of a manifest that have the given label, the last first.
// Objects that do not exist, or are another's, are left alone.
func Remove(ctx context.Context, client dynamic.Interface, label, value string, manifest []byte) error {
	all, err := Objects(manifest)
	if err != nil {
		return err
	}
	for _, o := range slices.Backward(all) {
		r := resource(client, o)
		found, err := r.Get(ctx, o.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && found.GetLabels()[label] != value {
			continue
		}
		if err == nil {
			background := metav1.DeletePropagationBackground
			err = r.Delete(ctx, o.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s %q: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

func resource(client dynamic.Interface, o *unstructured.Unstructured) dynamic.ResourceInterface {
	name, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind()) // right for all kinds that drover applies
	if o.GetNamespace() == "" {
		return client.Resource(name)
	}
	return client.Resource(name).Namespace(o.GetNamespace())
}
