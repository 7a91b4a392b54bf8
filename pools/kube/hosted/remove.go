package hosted

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/pools"
	"drover/pools/kube/hosted/manifests"
)

// removeOthers removes the control planes of tenants that the farm no longer has. What
// says that there is one is its StatefulSet, which goes last.
func (c *Controller) removeOthers(ctx context.Context, tenants map[string]declared) error {
	sets, err := c.typed.AppsV1().StatefulSets(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: manifests.ManagedBy + "=" + manifests.Drover})
	if err != nil {
		return err
	}
	var errs []error
	for _, set := range sets.Items {
		name := set.Labels[manifests.TenantLabel]
		if _, ok := tenants[name]; ok || name == "" || set.DeletionTimestamp != nil {
			continue
		}
		// The farm may not have read the objects yet, or may refuse this one.
		_, err := c.dyn.Resource(tenantObjects).Namespace(c.Namespace).Get(ctx, name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			errs = append(errs, err)
			continue
		}
		policy := pools.DeletionPolicy(set.Annotations[manifests.DeletionNote])
		if err := c.remove(ctx, name, policy); err != nil {
			errs = append(errs, fmt.Errorf("cluster %q: %w", name, err))
			continue
		}
		c.log().Info("control plane removed", "cluster", name, "deletionPolicy", policy)
	}
	return errors.Join(errs...)
}

// remove removes a control plane. Keys and data stay unless the policy is Delete.
func (c *Controller) remove(ctx context.Context, tenant string, policy pools.DeletionPolicy) error {
	p := &manifests.Plane{Name: tenant}
	background := metav1.DeletePropagationBackground
	opts := metav1.DeleteOptions{PropagationPolicy: &background}
	core, of := c.typed.CoreV1(), metav1.ListOptions{LabelSelector: manifests.TenantLabel + "=" + tenant}
	steps := []func() error{
		func() error { return core.Services(c.Namespace).Delete(ctx, p.Service(), opts) },
		func() error { return core.Services(c.Namespace).Delete(ctx, p.StatefulSet(), opts) },
		func() error { return core.ConfigMaps(c.Namespace).Delete(ctx, p.ConfigMap(), opts) },
		// drover and people have no use for their way in, and it comes again.
		func() error { return core.Secrets(c.Namespace).Delete(ctx, p.DroverSecret(), opts) },
		func() error { return core.Secrets(c.Namespace).Delete(ctx, p.AdminSecret(), opts) },
	}
	if policy == pools.Delete {
		steps = append(steps, func() error { return c.removeData(ctx, of, opts) })
	}
	steps = append(steps,
		func() error { return c.typed.AppsV1().StatefulSets(c.Namespace).Delete(ctx, p.StatefulSet(), opts) },
		func() error {
			return c.typed.NetworkingV1().NetworkPolicies(c.Namespace).Delete(ctx, p.StatefulSet(), opts)
		},
	)
	for _, step := range steps {
		if err := step(); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// removeData deletes the keys and volumes of a tenant.
func (c *Controller) removeData(ctx context.Context, of metav1.ListOptions, opts metav1.DeleteOptions) error {
	core := c.typed.CoreV1()
	secrets, err := core.Secrets(c.Namespace).List(ctx, of)
	if err != nil {
		return err
	}
	claims, err := core.PersistentVolumeClaims(c.Namespace).List(ctx, of)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range secrets.Items {
		errs = append(errs, core.Secrets(c.Namespace).Delete(ctx, s.Name, opts))
	}
	for _, v := range claims.Items {
		errs = append(errs, core.PersistentVolumeClaims(c.Namespace).Delete(ctx, v.Name, opts))
	}
	for i, err := range errs {
		if apierrors.IsNotFound(err) {
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}
