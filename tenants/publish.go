package tenants

import (
	"context"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"drover/pools"
)

// tenantObjects are the objects of tenants in the admin cluster.
var tenantObjects = schema.GroupVersionResource{Group: pools.ObjectGroup, Version: pools.ObjectVersion, Resource: pools.KindTenant.Plural()}

// statusManager is the owner of the fields of a Tenant's status that say how its control
// plane is. Others are of the farm.
const statusManager = "drover-tenants"

// publish writes the status into the object of the tenant, if it has one: a tenant of the
// config file has none. It writes a status that has not changed again after a while, since
// the object may be a new one, or changed by others. While the newest spec of the object is
// refused, Ready is written by the party that refused it, and not here.
func (w *worker) publish(ctx context.Context) error {
	s := w.status
	s.Conditions = slices.Clone(s.Conditions) // they change in place
	if refused := w.controller.Refused; refused != nil && refused(w.conf.Name) {
		meta.RemoveStatusCondition(&s.Conditions, Ready)
	}
	if w.published != nil && reflect.DeepEqual(*w.published, s) && w.now().Sub(w.publishedAt) < slowRound {
		return nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s)
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	o.SetGroupVersionKind(tenantObjects.GroupVersion().WithKind(string(pools.KindTenant)))
	o.SetName(w.conf.Name)
	o.SetNamespace(w.controller.Namespace)
	_, err = w.controller.dyn().Resource(tenantObjects).Namespace(w.controller.Namespace).ApplyStatus(ctx, w.conf.Name, o, metav1.ApplyOptions{FieldManager: statusManager, Force: true})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	w.published, w.publishedAt = &s, w.now()
	return nil
}

// recall takes the status of the tenant's object as that of the round before, so that a
// restart changes neither conditions nor the times of their changes. Without it they are new.
func (w *worker) recall(ctx context.Context) {
	if w.recalled {
		return
	}
	w.recalled = true
	o, err := w.controller.dyn().Resource(tenantObjects).Namespace(w.controller.Namespace).Get(ctx, w.conf.Name, metav1.GetOptions{})
	if err != nil {
		return // it has none, or the round says what is wrong
	}
	fields, _, _ := unstructured.NestedMap(o.Object, "status")
	var s Status
	if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &s) != nil {
		return // of another version
	}
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c metav1.Condition) bool {
		return !slices.Contains([]string{Ready, Available, VersionAccepted, AgentsConnected}, c.Type) // the farm's
	})
	w.status = s
}
