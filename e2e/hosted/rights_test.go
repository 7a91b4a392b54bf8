package hosted_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"drover/deploy"
	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/kube/apply"
	"drover/kube/approve"
	"drover/tenants/manifests"
)

// testRights tries what drover may not do in the admin cluster, and asks the API server for
// all that it may.
func (f *farm) testRights(t *testing.T) {
	for _, call := range []string{
		"get secrets -n kube-system", "get secrets -n default", "get secrets -A", "create configmap x -n default", "get nodes", "get namespaces",
		"create namespace x", "create serviceaccount x -n farm", "create token drover -n farm", "create clusterrole x --verb=get --resource=pods",
		"create role x --verb=get --resource=pods -n farm", "run x --image=x -n farm", "delete pod tenant-a-control-plane-0 -n farm", "create deployment x --image=x -n farm",
		"delete namespace farm", "get leases -n kube-system", "exec tenant-a-control-plane-0 -n farm -- true", "logs tenant-a-control-plane-0 -n farm",
		"get tenants.drover.dev -n farm", "delete tenants.drover.dev tenant-a -n farm", "label tenants.drover.dev tenant-a a=b -n farm", "get configmaps -n farm",
		"get services -n farm", "delete --raw /api/v1/namespaces/farm/secrets", "delete pvc --all -n default", "get customresourcedefinitions", "get --raw /metrics", "get --raw /api/v1/nodes/x/proxy/pods",
		"get secrets -n farm --as=system:admin", "get nodes --as=x --as-group=system:masters", "port-forward tenant-a-control-plane-0 1 -n farm", "create job x --image=x -n farm",
	} {
		out, err := f.admin.KubectlAs(t.Context(), f.drover, nil, strings.Fields(call)...)
		if err == nil || !strings.Contains(err.Error(), "orbidden") {
			t.Errorf("%s: %q, %v; want Forbidden", call, out, err)
		}
	}
	drover, other := kubernetes.NewForConfigOrDie(f.restricted), f.account(t, f.admin.Admin, namespace)
	if got, want := may(t, drover, other, namespace), granted(t, fixture.ReadFile(t, rbac), namespace); !slices.Equal(got, want) {
		t.Errorf("in its namespace drover may\n%s\nand %s has\n%s", strings.Join(got, "\n"), rbac, strings.Join(want, "\n"))
	}
	for _, elsewhere := range []string{"default", "kube-system", "kube-public"} {
		if got := may(t, drover, other, elsewhere); len(got) > 0 {
			t.Errorf("in the namespace %s drover may %q", elsewhere, got)
		}
	}
}

