package hosted_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/tenants"
)

// testLostKeys deletes Secrets of a tenant that runs: its CA, and then all that it has. No key
// is made anew, the tenant is not Ready, and its control plane runs on. With its keys from a
// backup it is the same again.
func (f *farm) testLostKeys(t *testing.T, tenant pools.Cluster) {
	pid := f.kubelet.pid("kube-apiserver")
	for _, delete := range []string{"secret tenant-a-ca", "secret -l drover.dev/tenant=tenant-a"} {
		var backup []*corev1.Secret
		for _, name := range []string{"tenant-a-ca", "tenant-a-front-proxy-ca", "tenant-a-sa"} {
			s, err := f.people.CoreV1().Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			backup = append(backup, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: s.Name, Labels: s.Labels, Annotations: s.Annotations}, Data: s.Data})
		}
		if _, err := f.admin.Kubectl(t.Context(), nil, append(strings.Fields("delete "+delete), "-n", namespace)...); err != nil {
			t.Fatal(err)
		}
		f.stop() // the next round comes in 30 seconds, or with a new controller
		f.start()
		f.controller.Set([]pools.Cluster{tenant})
		s := f.notReady("tenant-a", "KeysLost", `drover tenant new-keys tenant-a`)
		c := s.Condition(tenants.Ready)
		fixture.WantText(t, "the condition", c.Message, `"tenant-a-ca"`, `the StatefulSet "tenant-a-control-plane"`, `the volume "data-tenant-a-control-plane-0"`, "an API server that answers at 10.231.0.2:6443", "from a backup")
		if now := f.kubelet.pid("kube-apiserver"); now != pid || pid == 0 {
			t.Errorf("the API server was process %d, and is %d", pid, now)
		}
		if _, err := f.people.CoreV1().Secrets(namespace).Get(t.Context(), "tenant-a-ca", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the CA: %v, want none", err)
		}
		for _, s := range backup {
			if _, err := f.people.CoreV1().Secrets(namespace).Create(t.Context(), s, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
		}
		f.ready("tenant-a", version)
		if now := f.secret(t, "tenant-a-ca"); string(now["tls.crt"]) != string(backup[0].Data["tls.crt"]) {
			t.Error("the tenant has another CA")
		}
		pid = f.kubelet.pid("kube-apiserver") // new certificates of konnectivity start it anew
	}
}

// testTraces gives tenants without any key one thing each that shows that it had keys. No key is
// made while that is there, unless an operator asks for new keys.
func (f *farm) testTraces(t *testing.T, tenant pools.Cluster) {
	for i, trace := range []struct {
		what string
		make func(t *testing.T, tenant string) error
	}{
		{`the volume "data-%[1]s-control-plane-0"`, f.makeVolume},
		{`the StatefulSet "%[1]s-control-plane"`, f.makeSet},
		{`the pod "%[1]s-control-plane-0"`, f.makePod},
		{`the Secret "%[1]s-kubeconfig"`, func(t *testing.T, tenant string) error { return f.makeSecret(t, tenant, "kubeconfig") }},
		{`the Secret "%[1]s-admin"`, func(t *testing.T, tenant string) error { return f.makeSecret(t, tenant, "admin") }},
		{`the Secret "%[1]s-certificates"`, func(t *testing.T, tenant string) error { return f.makeSecret(t, tenant, "certificates") }},
	} {
		name := fmt.Sprintf("lost%d", i)
		if err := trace.make(t, name); err != nil {
			t.Fatal(name, err)
		}
		f.controller.Set([]pools.Cluster{tenant, outside(name)})
		f.notReady(name, "KeysLost", fmt.Sprintf(`the Secrets "%s-ca", "%[1]s-front-proxy-ca", "%[1]s-sa" are gone, and there is `+trace.what, name))
		f.wantNoKeys(t, name)
		if i == 0 {
			f.testNewKeys(t, name)
		}
		f.controller.Set([]pools.Cluster{tenant})
		f.sweep(t, name)
	}
	// An API server that answers where the tenant's would: here, that of tenant-a.
	elsewhere := with(outside("lost"), func(cp *pools.ControlPlane) { cp.Endpoint.Address = address })
	f.controller.Set([]pools.Cluster{tenant, elsewhere})
	f.notReady("lost", "KeysLost", "there is an API server that answers at 10.231.0.2:6443")
	f.wantNoKeys(t, "lost")
	f.controller.Set([]pools.Cluster{tenant, outside("lost")}) // nothing is there: it is a new tenant
	f.notReady("lost", "Starting", "")
	f.secret(t, "lost-ca")
	f.controller.Set([]pools.Cluster{tenant})
	f.sweep(t, "lost")
	f.ready("tenant-a", version)
}

