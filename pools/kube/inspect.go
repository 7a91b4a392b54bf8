package kube

import (
	"context"
	"encoding/json"
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
	"k8s.io/client-go/kubernetes"

	"drover/pools/wait"
)

// Finding is one thing that joins need of a cluster.
type Finding struct {
	What   string `json:"what"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"` // what is there, or what is wrong and what to do
}

// How long a look at a cluster takes: a token that expires after shortTTL must
// be gone after cleaned. The tokencleaner works on its own clock.
const (
	shortTTL = 3 * time.Second
	cleaned  = 12 * time.Second
)

// inspection is a look at one cluster.
type inspection struct {
	*cluster
	key    []byte // that grants are sealed with
	client kubernetes.Interface
	found  []Finding
}

func (i *inspection) note(what, detail string, err error) bool {
	if err != nil {
		i.found = append(i.found, Finding{What: what, Detail: strings.TrimPrefix(err.Error(), fmt.Sprintf("cluster %q: ", i.conf.Name))})
		return false
	}
	i.found = append(i.found, Finding{What: what, OK: true, Detail: detail})
	return true
}

// Inspect looks at everything that a join needs of a cluster, as drover and as a
// node: it mints two tokens, which it deletes again, and joins nothing. It takes
// about 12 seconds. What is wrong is in the findings; the error is for a name
// that is in no config.
func (c *Clusters) Inspect(ctx context.Context, name string) ([]Finding, error) {
	cl, err := c.cluster(name)
	if err != nil {
		return nil, err
	}
	ctx = quiet(ctx)
	i := &inspection{cluster: cl, key: c.sealKey()}
	cl.await(ctx)
	if !i.reach(ctx) {
		return i.found, nil
	}
	i.rights(ctx)
	i.policies(ctx)
	i.approver(ctx)
	start := time.Now()
	short, shortErr := cl.mint(ctx, c.sealKey(), "none (drover cluster check)", shortTTL)
	if i.joinToken(ctx) {
		_ = wait.Sleep(ctx, time.Until(start.Add(cleaned)))
		i.cleaner(ctx, short, shortErr)
	}
	return i.found, nil
}

func (i *inspection) reach(ctx context.Context) bool {
	const what = "API server"
	var err error
	if i.client, err = i.connect(); err != nil {
		return i.note(what, "", err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var v version.Info
	text, err := i.client.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		return i.note(what, "", i.errorf("ask for its version", err))
	}
	return i.note(what, v.GitVersion+": "+skew(v), nil)
}

// skew tells which kubelets may join: none newer than the API server, and from
// 1.28 on none more than three minor versions older.
func skew(v version.Info) string {
	var minor int
	if _, err := fmt.Sscanf(v.Minor, "%d", &minor); err != nil {
		return "an image's kubelet must not be newer"
	}
	return fmt.Sprintf("kubelets and kubeadm of %s.%d to %s.%d can join", v.Major, max(minor-3, 0), v.Major, minor)
}

// right is a call that RBAC allows or not.
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

// What deploy/rbac.yaml gives, and what would be too much.
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
	}
	neededToServe = right{"approve", certificates, "signers", "", certificatesv1.KubeletServingSignerName}
	excess        = []right{
		{"get", "", "secrets", metav1.NamespaceSystem, ""}, {"list", "", "secrets", metav1.NamespaceSystem, ""},
		{"update", "", "secrets", metav1.NamespaceSystem, ""}, {"create", "", "secrets", metav1.NamespaceDefault, ""},
		{"create", "", "nodes", "", ""}, {"update", "", "nodes", "", ""}, {"deletecollection", "", "nodes", "", ""},
		{"get", "", "pods", "", ""}, {"delete", "", "pods", "", ""}, {"create", "", "pods", metav1.NamespaceDefault, ""},
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
	if i.approves() {
		all = append(all, neededToApprove...)
	}
	if i.conf.Serving {
		all = append(all, neededToServe)
	}
	missing, err := i.check(ctx, i.client, all, false)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("drover may not: %s; apply deploy/rbac.yaml (drover cluster prepare)", strings.Join(missing, ", "))
	}
	i.note("drover's rights", "all that it needs", err)
	beyond, err := i.check(ctx, i.client, excess, true)
	if err == nil && len(beyond) > 0 {
		err = fmt.Errorf("drover may, and should not: %s; give it a ServiceAccount of its own, with deploy/rbac.yaml alone", strings.Join(beyond, ", "))
	}
	i.note("no more rights", "none of those that were tried", err)
}

