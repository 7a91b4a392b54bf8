package client

import (
	"context"

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
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
)

// object is a pointer to a Kubernetes object of type S.
type object[S any] interface {
	*S
	runtime.Object
	metav1.Object
}

// list is a pointer to a list of type S.
type list[S any] interface {
	*S
	runtime.Object
}

// resource returns the client of one kind; an empty namespace means all namespaces, or
// that the kind has none.
func resource[S, LS any, T object[S], L list[LS]](c rest.Interface, name, namespace string) *gentype.ClientWithList[T, L] {
	return gentype.NewClientWithList(name, c, known().parameters, namespace, func() T { return new(S) }, func() L { return new(LS) })
}

type (
	// Leases is the client of Leases, for those that are passed one.
	Leases = *gentype.ClientWithList[*coordinationv1.Lease, *coordinationv1.LeaseList]
	// Secrets is the client of Secrets.
	Secrets = *gentype.ClientWithList[*corev1.Secret, *corev1.SecretList]
)

// CoreV1 has the kinds of the core group.
type CoreV1 struct{ rest rest.Interface }

// ConfigMaps returns the client of ConfigMaps.
func (c CoreV1) ConfigMaps(namespace string) *gentype.ClientWithList[*corev1.ConfigMap, *corev1.ConfigMapList] {
	return resource[corev1.ConfigMap, corev1.ConfigMapList](c.rest, "configmaps", namespace)
}

// Events returns the client of Events.
func (c CoreV1) Events(namespace string) *gentype.ClientWithList[*corev1.Event, *corev1.EventList] {
	return resource[corev1.Event, corev1.EventList](c.rest, "events", namespace)
}

// Namespaces returns the client of Namespaces.
func (c CoreV1) Namespaces() *gentype.ClientWithList[*corev1.Namespace, *corev1.NamespaceList] {
	return resource[corev1.Namespace, corev1.NamespaceList](c.rest, "namespaces", "")
}

// Nodes returns the client of Nodes.
func (c CoreV1) Nodes() *gentype.ClientWithList[*corev1.Node, *corev1.NodeList] {
	return resource[corev1.Node, corev1.NodeList](c.rest, "nodes", "")
}

// PersistentVolumeClaims returns the client of PersistentVolumeClaims.
func (c CoreV1) PersistentVolumeClaims(namespace string) *gentype.ClientWithList[*corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaimList] {
	return resource[corev1.PersistentVolumeClaim, corev1.PersistentVolumeClaimList](c.rest, "persistentvolumeclaims", namespace)
}

// Secrets returns the client of Secrets.
func (c CoreV1) Secrets(namespace string) Secrets {
	return resource[corev1.Secret, corev1.SecretList](c.rest, "secrets", namespace)
}

// Services returns the client of Services.
func (c CoreV1) Services(namespace string) *gentype.ClientWithList[*corev1.Service, *corev1.ServiceList] {
	return resource[corev1.Service, corev1.ServiceList](c.rest, "services", namespace)
}

// Pods is the client of Pods.
type Pods struct {
	*gentype.ClientWithList[*corev1.Pod, *corev1.PodList]
}

// Pods returns the client of Pods.
func (c CoreV1) Pods(namespace string) Pods {
	return Pods{resource[corev1.Pod, corev1.PodList](c.rest, "pods", namespace)}
}

// EvictV1 asks for the end of a pod, which its PodDisruptionBudget can refuse.
func (p Pods) EvictV1(ctx context.Context, e *policyv1.Eviction) error {
	return p.GetClient().Post().Namespace(p.GetNamespace()).Resource("pods").Name(e.Name).SubResource("eviction").Body(e).Do(ctx).Error()
}

// ServiceAccounts is the client of ServiceAccounts.
type ServiceAccounts struct {
	*gentype.ClientWithList[*corev1.ServiceAccount, *corev1.ServiceAccountList]
}

// ServiceAccounts returns the client of ServiceAccounts.
func (c CoreV1) ServiceAccounts(namespace string) ServiceAccounts {
	return ServiceAccounts{resource[corev1.ServiceAccount, corev1.ServiceAccountList](c.rest, "serviceaccounts", namespace)}
}

// CreateToken asks for a token of a ServiceAccount.
func (a ServiceAccounts) CreateToken(ctx context.Context, name string, request *authenticationv1.TokenRequest, opts metav1.CreateOptions) (*authenticationv1.TokenRequest, error) {
	made := new(authenticationv1.TokenRequest)
	err := a.GetClient().Post().Namespace(a.GetNamespace()).Resource("serviceaccounts").Name(name).SubResource("token").
		VersionedParams(&opts, known().parameters).Body(request).Do(ctx).Into(made)
	return made, err
}

// AppsV1 has the kinds of the group apps.
type AppsV1 struct{ rest rest.Interface }

