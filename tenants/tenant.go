package tenants

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"drover/kube/apply"
	"drover/kube/client"
	"drover/kube/cluster"
	"drover/kube/credentials"
	"drover/pools"
	"drover/tenants/manifests"
	"drover/tenants/pki"
)

// tenant is the connection to a tenant's API server as its administrator.
type tenant struct {
	limits   *cluster.Cluster // of its answers
	typed    client.Interface
	dyn      dynamic.Interface
	id       string    // of its endpoint and CA
	endpoint string    // host:port
	until    time.Time // when it is made anew
	data     types.UID // of the namespace kube-system, and so of the data

	applied   string // fingerprint of the objects that were applied last
	appliedAt time.Time
}

// applyAgain is how long objects in a tenant stay changed by others at most.
const applyAgain = 10 * time.Minute

// connect makes the connection, unless there is a good one.
func (w *worker) connect(k *keys) error {
	id := manifests.Fingerprint([]byte(w.plane.Endpoint()), k.ca.Trust)
	if w.tenant != nil && w.tenant.id == id && w.now().Before(w.tenant.until) {
		return nil
	}
	text, err := w.own(k)
	if err != nil {
		return err
	}
	conf, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		return err
	}
	t := &tenant{id: id, endpoint: w.plane.Endpoint(), until: w.now().Add(ownLife / 2), limits: cluster.New(pools.Cluster{Name: w.plane.Name}, "", w.controller.now)}
	t.limits.Limit(conf)
	if t.typed, err = client.New(conf); err != nil {
		return err
	}
	if t.dyn, err = dynamic.NewForConfig(conf); err != nil {
		return err
	}
	w.tenant = t
	return nil
}

// ask asks the API server for its version.
func (w *worker) ask(ctx context.Context) (string, error) {
	v, err := w.tenant.typed.ServerVersion(ctx)
	if err != nil {
		return "", w.down(&waiting{starting, fmt.Sprintf("the API server does not answer at %s: %v%s", w.tenant.endpoint, err, w.aside)})
	}
	w.status.Version = v.GitVersion
	w.status.set(Available, true, "Answers", "the API server answers", w.now())
	return v.GitVersion, nil
}

// inTenant does the work of a round in the tenant.
func (w *worker) inTenant(ctx context.Context, k *keys) error {
	if err := w.connect(k); err != nil {
		return err
	}
	version, err := w.ask(ctx)
	if err != nil {
		return err
	}
	if version == w.plane.Version {
		// From now on an older version is refused.
		w.ran = newer(w.ran, version)
		if err := w.noteRan(ctx, k); err != nil {
			return err
		}
	}
	if older(version, w.plane.Version) { // the add-ons of an update come after its API server
		return &waiting{starting, fmt.Sprintf("the API server still answers as %s", version)}
	}
	if err := w.sameData(ctx); err != nil {
		return err
	}
	err = w.serve(ctx, k)
	if _, ok := errors.AsType[*missing](err); ok {
		w.log.Warn("tenant object is gone: creating it again", "err", err)
		w.tenant.applied = ""
		err = w.serve(ctx, k)
	}
	return err
}

// sameData lets all objects be applied again if the tenant's data are not those of before.
func (w *worker) sameData(ctx context.Context) error {
	system, err := w.tenant.typed.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &waiting{starting, "the API server has not made the namespace kube-system yet"}
	}
	if err == nil && system.UID != w.tenant.data {
		w.tenant.data, w.tenant.applied = system.UID, ""
	}
	return err
}

// missing is the error of an object of a tenant that drover has made, and that is gone.
type missing struct{ error }

// gone returns the error of a request for an object that drover has made.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return &missing{err}
	}
	return err
}

// serve keeps what nodes and people need in the tenant, and counts what is there.
func (w *worker) serve(ctx context.Context, k *keys) error {
	if err := w.fill(ctx); err != nil {
		return err
	}
	if err := w.administrator(ctx, k); err != nil {
		return err
	}
	if err := w.credentials(ctx, k); err != nil {
		return err
	}
	if err := w.count(ctx); err != nil {
		return err
	}
	return w.controllersWork(ctx)
}

