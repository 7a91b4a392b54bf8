package tenants

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"drover/kube/apply"
	"drover/kube/cluster"
	"drover/pools"
	"drover/tenants/manifests"
)

// removedNote is the annotation of the Secrets that a removed tenant keeps: when it was
// removed. A tenant with a Secret that lacks it is there, or is removed only in part.
const removedNote = "drover.dev/removed"

// remains are the objects of a tenant that say that it is there. Its keys are made before all
// other objects, and deleted, or noted as those of a removed tenant, after them.
type remains struct {
	set     *appsv1.StatefulSet // nil: there is none
	secrets []*corev1.Secret
}

// removeOthers removes the control planes of tenants that the farm no longer has.
func (c *Controller) removeOthers(ctx context.Context) error {
	all, err := c.remains(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r := all[name]
		if r.removed() {
			continue
		}
		unwanted, err := c.unwanted(ctx, name)
		if err == nil && unwanted {
			err = c.remove(ctx, name, r)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("cluster %q: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// remains finds the tenants of the namespace, those that were removed and keep their keys
// included.
func (c *Controller) remains(ctx context.Context) (map[string]*remains, error) {
	all := map[string]*remains{}
	of := func(o metav1.Object, named func(*manifests.Plane) []string) *remains {
		name := o.GetLabels()[manifests.TenantLabel]
		if name == "" || !slices.Contains(named(&manifests.Plane{Name: name}), o.GetName()) {
			return &remains{} // a copy that somebody made
		}
		if all[name] == nil {
			all[name] = &remains{}
		}
		return all[name]
	}
	opts := metav1.ListOptions{LabelSelector: manifests.ManagedBy + "=" + manifests.Drover}
	err := cluster.EachPage(ctx, c.limits, c.typed().AppsV1().StatefulSets(c.Namespace), opts, func(page []*appsv1.StatefulSet) {
		for _, s := range page {
			of(s, func(p *manifests.Plane) []string { return []string{p.StatefulSet()} }).set = s
		}
	})
	if err != nil {
		return nil, err
	}
	err = cluster.EachPage(ctx, c.limits, c.typed().CoreV1().Secrets(c.Namespace), opts, func(page []*corev1.Secret) {
		for _, s := range page {
			r := of(s, (*manifests.Plane).Secrets)
			r.secrets = append(r.secrets, s)
		}
	})
	return all, err
}

// removed reports whether all is done for a tenant that keeps its keys.
func (r *remains) removed() bool {
	return r.set == nil && !slices.ContainsFunc(r.secrets, func(s *corev1.Secret) bool { return s.Annotations[removedNote] == "" })
}

// unwanted reports whether a tenant is to be removed: the farm does not have it, and there is
// no object from which it may have it soon.
func (c *Controller) unwanted(ctx context.Context, name string) (bool, error) {
	c.mu.Lock()
	_, hosted := c.tenants[name]
	_, elsewhere := c.elsewhere[name]
	c.mu.Unlock()
	if hosted {
		return false, nil
	}
	o, err := c.dyn().Resource(tenantObjects).Namespace(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	// The farm may not have read the object yet, or may refuse it.
	_, controlPlane, err := unstructured.NestedFieldNoCopy(o.Object, "spec", "controlPlane")
	return err == nil && !controlPlane && elsewhere, err
}

// policy returns what remains of a tenant. Keys and data go only if that was said last, and
// nothing says otherwise.
func (c *Controller) policy(name string, r *remains) pools.DeletionPolicy {
	c.mu.Lock()
	said := []string{string(c.policies[name])}
	c.mu.Unlock()
	if r.set != nil {
		said = append(said, r.set.Annotations[manifests.DeletionNote])
	}
	for _, s := range r.secrets {
		said = append(said, s.Annotations[manifests.DeletionNote])
	}
	said = slices.DeleteFunc(said, func(s string) bool { return s == "" })
	if len(said) == 0 || slices.ContainsFunc(said, func(s string) bool { return s != string(pools.Delete) }) {
		return pools.Retain
	}
	return pools.Delete
}

// remove removes a control plane. Keys and data stay unless the policy is Delete. Its steps
// can be done again: the keys, which say that there is something to remove, come last.
func (c *Controller) remove(ctx context.Context, tenant string, r *remains) error {
	p := &manifests.Plane{Name: tenant}
	for _, o := range []struct {
		kind schema.GroupVersionKind
		name string
	}{
		{corev1.SchemeGroupVersion.WithKind("Service"), p.Service()},
		{corev1.SchemeGroupVersion.WithKind("Service"), p.StatefulSet()},
		{appsv1.SchemeGroupVersion.WithKind("StatefulSet"), p.StatefulSet()},
		{corev1.SchemeGroupVersion.WithKind("ConfigMap"), p.ConfigMap()},
		{networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), p.StatefulSet()},
	} {
		named := &unstructured.Unstructured{}
		named.SetGroupVersionKind(o.kind)
		named.SetName(o.name)
		named.SetNamespace(c.Namespace)
		if err := apply.Delete(ctx, c.dyn(), manifests.TenantLabel, tenant, named); err != nil {
			return err
		}
	}
	c.mu.Lock()
	ref := c.elsewhere[tenant].SecretRef
	c.mu.Unlock()
	policy := c.policy(tenant, r)
	if policy == pools.Delete {
		if err := c.removeVolumes(ctx, p); err != nil {
			return err
		}
	}
	// The Secret of the CA, whose name is the first one, is the last.
	for _, name := range slices.Backward(p.Secrets()) {
		for _, s := range r.secrets {
			if s.Name != name {
				continue
			}
			used := ref.Namespace == c.Namespace && ref.Name == name // by the cluster that has the tenant's name now
			if err := c.removeSecret(ctx, s, !used && (policy == pools.Delete || !p.IsKey(name))); err != nil {
				return err
			}
		}
	}
	c.log().Info("control plane removed", "cluster", tenant, "deletionPolicy", policy)
	return nil
}

// removeSecret deletes a Secret, or notes that its tenant is removed.
func (c *Controller) removeSecret(ctx context.Context, s *corev1.Secret, deletes bool) error {
	secrets := c.typed().CoreV1().Secrets(c.Namespace)
	var err error
	if deletes {
		err = secrets.Delete(ctx, s.Name, apply.Exactly(s))
	} else if s.Annotations[removedNote] == "" {
		noted := s.DeepCopy()
		noted.Annotations, _ = annotated(s.Annotations, map[string]string{removedNote: c.now().UTC().Format(time.RFC3339)})
		_, err = secrets.Update(ctx, noted, metav1.UpdateOptions{FieldManager: manager})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// removeVolumes deletes the volumes of a tenant.
func (c *Controller) removeVolumes(ctx context.Context, p *manifests.Plane) error {
	volumes := c.typed().CoreV1().PersistentVolumeClaims(c.Namespace)
	list, err := volumes.List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: p.Selector()})})
	if err != nil {
		return err
	}
	for i := range list.Items {
		v := &list.Items[i]
		if !isVolume(p, v.Name) {
			continue
		}
		if err := volumes.Delete(ctx, v.Name, apply.Exactly(v)); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
