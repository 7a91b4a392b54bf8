package client

import (
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// kinds are the types of objects, and what encodes and decodes them.
type kinds struct {
	scheme     *runtime.Scheme
	codecs     serializer.CodecFactory
	parameters runtime.ParameterCodec
}

// known returns the kinds that drover sends or reads. It makes them once: they do not
// change, and each of some hundred tenants has a client.
var known = sync.OnceValue(func() kinds {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	for _, group := range []struct {
		version schema.GroupVersion
		types   []runtime.Object
	}{
		{admissionregistrationv1.SchemeGroupVersion, []runtime.Object{
			&admissionregistrationv1.ValidatingAdmissionPolicy{}, &admissionregistrationv1.ValidatingAdmissionPolicyList{},
			&admissionregistrationv1.ValidatingAdmissionPolicyBinding{}, &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{},
		}},
		{appsv1.SchemeGroupVersion, []runtime.Object{
			&appsv1.DaemonSet{}, &appsv1.DaemonSetList{}, &appsv1.StatefulSet{}, &appsv1.StatefulSetList{},
		}},
		{authenticationv1.SchemeGroupVersion, []runtime.Object{&authenticationv1.TokenRequest{}}},
		{authorizationv1.SchemeGroupVersion, []runtime.Object{&authorizationv1.SelfSubjectAccessReview{}}},
		{certificatesv1.SchemeGroupVersion, []runtime.Object{&certificatesv1.CertificateSigningRequest{}, &certificatesv1.CertificateSigningRequestList{}}},
		{coordinationv1.SchemeGroupVersion, []runtime.Object{&coordinationv1.Lease{}, &coordinationv1.LeaseList{}}},
		{corev1.SchemeGroupVersion, []runtime.Object{
			&corev1.ConfigMap{}, &corev1.ConfigMapList{}, &corev1.Event{}, &corev1.EventList{},
			&corev1.Namespace{}, &corev1.NamespaceList{}, &corev1.Node{}, &corev1.NodeList{},
			&corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaimList{}, &corev1.Pod{}, &corev1.PodList{},
			&corev1.Secret{}, &corev1.SecretList{}, &corev1.Service{}, &corev1.ServiceList{},
			&corev1.ServiceAccount{}, &corev1.ServiceAccountList{},
		}},
		{discoveryv1.SchemeGroupVersion, []runtime.Object{&discoveryv1.EndpointSlice{}, &discoveryv1.EndpointSliceList{}}},
		{policyv1.SchemeGroupVersion, []runtime.Object{&policyv1.Eviction{}}},
		{rbacv1.SchemeGroupVersion, []runtime.Object{&rbacv1.ClusterRoleBinding{}, &rbacv1.ClusterRoleBindingList{}}},
	} {
		s.AddKnownTypes(group.version, group.types...)
		metav1.AddToGroupVersion(s, group.version) // options, Status and WatchEvent
	}
	return kinds{s, serializer.NewCodecFactory(s), runtime.NewParameterCodec(s)}
})
