package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"drover/kube/client"
	"drover/kube/cluster"
	"drover/kube/token"
)

// caFile is the file on a node that kubeadm join writes the cluster's CA to.
const caFile = "/etc/kubernetes/pki/ca.crt"

// joinRights are the rights that kubeadm join uses with its token.
var joinRights = []right{
	{"get", "", "nodes", "", ""},
	{"get", "", "configmaps", metav1.NamespaceSystem, "kubeadm-config"},
	{"get", "", "configmaps", metav1.NamespaceSystem, "kubelet-config"},
	{"create", certificates, "certificatesigningrequests", "", ""},
}

// autoApproval is the right that makes the cluster's own approver approve a client's
// request for a node's certificate. A token with it can become any node of the cluster.
var autoApproval = right{"create", certificates, "certificatesigningrequests/nodeclient", "", ""}

// nodeClient returns the client that a node makes from its token and cluster-info. It
// takes the address and the CAs from there and nothing else: a kubeconfig of a tenant
// can name files of this host, whose content would go to the tenant's server.
func (i *inspection) nodeClient(info *cluster.Info, tok token.Token) (client.Interface, error) {
	conf := &rest.Config{Host: "https://" + info.Endpoint, BearerToken: tok.Full(), TLSClientConfig: rest.TLSClientConfig{CAData: info.CA}}
	i.Limit(conf)
	return client.New(conf)
}

func (i *inspection) nodeRights(ctx context.Context, node client.Interface) {
	all, remedy := joinRights, "drover cluster prepare gives that"
	group := token.JoinGroup
	if !i.Approves() {
		all, group = append(slices.Clone(joinRights), autoApproval), token.KubeadmGroup
		remedy = "\"kubeadm init phase bootstrap-token\" and \"kubeadm init phase upload-config all\" give that"
	}
	missing, err := i.check(ctx, node, all, false)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("the group %s may not: %s; %s", group, strings.Join(missing, ", "), remedy)
	}
	i.note("rights of a joining node", "all that kubeadm join needs", err)
	if !i.Approves() {
		return
	}
	more, err := i.check(ctx, node, []right{autoApproval}, true)
	if err == nil && len(more) > 0 {
		err = errors.New("the cluster's own approver signs whatever the holder of a join token asks for, before drover can say no: " +
			"a group that every token is in (system:bootstrappers, system:authenticated) is bound to the ClusterRole system:certificates.k8s.io:certificatesigningrequests:nodeclient; remove that binding")
	}
	i.note("join tokens", "good for the node that drover mints them for, and no other", err)
}

// kubeletConfig reads the config that kubeadm join gives each kubelet of the cluster.
func (i *inspection) kubeletConfig(ctx context.Context, node client.Interface) {
	var config struct{ KubernetesVersion string }
	err := i.configMap(ctx, node, "kubeadm-config", "ClusterConfiguration", &config)
	i.note("kubeadm-config", "of Kubernetes "+config.KubernetesVersion, err)

	var kubelet struct {
		CgroupDriver   string
		Authentication struct{ X509 struct{ ClientCAFile string } }
	}
	err = i.configMap(ctx, node, "kubelet-config", "kubelet", &kubelet)
	ca := kubelet.Authentication.X509.ClientCAFile
	switch {
	case err != nil:
	case ca != caFile:
		err = fmt.Errorf("its authentication.x509.clientCAFile is %q: kubeadm puts the CA into %s on nodes, and a kubelet ends without it", ca, caFile)
	case kubelet.CgroupDriver != "" && kubelet.CgroupDriver != "systemd":
		err = fmt.Errorf("its cgroupDriver is %q: nodes run systemd", kubelet.CgroupDriver)
	}
	i.note("kubelet-config", "fit for a netbooted node", err)
}

func (i *inspection) configMap(ctx context.Context, node client.Interface, name, key string, into any) error {
	m, err := node.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return fmt.Errorf("a joining node cannot read it; \"kubeadm init phase upload-config all\" makes it, and the right to: %w", err)
	case err != nil:
		return i.Wrap("read it as a node would", err)
	}
	text, ok := m.Data[key]
	if !ok || len(text) > cluster.MaxInfo || cluster.Anchored(text) {
		return fmt.Errorf("it has no %q, or a huge one, or one with YAML anchors: \"kubeadm init phase upload-config all\" makes it", key)
	}
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		return errors.New("its " + key + " is not YAML")
	}
	return nil
}

const certificates = "certificates.k8s.io" // API group

// Objects of deploy/rbac.yaml whose presence shows that this version of it is applied.
const (
	requestsPolicy = "drover-only-its-requests"
	renewalBinding = "drover-node-renewal"
)

// approver checks the requirements of the approval of certificates.
func (i *inspection) approver(ctx context.Context) {
	if !i.Approves() {
		i.note("approver", "the cluster's own, as the config says: a join token is good for any node name", nil)
		return
	}
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
