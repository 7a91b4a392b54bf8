package client_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"drover/kube/client"
)

// sent is a request, as an API server sees it.
type sent struct {
	Method, URL, Body string
	Header            http.Header
}

// resource is what both clients can do with a kind.
type resource[T, L any] interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	Create(ctx context.Context, o T, opts metav1.CreateOptions) (T, error)
	Update(ctx context.Context, o T, opts metav1.UpdateOptions) (T, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
}

// all does every request for a kind. o has the name n.
func all[T, L any](ctx context.Context, r resource[T, L], o T) {
	list := metav1.ListOptions{LabelSelector: "a=b", FieldSelector: "metadata.name=n", Limit: 100, Continue: "c", ResourceVersion: "7"}
	uid := types.UID("u")
	_, _ = r.Get(ctx, "n", metav1.GetOptions{ResourceVersion: "0"})
	_, _ = r.List(ctx, list)
	if w, err := r.Watch(ctx, list); err == nil {
		w.Stop()
	}
	_, _ = r.Create(ctx, o, metav1.CreateOptions{FieldManager: "m", DryRun: []string{metav1.DryRunAll}})
	_, _ = r.Update(ctx, o, metav1.UpdateOptions{FieldManager: "m"})
	_ = r.Delete(ctx, "n", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	_, _ = r.Patch(ctx, "n", types.MergePatchType, []byte(`{"a":1}`), metav1.PatchOptions{FieldManager: "m"}, "status")
}

var (
	meta     = metav1.ObjectMeta{Name: "n"}
	node     = &corev1.Node{ObjectMeta: meta, Spec: corev1.NodeSpec{PodCIDR: "10.0.0.0/24"}}
	request  = &certificatesv1.CertificateSigningRequest{ObjectMeta: meta}
	tokens   = &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"a"}}}
	eviction = &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "n", Namespace: "ns"}}
	review   = &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get"}}}
)

// ours does with the client what theirs does with client-go's Clientset.
func ours(ctx context.Context, c client.Interface) {
	all(ctx, c.CoreV1().Nodes(), node)
	all(ctx, c.CoreV1().Namespaces(), with[corev1.Namespace]())
	all(ctx, c.CoreV1().Pods("ns"), with[corev1.Pod]())
	all(ctx, c.CoreV1().Pods(""), with[corev1.Pod]())
	all(ctx, c.CoreV1().Secrets("ns"), with[corev1.Secret]())
	all(ctx, c.CoreV1().ConfigMaps("ns"), with[corev1.ConfigMap]())
	all(ctx, c.CoreV1().Services("ns"), with[corev1.Service]())
	all(ctx, c.CoreV1().ServiceAccounts("ns"), with[corev1.ServiceAccount]())
	all(ctx, c.CoreV1().Events("ns"), with[corev1.Event]())
	all(ctx, c.CoreV1().PersistentVolumeClaims("ns"), with[corev1.PersistentVolumeClaim]())
	others(ctx, c.AppsV1().StatefulSets("ns"), c.AppsV1().DaemonSets("ns"), c.CoordinationV1().Leases("ns"), c.DiscoveryV1().EndpointSlices("ns"))
	admission(ctx, c.RbacV1().ClusterRoleBindings(), c.AdmissionregistrationV1().ValidatingAdmissionPolicies(), c.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings())
	all(ctx, c.CertificatesV1().CertificateSigningRequests(), request)
	_, _ = c.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, "n", request, metav1.UpdateOptions{FieldManager: "m"})
	_, _ = c.CoreV1().ServiceAccounts("ns").CreateToken(ctx, "n", tokens, metav1.CreateOptions{FieldManager: "m"})
	_, _ = c.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	_ = c.CoreV1().Pods("ns").EvictV1(ctx, eviction)
	_, _ = c.ServerVersion(ctx)
}

func theirs(ctx context.Context, c kubernetes.Interface) {
	all(ctx, c.CoreV1().Nodes(), node)
	all(ctx, c.CoreV1().Namespaces(), with[corev1.Namespace]())
	all(ctx, c.CoreV1().Pods("ns"), with[corev1.Pod]())
	all(ctx, c.CoreV1().Pods(""), with[corev1.Pod]())
	all(ctx, c.CoreV1().Secrets("ns"), with[corev1.Secret]())
	all(ctx, c.CoreV1().ConfigMaps("ns"), with[corev1.ConfigMap]())
	all(ctx, c.CoreV1().Services("ns"), with[corev1.Service]())
	all(ctx, c.CoreV1().ServiceAccounts("ns"), with[corev1.ServiceAccount]())
	all(ctx, c.CoreV1().Events("ns"), with[corev1.Event]())
	all(ctx, c.CoreV1().PersistentVolumeClaims("ns"), with[corev1.PersistentVolumeClaim]())
	others(ctx, c.AppsV1().StatefulSets("ns"), c.AppsV1().DaemonSets("ns"), c.CoordinationV1().Leases("ns"), c.DiscoveryV1().EndpointSlices("ns"))
	admission(ctx, c.RbacV1().ClusterRoleBindings(), c.AdmissionregistrationV1().ValidatingAdmissionPolicies(), c.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings())
	all(ctx, c.CertificatesV1().CertificateSigningRequests(), request)
	_, _ = c.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, "n", request, metav1.UpdateOptions{FieldManager: "m"})
	_, _ = c.CoreV1().ServiceAccounts("ns").CreateToken(ctx, "n", tokens, metav1.CreateOptions{FieldManager: "m"})
	_, _ = c.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	_ = c.CoreV1().Pods("ns").EvictV1(ctx, eviction)
	_, _ = c.Discovery().ServerVersion()
}

func others[A, AL, B, BL, C, CL, D, DL any](ctx context.Context, a resource[*A, AL], b resource[*B, BL], c resource[*C, CL], d resource[*D, DL]) {
	all(ctx, a, with[A]())
	all(ctx, b, with[B]())
	all(ctx, c, with[C]())
	all(ctx, d, with[D]())
}

func admission[A, AL, B, BL, C, CL any](ctx context.Context, a resource[*A, AL], b resource[*B, BL], c resource[*C, CL]) {
	all(ctx, a, with[A]())
	all(ctx, b, with[B]())
	all(ctx, c, with[C]())
}

// with returns an object with the name n, of a type that is known only when it runs.
func with[S any]() *S {
	o := new(S)
	any(o).(metav1.Object).SetName("n")
	return o
}

// TestWire: an API server gets from the client what it gets from client-go's Clientset.
func TestWire(t *testing.T) {
	var got []sent
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		header := maps.Clone(r.Header)
		header.Del("Content-Length")
		got = append(got, sent{r.Method, r.URL.String(), string(body), header})
		http.Error(w, "no", http.StatusTeapot)
	}))
	defer s.Close()
	conf := &rest.Config{Host: s.URL, BearerToken: "t", UserAgent: "drover", QPS: 1000, Burst: 1000,
		ContentConfig: rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"}}

	c, err := client.New(conf)
	if err != nil {
		t.Fatal(err)
	}
	ours(t.Context(), c)
	mine := got
	got = nil
	theirs(t.Context(), kubernetes.NewForConfigOrDie(conf))
	if len(mine) != len(got) || len(got) < 100 {
		t.Fatalf("%d requests, and %d with client-go", len(mine), len(got))
	}
	for i := range mine {
		if mine[i].URL == "/version" { // with a time limit of its own; the transport has one
			got[i].URL = "/version"
		}
		if !reflect.DeepEqual(mine[i], got[i]) {
			t.Errorf("got  %+v\nwant %+v", mine[i], got[i])
		}
	}
}
