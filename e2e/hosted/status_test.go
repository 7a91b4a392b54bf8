package hosted_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/e2e/fixture"
	"drover/tenants"
)

// declare makes the object of a tenant. From then on [farm.until] asks it too.
func (f *farm) declare(t *testing.T, tenant string) {
	t.Helper()
	object := fmt.Sprintf(`{apiVersion: drover.dev/v1alpha1, kind: Tenant, metadata: {name: %s, namespace: %s},
spec: {controlPlane: {version: %s, endpoint: {address: %s}}}}`, tenant, namespace, version, address)
	if _, err := f.admin.Kubectl(t.Context(), strings.NewReader(object), "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	f.declared = tenant
}

// forget deletes the object of a tenant.
func (f *farm) forget(t *testing.T, tenant string) {
	t.Helper()
	f.declared = ""
	if _, err := f.admin.Kubectl(t.Context(), nil, "delete", "tenants.drover.dev", tenant, "-n", namespace); err != nil {
		t.Fatal(err)
	}
}

// stored returns the status in the object of a tenant.
func (f *farm) stored(tenant string) (s tenants.Status, err error) {
	text, err := f.admin.Kubectl(f.t.Context(), nil, "get", "tenants.drover.dev", tenant, "-n", namespace, "-o", "json")
	if err != nil {
		return s, err
	}
	object := struct{ Status *tenants.Status }{&s}
	return s, json.Unmarshal([]byte(text), &object)
}

// testStatus checks that the object of a tenant has its whole status, and that a new object
// of that name gets it too.
func (f *farm) testStatus(t *testing.T) {
	f.declare(t, "tenant-a")
	f.wantStored(t)
	s, err := f.stored("tenant-a")
	if err != nil {
		t.Fatal(err)
	}
	if s.Endpoint != "10.231.0.2:6443" || s.Version != version || s.VNI != 100 {
		t.Errorf("status %+v", s)
	}
	for i, name := range []string{"etcd", "kube-apiserver", "konnectivity-server", "kube-controller-manager", "kube-scheduler"} {
		if i >= len(s.Parts) || s.Parts[i] != (tenants.Part{Name: name, Ready: true}) {
			t.Errorf("part %d of %+v, want %s, ready", i, s.Parts, name)
		}
	}
	var names []string
	for i, c := range s.Certificates {
		names = append(names, c.Name)
		if time.Until(c.Ends.Time) < 300*24*time.Hour || i > 0 && c.Ends.Before(&s.Certificates[i-1].Ends) {
			t.Errorf("the end of certificate %d in %+v", i, s.Certificates)
		}
	}
	slices.Sort(names)
	if got, want := fmt.Sprint(names), "[apiserver apiserver-kubelet-client ca controller-manager front-proxy-ca front-proxy-client konnectivity konnectivity-client scheduler]"; got != want {
		t.Errorf("certificates %s, want %s", got, want)
	}
	for kind, want := range map[string]metav1.ConditionStatus{tenants.Ready: "True", tenants.Available: "True", tenants.VersionAccepted: "True", tenants.AgentsConnected: "False"} {
		if c := s.Condition(kind); c == nil || c.Status != want || c.Reason == "" || c.Message == "" || c.LastTransitionTime.IsZero() {
			t.Errorf("condition %s is %+v, want %s", kind, c, want)
		}
	}
	out, err := f.admin.Kubectl(t.Context(), nil, "get", "tenants.drover.dev", "-n", namespace)
	fixture.WantText(t, "kubectl get tenants", fmt.Sprint(out, err), "tenant-a", version, "10.231.0.2:6443", "True")

	f.forget(t, "tenant-a")
	f.declare(t, "tenant-a")
	f.wantStored(t)
}

// wantStored waits until the object of tenant-a has the status that the controller reports,
// field for field: none is lost to the schema.
func (f *farm) wantStored(t *testing.T) {
	t.Helper()
	fixture.Retry(t, "the status in the object", func() error {
		stored, err := f.stored("tenant-a")
		if err != nil {
			return err
		}
		got, err := json.Marshal(stored)
		if err != nil {
			return err
		}
		want, err := json.Marshal(f.controller.Statuses()["tenant-a"])
		if err == nil && string(got) != string(want) {
			err = fmt.Errorf("it is %s, want %s", got, want)
		}
		return err
	})
}