// fill applies the objects of the tenant.
func (w *worker) fill(ctx context.Context) error {
	bootstrap, err := w.plane.Bootstrap()
	if err != nil {
		return err
	}
	installed, removed, err := w.plane.Addons()
	if err != nil {
		return err
	}
	all := bytes.Join([][]byte{w.controller.RBAC(w.conf), bootstrap, installed}, []byte("\n---\n"))
	id, t := manifests.Fingerprint(all, removed), w.tenant
	if t.applied == id && w.now().Sub(t.appliedAt) < applyAgain {
		return nil
	}
	if err := apply.Manifest(ctx, t.dyn, manager, all, nil); err != nil {
		return err
	}
	if err := apply.Remove(ctx, t.dyn, manifests.ManagedBy, manifests.Drover, removed); err != nil {
		return err
	}
	t.applied, t.appliedAt = id, w.now()
	return nil
}

// The annotations of the Secret with drover's kubeconfig.
const (
	renewNote = "drover.dev/renew"       // when its token is made anew
	ownerNote = "drover.dev/credentials" // what the token belongs to
)

// tokenLife is the life of drover's token in a tenant.
const tokenLife = 365 * 24 * time.Hour

// credentials keeps drover's kubeconfig with the rights of RBAC.
func (w *worker) credentials(ctx context.Context, k *keys) error {
	of := credentials.Drover
	sa, err := w.tenant.typed.CoreV1().ServiceAccounts(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	if err != nil {
		return gone(err)
	}
	owner := manifests.Fingerprint([]byte(w.plane.Endpoint()), k.ca.Trust, []byte(sa.UID), k.accounts[pki.AccountPublic])
	found, err := w.secrets().Get(ctx, w.plane.DroverSecret(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err == nil && found.Annotations[ownerNote] == owner && len(found.Data[kubeconfigKey]) > 0 {
		if at, err := time.Parse(time.RFC3339, found.Annotations[renewNote]); err == nil && w.now().Before(at) {
			return nil
		}
	}
	token, end, err := credentials.Request(ctx, w.tenant.typed, of, tokenLife)
	if err != nil {
		return err
	}
	text, err := pki.Kubeconfig(w.plane.Name, "https://"+w.plane.Endpoint(), "", k.ca.Trust, pki.User{Token: token})
	if err != nil {
		return err
	}
	w.log.Info("drover's kubeconfig written", "secret", w.plane.DroverSecret())
	return w.write(ctx, w.plane.DroverSecret(), map[string][]byte{kubeconfigKey: text}, map[string]string{
		ownerNote: owner, renewNote: credentials.RenewAt(w.now(), end).UTC().Format(time.RFC3339),
	})
}

// count counts Nodes and agents.
func (w *worker) count(ctx context.Context) error {
	total, ready := 0, 0
	err := cluster.EachPage(ctx, w.tenant.limits, w.tenant.typed.CoreV1().Nodes(), metav1.ListOptions{}, func(page []*corev1.Node) {
		total += len(page)
		for _, n := range page {
			if nodeReady(n) {
				ready++
			}
		}
	})
	if err != nil {
		return err
	}
	set, err := w.tenant.typed.AppsV1().DaemonSets(metav1.NamespaceSystem).Get(ctx, "konnectivity-agent", metav1.GetOptions{})
	if err != nil {
		return gone(err)
	}
	agents := int(set.Status.NumberReady)
	w.status.Nodes, w.status.NodesReady, w.status.Agents = total, ready, agents
	switch {
	case agents > 0:
		w.status.set(AgentsConnected, true, "Connected", fmt.Sprintf("%d konnectivity agents are connected", agents), w.now())
	case total == 0:
		w.status.set(AgentsConnected, false, "NoNodes", "there is no node yet", w.now())
	default:
		w.status.set(AgentsConnected, false, "NoAgent", "no konnectivity agent is connected: logs, exec, and webhooks of Services do not work", w.now())
	}
	return nil
}

func nodeReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// controllersWork returns nil once the tenant's controllers give a new namespace what pods need,
// which shows that kube-controller-manager runs.
func (w *worker) controllersWork(ctx context.Context) error {
	_, err := w.tenant.typed.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &waiting{starting, "kube-controller-manager has not begun its work"}
	}
	return err
}