// DaemonSets returns the client of DaemonSets.
func (c AppsV1) DaemonSets(namespace string) *gentype.ClientWithList[*appsv1.DaemonSet, *appsv1.DaemonSetList] {
	return resource[appsv1.DaemonSet, appsv1.DaemonSetList](c.rest, "daemonsets", namespace)
}

// StatefulSets returns the client of StatefulSets.
func (c AppsV1) StatefulSets(namespace string) *gentype.ClientWithList[*appsv1.StatefulSet, *appsv1.StatefulSetList] {
	return resource[appsv1.StatefulSet, appsv1.StatefulSetList](c.rest, "statefulsets", namespace)
}

// CoordinationV1 has the kinds of the group coordination.k8s.io.
type CoordinationV1 struct{ rest rest.Interface }

// Leases returns the client of Leases.
func (c CoordinationV1) Leases(namespace string) Leases {
	return resource[coordinationv1.Lease, coordinationv1.LeaseList](c.rest, "leases", namespace)
}

// CertificatesV1 has the kinds of the group certificates.k8s.io.
type CertificatesV1 struct{ rest rest.Interface }

// CertificateSigningRequests is the client of CertificateSigningRequests.
type CertificateSigningRequests struct {
	*gentype.ClientWithList[*certificatesv1.CertificateSigningRequest, *certificatesv1.CertificateSigningRequestList]
}

// CertificateSigningRequests returns the client of CertificateSigningRequests.
func (c CertificatesV1) CertificateSigningRequests() CertificateSigningRequests {
	return CertificateSigningRequests{resource[certificatesv1.CertificateSigningRequest, certificatesv1.CertificateSigningRequestList](c.rest, "certificatesigningrequests", "")}
}

// UpdateApproval writes the conditions of a request: its approval or denial.
func (c CertificateSigningRequests) UpdateApproval(ctx context.Context, name string, r *certificatesv1.CertificateSigningRequest, opts metav1.UpdateOptions) (*certificatesv1.CertificateSigningRequest, error) {
	updated := new(certificatesv1.CertificateSigningRequest)
	err := c.GetClient().Put().Resource("certificatesigningrequests").Name(name).SubResource("approval").
		VersionedParams(&opts, known().parameters).Body(r).Do(ctx).Into(updated)
	return updated, err
}

// DiscoveryV1 has the kinds of the group discovery.k8s.io.
type DiscoveryV1 struct{ rest rest.Interface }

// EndpointSlices returns the client of EndpointSlices.
func (c DiscoveryV1) EndpointSlices(namespace string) *gentype.ClientWithList[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList] {
	return resource[discoveryv1.EndpointSlice, discoveryv1.EndpointSliceList](c.rest, "endpointslices", namespace)
}

// RbacV1 has the kinds of the group rbac.authorization.k8s.io.
type RbacV1 struct{ rest rest.Interface }

// ClusterRoleBindings returns the client of ClusterRoleBindings.
func (c RbacV1) ClusterRoleBindings() *gentype.ClientWithList[*rbacv1.ClusterRoleBinding, *rbacv1.ClusterRoleBindingList] {
	return resource[rbacv1.ClusterRoleBinding, rbacv1.ClusterRoleBindingList](c.rest, "clusterrolebindings", "")
}

// AuthorizationV1 has the kinds of the group authorization.k8s.io.
type AuthorizationV1 struct{ rest rest.Interface }

// SelfSubjectAccessReviews returns the client of SelfSubjectAccessReviews, which can only be
// created.
func (c AuthorizationV1) SelfSubjectAccessReviews() *gentype.Client[*authorizationv1.SelfSubjectAccessReview] {
	return gentype.NewClient("selfsubjectaccessreviews", c.rest, known().parameters, "", func() *authorizationv1.SelfSubjectAccessReview {
		return new(authorizationv1.SelfSubjectAccessReview)
	})
}

// AdmissionregistrationV1 has the kinds of the group admissionregistration.k8s.io.
type AdmissionregistrationV1 struct{ rest rest.Interface }

// ValidatingAdmissionPolicies returns the client of ValidatingAdmissionPolicies.
func (c AdmissionregistrationV1) ValidatingAdmissionPolicies() *gentype.ClientWithList[*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyList] {
	return resource[admissionregistrationv1.ValidatingAdmissionPolicy, admissionregistrationv1.ValidatingAdmissionPolicyList](c.rest, "validatingadmissionpolicies", "")
}

// ValidatingAdmissionPolicyBindings returns the client of ValidatingAdmissionPolicyBindings.
func (c AdmissionregistrationV1) ValidatingAdmissionPolicyBindings() *gentype.ClientWithList[*admissionregistrationv1.ValidatingAdmissionPolicyBinding, *admissionregistrationv1.ValidatingAdmissionPolicyBindingList] {
	return resource[admissionregistrationv1.ValidatingAdmissionPolicyBinding, admissionregistrationv1.ValidatingAdmissionPolicyBindingList](c.rest, "validatingadmissionpolicybindings", "")
}
