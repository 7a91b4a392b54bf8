package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/pools/kube/cluster"
)

const certificates = "certificates.k8s.io" // API group

// Objects of deploy/rbac.yaml that show that it is applied as of this version.
const (
	requestsPolicy = "drover-only-its-requests"
	renewalBinding = "drover-node-renewal"
)

// approver checks what the approval of certificates depends on.
func (i *inspection) approver(ctx context.Context) {
	if !i.Approves() {
		i.note("approver", "the cluster's own, as the config says: a join token is good for any node name", nil)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	i.note("policy of certificates", "drover can approve only what nodes ask for by its tokens", i.requestsPolicy(ctx))

	_, err := i.client.RbacV1().ClusterRoleBindings().Get(ctx, renewalBinding, metav1.GetOptions{})
	i.note("renewal", "the cluster's own approver renews the certificates of nodes that run", i.prepared("see ClusterRoleBinding "+renewalBinding, err))
}

func (i *inspection) requestsPolicy(ctx context.Context) error {
	policies := i.client.AdmissionregistrationV1()
	_, err := policies.ValidatingAdmissionPolicies().Get(ctx, requestsPolicy, metav1.GetOptions{})
	if err != nil {
		return i.prepared("see ValidatingAdmissionPolicy "+requestsPolicy, err)
	}
	binding, err := policies.ValidatingAdmissionPolicyBindings().Get(ctx, requestsPolicy, metav1.GetOptions{})
	if err != nil {
		return i.prepared("see ValidatingAdmissionPolicyBinding "+requestsPolicy, err)
	}
	if !slices.Contains(binding.Spec.ValidationActions, admissionv1.Deny) || binding.Spec.PolicyName != requestsPolicy {
		return errors.New("the binding of " + requestsPolicy + " denies nothing; apply deploy/rbac.yaml (drover cluster prepare)")
	}
	return nil
}

// prepared adds the remedy to the error of reading an object of deploy/rbac.yaml.
func (i *inspection) prepared(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return fmt.Errorf("%s: deploy/rbac.yaml is not applied as of this version (drover cluster prepare): %w", doing, err)
	}
	return i.Wrap(doing, err)
}