// testPods: the StatefulSet of a tenant is accepted from drover, for another tenant too, and
// none whose pods would be more than a control plane.
func (f *farm) testPods(t *testing.T) {
	found, err := f.people.AppsV1().StatefulSets(namespace).Get(t.Context(), "tenant-a-control-plane", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	drover := kubernetes.NewForConfigOrDie(f.restricted).AppsV1().StatefulSets(namespace)
	yes, root := true, int64(0)
	for name, tt := range map[string]struct {
		change func(*appsv1.StatefulSet, *corev1.PodSpec)
		want   string // "": it is accepted
	}{
		"the real one": {func(*appsv1.StatefulSet, *corev1.PodSpec) {}, ""},
		"of a port below 1024": {func(_ *appsv1.StatefulSet, p *corev1.PodSpec) {
			p.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}
		}, ""},
		"privileged": {func(_ *appsv1.StatefulSet, p *corev1.PodSpec) {
			p.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &yes}
		}, "no privileges"},
		"a privileged init container": {func(_ *appsv1.StatefulSet, p *corev1.PodSpec) {
			p.InitContainers[0].SecurityContext.Privileged, p.InitContainers[0].SecurityContext.AllowPrivilegeEscalation = &yes, nil
		}, "no privileges"},
		"a capability": {func(_ *appsv1.StatefulSet, p *corev1.PodSpec) {
			p.Containers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"SYS_ADMIN"}
		}, "no privileges"},
		"root":                {func(_ *appsv1.StatefulSet, p *corev1.PodSpec) { p.SecurityContext.RunAsUser = &root }, "not root"},
		"a root container":    {func(_ *appsv1.StatefulSet, p *corev1.PodSpec) { p.Containers[0].SecurityContext.RunAsUser = &root }, "not root"},
		"no security context": {func(_ *appsv1.StatefulSet, p *corev1.PodSpec) { p.Containers[0].SecurityContext = nil }, "no privileges"},
		"another sysctl": {func(_ *appsv1.StatefulSet, p *corev1.PodSpec) {
			p.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "kernel.shm_rmid_forced", Value: "0"}}
		}, "no privileges"},
		"the host's network":   {func(_ *appsv1.StatefulSet, p *corev1.PodSpec) { p.HostNetwork = true }, "of the host"},
		"the host's processes": {func(_ *appsv1.StatefulSet, p *corev1.PodSpec) { p.HostPID = true }, "of the host"},
		"a port of the host": {func(_ *appsv1.StatefulSet, p *corev1.PodSpec) {
			p.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80, Protocol: "TCP"}}
		}, "of the host"},
		"a folder of the host": {func(_ *appsv1.StatefulSet, p *corev1.PodSpec) {
			p.Volumes = append(p.Volumes, corev1.Volume{Name: "root", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}})
		}, "volumes of control planes"},
		"a token in a volume": {func(_ *appsv1.StatefulSet, p *corev1.PodSpec) {
			sources := []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}
			p.Volumes = append(p.Volumes, corev1.Volume{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}})
		}, "volumes of control planes"},
		"another's volume": {func(s *appsv1.StatefulSet, _ *corev1.PodSpec) {
			s.Spec.VolumeClaimTemplates[0].Spec.VolumeName = "root"
		}, "volumes of control planes"},
		"a token":           {func(_ *appsv1.StatefulSet, p *corev1.PodSpec) { p.AutomountServiceAccountToken = &yes }, "ServiceAccount's token"},
		"drover's account":  {func(_ *appsv1.StatefulSet, p *corev1.PodSpec) { p.ServiceAccountName = "drover" }, "ServiceAccount's token"},
		"another name":      {func(s *appsv1.StatefulSet, _ *corev1.PodSpec) { s.Name = "database" }, "labels of its own"},
		"labels of another": {func(s *appsv1.StatefulSet, _ *corev1.PodSpec) { s.Spec.Template.Labels["app"] = "database" }, "labels of its own"},
	} {
		s := found.DeepCopy()
		s.ObjectMeta = metav1.ObjectMeta{Name: "other-control-plane", Labels: map[string]string{manifests.ManagedBy: manifests.Drover, manifests.TenantLabel: "other"}}
		s.Spec.Template.Labels[manifests.TenantLabel], s.Spec.Selector.MatchLabels[manifests.TenantLabel] = "other", "other"
		tt.change(s, &s.Spec.Template.Spec)
		_, err := drover.Create(t.Context(), s, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
	// What another party made is not drover's to delete.
	found.ObjectMeta = metav1.ObjectMeta{Name: "database", Namespace: namespace}
	found.Spec.Replicas = new(int32(0))
	if _, err := f.people.AppsV1().StatefulSets(namespace).Create(t.Context(), found, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := drover.Delete(t.Context(), "database", metav1.DeleteOptions{}); err == nil || !strings.Contains(err.Error(), "StatefulSets of its own") {
		t.Errorf("drover deletes another's StatefulSet: %v", err)
	}
	if err := f.people.AppsV1().StatefulSets(namespace).Delete(t.Context(), "database", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// testRightsUsed checks by the API server's log that drover used each right that it has.
func (f *farm) testRightsUsed(t *testing.T) {
	used, err := f.admin.Used("system:serviceaccount:" + namespace + ":drover")
	if err != nil {
		t.Fatal(err)
	}
	used = slices.DeleteFunc(used, func(right string) bool { return strings.Contains(right, "/selfsubject") }) // anybody may, and tests do
	if want := granted(t, fixture.ReadFile(t, rbac), namespace); !slices.Equal(used, want) {
		t.Errorf("drover used\n%s\nand %s has\n%s", strings.Join(used, "\n"), rbac, strings.Join(want, "\n"))
	}
}

// testTenantRights asks the tenant's API server for all that drover may there.
func (f *farm) testTenantRights(t *testing.T) {
	drover, administrator := f.file(t, "tenant-a-kubeconfig"), f.file(t, "tenant-a-admin")
	client, other := kubernetes.NewForConfigOrDie(f.load(drover)), f.account(t, administrator, "kube-system")
	manifest := string(deploy.Manifest(deploy.Rights{Approve: true}))
	agents, err := f.admin.KubectlAs(t.Context(), administrator, nil, "get", "role", "drover-konnectivity", "-n", "kube-system", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{"kube-system", "kube-public", "kube-node-lease", approve.UsedNamespace, "default"} {
		if got, want := may(t, client, other, in), granted(t, manifest+"\n---\n"+agents, in); !slices.Equal(got, want) {
			t.Errorf("in the tenant's namespace %s drover may\n%s\nand its roles have\n%s", in, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	for _, call := range []string{
		"get secrets -A", "get secret x -n kube-system", "run x --image=x", "get daemonsets -n kube-system", "get daemonset kube-proxy -n kube-system", "delete daemonset konnectivity-agent -n kube-system",
		"create token konnectivity-agent -n kube-system", "create serviceaccount x", "get configmap kubeadm-config -n kube-system", "get clusterroles", "get nodes --as=x --as-group=system:masters",
		"create clusterrolebinding x --clusterrole=cluster-admin --user=x", "create namespace x", "get --raw /api/v1/nodes/x/proxy/pods",
	} {
		out, err := f.admin.KubectlAs(t.Context(), drover, nil, strings.Fields(call)...)
		if err == nil || !strings.Contains(err.Error(), "orbidden") {
			t.Errorf("%s: %q, %v; want Forbidden", call, out, err)
		}
	}
}

// testKeysStay checks that a tenant's administrator, who sees everything in the tenant, sees
// no key of the admin cluster there, and that no credential of the tenant is one of the admin
// cluster.
func (f *farm) testKeysStay(t *testing.T) {
	administrator := f.file(t, "tenant-a-admin")
	kinds, err := f.admin.KubectlAs(t.Context(), administrator, nil, "api-resources", "--verbs=list", "-o", "name")
	if err != nil {
		t.Fatal(err)
	}
	all, err := f.admin.KubectlAs(t.Context(), administrator, nil, "get", strings.Join(strings.Fields(kinds), ","), "-A", "-o", "json")
	if err != nil || len(all) < 10000 {
		t.Fatalf("%v: %s", err, all)
	}
	secrets, err := f.people.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, s := range secrets.Items {
		for key, value := range s.Data {
			if strings.HasSuffix(key, ".crt") || strings.HasSuffix(key, ".pub") {
				continue // public
			}
			found++
			// As it is, in JSON, in base64, and the lines of PEM alone.
			for _, form := range append(strings.Split(string(value), "\n"), base64.StdEncoding.EncodeToString(value)) {
				if len(form) > 40 && !strings.HasPrefix(form, "-----") && strings.Contains(all, form) {
					t.Errorf("the tenant has %s of the Secret %s", key, s.Name)
				}
			}
		}
	}
	if found < 12 {
		t.Errorf("only %d keys in the admin cluster", found)
	}
	for _, account := range []string{"drover", "konnectivity-agent"} {
		file := t.TempDir() + "/tenant.conf"
		if err := f.admin.WriteKubeconfig(file, f.token(t, administrator, account, "-n", "kube-system")); err != nil {
			t.Fatal(err)
		}
		for _, call := range []string{"get secrets -n farm", "get tenants.drover.dev -n farm", "get --raw /api"} {
			if out, err := f.admin.KubectlAs(t.Context(), file, nil, strings.Fields(call)...); err == nil || !strings.Contains(err.Error(), "Unauthorized") && !strings.Contains(err.Error(), "logged in") {
				t.Errorf("a token of the tenant's %s in the admin cluster, %s: %q, %v; want Unauthorized", account, call, out, err)
			}
		}
	}
}

// account returns a client that is the account "default" of a namespace: it has the rights
// that all accounts have.
func (f *farm) account(t *testing.T, kubeconfig, in string) kubernetes.Interface {
	t.Helper()
	conf := f.load(kubeconfig)
	conf.CertData, conf.KeyData, conf.CertFile, conf.KeyFile = nil, nil, "", ""
	conf.BearerToken = f.token(t, kubeconfig, "default", "-n", in)
	return kubernetes.NewForConfigOrDie(conf)
}

// may returns the rights of a user in a namespace that another one does not have.
func may(t *testing.T, user, other kubernetes.Interface, in string) []string {
	t.Helper()
	all := func(client kubernetes.Interface) []string {
		review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: in}}
		answer, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil || answer.Status.EvaluationError != "" && !strings.Contains(answer.Status.EvaluationError, "node") {
			t.Fatalf("%+v, %v", answer, err)
		}
		var rules []rbacv1.PolicyRule
		for _, r := range answer.Status.ResourceRules {
			rules = append(rules, rbacv1.PolicyRule{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames})
		}
		return controlplane.Rights(rules)
	}
	others := all(other)
	return slices.DeleteFunc(all(user), func(right string) bool { return slices.Contains(others, right) })
}

// granted returns the rights that the roles of a manifest give to drover in a namespace.
func granted(t *testing.T, manifest, in string) []string {
	t.Helper()
	objects, err := apply.Objects([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	var rules []rbacv1.PolicyRule
	for _, o := range objects {
		if o.GetName() == "drover-join" || o.GetKind() != "ClusterRole" && (o.GetKind() != "Role" || o.GetNamespace() != in) {
			continue // that one is of nodes
		}
		var role rbacv1.Role // a ClusterRole has its fields too
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatal(err)
		}
		rules = append(rules, role.Rules...)
	}
	return controlplane.Rights(rules)
}