// check returns those of some rights that are allowed, or that are not.
func (i *inspection) check(ctx context.Context, client kubernetes.Interface, rights []right, allowed bool) (which []string, err error) {
	for _, r := range rights {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: r.verb, Group: r.group, Resource: r.resource, Namespace: r.namespace, Name: r.name},
		}}
		resource, sub, _ := strings.Cut(r.resource, "/")
		review.Spec.ResourceAttributes.Resource, review.Spec.ResourceAttributes.Subresource = resource, sub
		call, cancel := context.WithTimeout(ctx, callTimeout)
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(call, review, metav1.CreateOptions{})
		cancel()
		if err != nil {
			return nil, i.errorf("ask for rights", err)
		}
		if answer.Status.Allowed == allowed {
			which = append(which, r.String())
		}
	}
	return which, nil
}

// policies tries what only the admission policies of deploy/rbac.yaml forbid.
// Nothing comes of it: the requests are dry runs.
func (i *inspection) policies(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	dry := []string{metav1.DryRunAll}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "drover-check", Namespace: metav1.NamespaceSystem}, Type: corev1.SecretTypeOpaque}
	_, err := i.client.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, secret, metav1.CreateOptions{DryRun: dry})
	i.note("policy of join tokens", "drover can make no other Secret", i.refusal("make any Secret of kube-system", err))

	list, err := i.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "!" + markLabel, Limit: 1})
	if err != nil || len(list.Items) == 0 {
		return // no Node to try it on
	}
	patch := []byte(`{"metadata":{"labels":{"` + markLabel + `":"` + markValue + `"}}}`)
	_, err = i.client.CoreV1().Nodes().Patch(ctx, list.Items[0].Name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: dry})
	i.note("policy of Nodes", "drover can touch none but its own", i.refusal("change and delete any Node", err))
}

// refusal turns the error of a dry run that must fail into what is wrong.
func (i *inspection) refusal(could string, err error) error {
	switch {
	case err == nil:
		return fmt.Errorf("drover could %s: the admission policies of deploy/rbac.yaml are not in force; apply it (drover cluster prepare)", could)
	case apierrors.IsInvalid(err), strings.Contains(err.Error(), "ValidatingAdmissionPolicy"):
		return nil
	}
	return i.errorf("try an admission policy", err)
}

// joinToken mints a token as for a node, and looks at the cluster as that node.
func (i *inspection) joinToken(ctx context.Context) bool {
	info, err := i.info(ctx)
	if err != nil {
		return i.note("cluster-info", "", err)
	}
	i.note("cluster-info", fmt.Sprintf("nodes find the API server at %s", info.endpoint), nil)
	signed, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	tok, info, err := i.mintSigned(signed, i.key, "none (drover cluster check)", time.Minute)
	if tok.id != "" {
		defer func() { _ = i.unmint(context.WithoutCancel(ctx), tok) }() // it expires
	}
	if err != nil {
		return i.note("join token", "", err)
	}
	i.note("join token", "minted, and signed by the bootstrapsigner", nil)
	node, err := i.asNode(info, tok)
	if err != nil {
		return i.note("a node's view", "", err)
	}
	i.nodeRights(ctx, node)
	i.kubeletConfig(ctx, node)
	return true
}

// cleaner looks whether an expired token was removed.
func (i *inspection) cleaner(ctx context.Context, tok token, err error) {
	const what = "tokencleaner"
	if err != nil {
		i.note(what, "", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = i.client.CoreV1().Secrets(metav1.NamespaceSystem).Delete(ctx, tok.name(), metav1.DeleteOptions{})
	switch {
	case apierrors.IsNotFound(err):
		i.note(what, "removes tokens that expired", nil)
	case err == nil:
		i.note(what, "", errors.New("a token that expired is still there: the tokencleaner does not run (kube-controller-manager --controllers=*,bootstrapsigner,tokencleaner)"))
	default:
		i.note(what, "", i.redacted("delete a join token", err, tok))
	}
}