// testNewKeys makes the keys of a tenant that has lost them, on purpose, and refuses to do so
// for others.
func (f *farm) testNewKeys(t *testing.T, tenant string) {
	admin := f.load(f.admin.Admin)
	made, err := tenants.NewKeys(t.Context(), admin, namespace, tenant, time.Now())
	if want := fmt.Sprintf("[%s-ca %[1]s-front-proxy-ca %[1]s-sa]", tenant); err != nil || fmt.Sprint(made) != want {
		t.Fatalf("made %q, %v; want %s", made, err, want)
	}
	ca := string(f.secret(t, tenant+"-ca")["tls.crt"])
	f.notReady(tenant, "Starting", "")
	if now := string(f.secret(t, tenant+"-ca")["tls.crt"]); now != ca {
		t.Error("the controller has made another CA")
	}
	for name, want := range map[string]string{tenant: "has all its keys", "tenant-a": "has all its keys", "nobody": "has nothing of a tenant"} {
		if made, err := tenants.NewKeys(t.Context(), admin, namespace, name, time.Now()); err == nil || !strings.Contains(err.Error(), want) || len(made) > 0 {
			t.Errorf("new keys for %s: %q, %v; want %q", name, made, err, want)
		}
	}
}

// ofPlane returns the metadata of an object of a tenant's control plane.
func ofPlane(tenant, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": "drover", "drover.dev/tenant": tenant, "drover.dev/part": "control-plane"}}
}

// nowhere is a pod that is never run.
func nowhere() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}, NodeSelector: map[string]string{"none": "such"}}
}

// makeVolume makes the volume of a tenant as a backup may have it: without labels.
func (f *farm) makeVolume(t *testing.T, tenant string) error {
	size := corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}
	v := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data-" + tenant + "-control-plane-0"},
		Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: size},
	}
	_, err := f.people.CoreV1().PersistentVolumeClaims(namespace).Create(t.Context(), v, metav1.CreateOptions{})
	return err
}

func (f *farm) makeSet(t *testing.T, tenant string) error {
	meta, none := ofPlane(tenant, tenant+"-control-plane"), int32(0)
	s := &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
		Replicas: &none, Selector: &metav1.LabelSelector{MatchLabels: meta.Labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels}, Spec: nowhere()},
	}}
	_, err := f.people.AppsV1().StatefulSets(namespace).Create(t.Context(), s, metav1.CreateOptions{})
	return err
}

func (f *farm) makePod(t *testing.T, tenant string) error {
	pod := &corev1.Pod{ObjectMeta: ofPlane(tenant, tenant+"-control-plane-0"), Spec: nowhere()}
	_, err := f.people.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	return err
}

func (f *farm) makeSecret(t *testing.T, tenant, of string) error {
	s := &corev1.Secret{ObjectMeta: ofPlane(tenant, tenant+"-"+of)}
	_, err := f.people.CoreV1().Secrets(namespace).Create(t.Context(), s, metav1.CreateOptions{})
	return err
}

// wantNoKeys fails the test if a tenant has a key.
func (f *farm) wantNoKeys(t *testing.T, tenant string) {
	t.Helper()
	for _, of := range []string{"ca", "front-proxy-ca", "sa"} {
		if _, err := f.people.CoreV1().Secrets(namespace).Get(t.Context(), tenant+"-"+of, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the Secret %s-%s: %v, want none", tenant, of, err)
		}
	}
}

// sweep deletes what is left of a tenant that the farm does not have, and waits until it is
// gone.
func (f *farm) sweep(t *testing.T, tenant string) {
	t.Helper()
	for _, what := range []string{"statefulsets,pods,secrets -l drover.dev/tenant=" + tenant, "persistentvolumeclaims data-" + tenant + "-control-plane-0"} {
		if out, err := f.admin.Kubectl(t.Context(), nil, append(strings.Fields("delete --ignore-not-found "+what), "-n", namespace)...); err != nil {
			t.Fatal(out, err)
		}
	}
	f.wantLeft(t, tenant, "")
}
