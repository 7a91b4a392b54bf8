package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"

	"drover/internal/printable"
	"drover/internal/wait"
	"drover/kube/approve"
	"drover/kube/client"
	"drover/kube/externalhost"
	"drover/kube/node"
	"drover/kube/token"
)

// Finding is the result of one check of a cluster.
type Finding struct {
	What   string `json:"what"` // the subject: "API server"
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`           // the result, or the fault and its remedy
	Advice bool   `json:"advice,omitempty"` // nothing is wrong, and the detail says what would be better
}

const (
	shortTTL       = 3 * time.Second
	cleanerTimeout = 12 * time.Second // a token with shortTTL must be deleted by then, by the tokencleaner's clock

	signTimeout = 10 * time.Second // of minting a token and its signature
	timeout     = 2 * time.Minute  // of all checks

	maxDetail = 1000 // bytes of a finding: clusters send any text
)

// inspection is the inspection of one cluster.
type inspection struct {
	token.Minter
	client client.Interface
	found  []Finding
}

// note adds a finding, and reports whether it is good.
func (i *inspection) note(what, detail string, err error) bool {
	if err != nil {
		detail = strings.TrimPrefix(err.Error(), fmt.Sprintf("cluster %q: ", i.Conf.Name))
	}
	i.found = append(i.found, Finding{What: what, OK: err == nil, Detail: printable.Line(detail, maxDetail)})
	return err == nil
}

// Cluster checks the cluster of m for everything that a join needs, as drover and as a
// node, and whether Nodes have the names of nodes, which are to join it. It mints two tokens and
// deletes them again. It joins no node. It takes about 12 seconds.
func Cluster(ctx context.Context, m token.Minter, nodes []string) []Finding {
	const node = "none (drover cluster check)"
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	i := &inspection{Minter: m}
	i.AwaitSecret(ctx)
	if !i.reach(ctx) {
		return i.found
	}
	i.rights(ctx)
	i.credentials(ctx)
	i.policies(ctx)
	i.names(ctx, nodes)
	i.approver(ctx)
	i.konnectivity(ctx)
	i.services(ctx)
	start := time.Now()
	short, shortErr := i.Mint(ctx, node, shortTTL)
	if i.joinToken(ctx, node) {
		_ = wait.Sleep(ctx, time.Until(start.Add(cleanerTimeout)))
		i.cleaner(ctx, short, shortErr)
	}
	return i.found
}

// reach reports whether the API server answers.
func (i *inspection) reach(ctx context.Context) bool {
	const what = "API server"
	i.client = i.Client()
	v, err := i.client.ServerVersion(ctx)
	if err != nil {
		return i.note(what, "", i.Wrap("ask for its version", err))
	}
	return i.note(what, v.GitVersion+": "+skew(v), nil)
}

// skew describes the versions of kubelets that may join: not newer than the API server
// and, from 1.28 on, at most three minor versions older.
func skew(v *version.Info) string {
	var minor int
	if _, err := fmt.Sscanf(v.Minor, "%d", &minor); err != nil {
		return "an image's kubelet must not be newer"
	}
	return fmt.Sprintf("kubelets and kubeadm of %s.%d to %s.%d can join", v.Major, max(minor-3, 0), v.Major, minor)
}

// right is a request that RBAC can allow.
type right struct{ verb, group, resource, namespace, name string }

func (r right) String() string {
	s := r.verb + " " + r.resource
	if r.name != "" {
		s += "/" + r.name
	}
	if r.namespace != "" {
		s += " in " + r.namespace
	}
	return s
}

// The rights that deploy/rbac.yaml gives, and some that drover must not have.
var (
	needed = []right{
		{"create", "", "secrets", metav1.NamespaceSystem, ""}, {"delete", "", "secrets", metav1.NamespaceSystem, ""},
		{"get", "", "configmaps", metav1.NamespacePublic, "cluster-info"},
		{"get", "", "nodes", "", ""}, {"list", "", "nodes", "", ""}, {"watch", "", "nodes", "", ""},
		{"patch", "", "nodes", "", ""}, {"delete", "", "nodes", "", ""},
		{"get", "coordination.k8s.io", "leases", corev1.NamespaceNodeLease, ""},
		{"list", "", "pods", "", ""}, {"create", "", "pods/eviction", "", ""},
	}
	neededToApprove = []right{
		{"get", certificates, "certificatesigningrequests", "", ""}, {"list", certificates, "certificatesigningrequests", "", ""},
		{"watch", certificates, "certificatesigningrequests", "", ""}, {"update", certificates, "certificatesigningrequests/approval", "", ""},
		{"approve", certificates, "signers", "", certificatesv1.KubeAPIServerClientKubeletSignerName},
		{"create", "coordination.k8s.io", "leases", approve.UsedNamespace, ""}, {"get", "coordination.k8s.io", "leases", approve.UsedNamespace, ""},
		{"list", "coordination.k8s.io", "leases", approve.UsedNamespace, ""}, {"delete", "coordination.k8s.io", "leases", approve.UsedNamespace, ""},
	}
	// neededForHosts are excess without hosts outside the cluster.
	neededForHosts = []right{
		{"create", "", "nodes", "", ""}, {"patch", "", "nodes/status", "", ""},
		{"create", "coordination.k8s.io", "leases", corev1.NamespaceNodeLease, ""}, {"patch", "coordination.k8s.io", "leases", corev1.NamespaceNodeLease, ""},
		{"create", "", "serviceaccounts", externalhost.Namespace, ""}, {"create", "", "serviceaccounts/token", externalhost.Namespace, ""},
		{"list", "", "services", "", ""}, {"list", "discovery.k8s.io", "endpointslices", "", ""},
	}
	neededForServing = right{"approve", certificates, "signers", "", certificatesv1.KubeletServingSignerName}
	excess           = []right{
		{"get", "", "secrets", metav1.NamespaceSystem, ""}, {"list", "", "secrets", metav1.NamespaceSystem, ""},
		{"update", "", "secrets", metav1.NamespaceSystem, ""}, {"create", "", "secrets", metav1.NamespaceDefault, ""},
		{"create", "", "serviceaccounts/token", metav1.NamespaceSystem, "default"},
		{"update", "", "nodes", "", ""}, {"deletecollection", "", "nodes", "", ""},
		{"get", "", "pods", "", ""}, {"delete", "", "pods", "", ""}, {"create", "", "pods", metav1.NamespaceDefault, ""},
		{"update", "coordination.k8s.io", "leases", approve.UsedNamespace, ""}, {"patch", "coordination.k8s.io", "leases", approve.UsedNamespace, ""},
		{"create", "rbac.authorization.k8s.io", "clusterrolebindings", "", ""},
		{"delete", "admissionregistration.k8s.io", "validatingadmissionpolicies", "", ""},
		{"create", certificates, "certificatesigningrequests", "", ""}, {"update", certificates, "certificatesigningrequests/status", "", ""},
		{"approve", certificates, "signers", "", certificatesv1.KubeAPIServerClientSignerName},
		{"sign", certificates, "signers", "", certificatesv1.KubeAPIServerClientKubeletSignerName},
		{"impersonate", "", "users", "", ""}, {"*", "*", "*", "", ""},
	}
)

func (i *inspection) rights(ctx context.Context) {
	all := slices.Clone(needed)
	if i.Approves() {
		all = append(all, neededToApprove...)
	}
	if i.Conf.Serving {
		all = append(all, neededForServing)
	}
	tooMuch := excess
	if i.Conf.HostNetwork != nil {
		all = append(all, neededForHosts...)
	} else {
		tooMuch = slices.Concat(excess, neededForHosts)
	}
	missing, err := i.check(ctx, i.client, all, false)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("drover may not: %s; apply deploy/rbac.yaml (drover cluster prepare)", strings.Join(missing, ", "))
	}
	i.note("drover's rights", "all that it needs", err)
	beyond, err := i.check(ctx, i.client, tooMuch, true)
	if err == nil && len(beyond) > 0 {
		err = fmt.Errorf("drover may, and should not: %s; give it a ServiceAccount of its own, with deploy/rbac.yaml alone", strings.Join(beyond, ", "))
	}
	i.note("no more rights", "none of those that were tried", err)
}

// check returns the rights that the client has, if allowed is true, else those that it
// does not have.
func (i *inspection) check(ctx context.Context, client client.Interface, rights []right, allowed bool) (which []string, err error) {
	for _, r := range rights {
		resource, sub, _ := strings.Cut(r.resource, "/")
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: r.verb, Group: r.group, Resource: resource, Subresource: sub, Namespace: r.namespace, Name: r.name},
		}}
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return nil, i.Wrap("ask for rights", err)
		}
		if answer.Status.Allowed == allowed {
			which = append(which, r.String())
		}
	}
	return which, nil
}

// policies sends requests that only the admission policies of deploy/rbac.yaml forbid.
// The requests are dry runs, so nothing changes.
func (i *inspection) policies(ctx context.Context) {
	dry := []string{metav1.DryRunAll}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "drover-check", Namespace: metav1.NamespaceSystem}, Type: corev1.SecretTypeOpaque}
	i.note("policy of join tokens", "drover can make no other Secret", i.refused(ctx, "make any Secret of kube-system", func() error {
		_, err := i.client.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, secret, metav1.CreateOptions{DryRun: dry})
		return err
	}))

	list, err := i.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "!" + node.Managed, Limit: 1})
	if err != nil || len(list.Items) == 0 {
		return // no Node to try it on
	}
	patch := []byte(`{"metadata":{"labels":{"` + node.Managed + `":"` + node.ManagedValue + `"}}}`)
	i.note("policy of Nodes", "drover can touch none but its own", i.refused(ctx, "change and delete any Node", func() error {
		_, err := i.client.CoreV1().Nodes().Patch(ctx, list.Items[0].Name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: dry})
		return err
	}))
}

// policyDelay is how long an API server may take until a new policy is in force.
const policyDelay = 10 * time.Second

// refused returns an error unless an admission policy refuses a dry run. It tries again
// for a while, because the policy may have been applied a moment ago.
func (i *inspection) refused(ctx context.Context, could string, try func() error) error {
	err := try()
	for start := time.Now(); err == nil; err = try() {
		if time.Since(start) > policyDelay || wait.Sleep(ctx, policyDelay/20) != nil {
			return fmt.Errorf("drover could %s: the admission policies of deploy/rbac.yaml are not in force; apply it (drover cluster prepare)", could)
		}
	}
	if apierrors.IsInvalid(err) || strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
		return nil
	}
	return i.Wrap("try an admission policy", err)
}

// joinToken mints a token for a node, and inspects the cluster as that node.
func (i *inspection) joinToken(ctx context.Context, node string) bool {
	info, err := i.Info(ctx)
	if err != nil {
		return i.note("cluster-info", "", err)
	}
	i.note("cluster-info", fmt.Sprintf("nodes find the API server at %s", info.Endpoint), nil)
	signed, cancel := context.WithTimeout(ctx, signTimeout)
	defer cancel()
	tok, info, err := i.MintSigned(signed, node, time.Minute)
	if tok.ID != "" {
		defer func() { _ = i.Delete(context.WithoutCancel(ctx), tok) }() // it expires
	}
	if err != nil {
		return i.note("join token", "", err)
	}
	i.note("join token", "minted, and signed by the bootstrapsigner", nil)
	client, err := i.nodeClient(info, tok)
	if err != nil {
		return i.note("a node's view", "", err)
	}
	i.nodeRights(ctx, client)
	i.kubeletConfig(ctx, client)
	return true
}

// cleaner checks whether an expired token was deleted.
func (i *inspection) cleaner(ctx context.Context, tok token.Token, err error) {
	const what = "tokencleaner"
	if err == nil {
		err = i.DeleteExisting(ctx, tok)
		switch {
		case apierrors.IsNotFound(err):
			err = nil
		case err == nil:
			err = errors.New("a token that expired is still there: the tokencleaner does not run (kube-controller-manager --controllers=*,bootstrapsigner,tokencleaner)")
		}
	}
	i.note(what, "removes tokens that expired", err)
}
