package tenants

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"drover/kube/apply"
	"drover/tenants/manifests"
)

// owned returns an error for an object of the admin cluster that has the name of one of this
// tenant's, and is another's: it lacks the tenant's label. drover neither changes nor deletes
// such an object.
func (w *worker) owned(kind, name string, labels map[string]string) error {
	switch of := labels[manifests.TenantLabel]; of {
	case w.conf.Name:
		return nil
	case "":
		return fmt.Errorf("the %s %q is not one of drover's, and stays as it is: remove it, or give the tenant another name; one of a backup has to have its labels", kind, name)
	default:
		return fmt.Errorf("the %s %q is one of the tenant %q, and stays as it is: give one of the two tenants another name", kind, name, of)
	}
}

// applyOwned applies objects of the tenant in the admin cluster.
func (w *worker) applyOwned(ctx context.Context, text []byte, done func(*unstructured.Unstructured)) error {
	return apply.Guarded(ctx, w.controller.dyn(), manager, text, func(live *unstructured.Unstructured) error {
		return w.owned(live.GetKind(), live.GetName(), live.GetLabels())
	}, done)
}

// annotated returns annotations with notes, and reports whether these change them. Empty notes
// leave what is there.
func annotated(annotations, notes map[string]string) (all map[string]string, changed bool) {
	all = map[string]string{}
	maps.Copy(all, annotations)
	for name, value := range notes {
		if value != "" && all[name] != value {
			all[name], changed = value, true
		}
	}
	return all, changed
}
