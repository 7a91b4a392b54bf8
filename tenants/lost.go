package tenants

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"drover/kube/client"
	"drover/kube/cluster"
	"drover/tenants/manifests"
	"drover/tenants/pki"
)

// keysLost is the reason of a tenant that has data, nodes or kubeconfigs, and not the keys
// that fit them.
const keysLost = "KeysLost"

// answerTimeout bounds the question whether an API server answers at an address.
const answerTimeout = time.Second

// traces are what shows that a tenant has had keys.
type traces struct {
	there  []string // for a message: the volume "data-tenant-a-control-plane-0"
	ending []string // those of them that are being deleted
}

func (t *traces) add(kind string, o metav1.Object) {
	name := fmt.Sprintf("the %s %q", kind, o.GetName())
	if o.GetDeletionTimestamp() != nil {
		t.ending = append(t.ending, name)
		return
	}
	t.there = append(t.there, name)
}

// mayMakeKeys returns an error if any of the keys is missing, and anything shows that the
// tenant has had it: no node, token or kubeconfig would fit a new one. found are its Secrets.
func (w *worker) mayMakeKeys(ctx context.Context, found map[string]*corev1.Secret) error {
	missing := missingKeys(w.plane, found)
	if len(missing) == 0 {
		return nil
	}
	c := w.controller
	t, err := findTraces(ctx, c.limits, c.typed(), c.Namespace, w.plane.Name)
	if err != nil {
		return err
	}
	for _, at := range w.endpoints() {
		if apiServerAt(ctx, at) {
			t.there = append(t.there, "an API server that answers at "+at.String())
		}
	}
	switch {
	case len(t.there) > 0:
		return &waiting{keysLost, lost(w.plane.Name, missing, t.there)}
	case len(t.ending) > 0:
		return &waiting{starting, fmt.Sprintf("%s of the tenant of that name before: it is being deleted", strings.Join(t.ending, ", "))}
	}
	return nil
}

// lost returns the message of keys that are gone.
func lost(tenant string, missing, there []string) string {
	for i, name := range missing {
		missing[i] = fmt.Sprintf("%q", name)
	}
	secrets := "the Secret " + missing[0] + " is gone"
	if len(missing) > 1 {
		secrets = "the Secrets " + strings.Join(missing, ", ") + " are gone"
	}
	return fmt.Sprintf("%s, and there is %s: no new keys are made, since no node of the tenant would know them; "+
		"restore the Secrets from a backup, with their labels and annotations, or give the tenant new keys on purpose with: drover tenant new-keys %s", secrets, strings.Join(there, ", "), tenant)
}

// missingKeys returns the names of the Secrets with keys that are not among those found.
func missingKeys(p *manifests.Plane, found map[string]*corev1.Secret) (names []string) {
	for _, name := range []string{p.CASecret(), p.FrontProxySecret(), p.AccountsSecret()} {
		if found[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

// findTraces finds what shows that a tenant has had keys: what they have signed, its control
// plane, and its data. A volume counts by its name, whatever its labels: the pod would get it.
func findTraces(ctx context.Context, limits *cluster.Cluster, c client.Interface, namespace, tenant string) (*traces, error) {
	p, t := &manifests.Plane{Name: tenant}, &traces{}
	ours := metav1.ListOptions{LabelSelector: manifests.TenantLabel + "=" + tenant}
	err := cluster.EachPage(ctx, limits, c.AppsV1().StatefulSets(namespace), ours, func(page []*appsv1.StatefulSet) {
		for _, s := range page {
			if s.Name == p.StatefulSet() {
				t.add("StatefulSet", s)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	pods := metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: p.Selector()})}
	err = cluster.EachPage(ctx, limits, c.CoreV1().Pods(namespace), pods, func(page []*corev1.Pod) {
		for _, pod := range page {
			t.add("pod", pod)
		}
	})
	if err != nil {
		return nil, err
	}
	err = cluster.EachPage(ctx, limits, c.CoreV1().PersistentVolumeClaims(namespace), metav1.ListOptions{}, func(page []*corev1.PersistentVolumeClaim) {
		for _, v := range page {
			if isVolume(p, v.Name) {
				t.add("volume", v)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	err = cluster.EachPage(ctx, limits, c.CoreV1().Secrets(namespace), ours, func(page []*corev1.Secret) {
		for _, s := range page {
			if slices.Contains([]string{p.LeafSecret(), p.DroverSecret(), p.AdminSecret()}, s.Name) {
				t.add("Secret", s)
			}
		}
	})
	return t, err
}

// isVolume reports whether a PersistentVolumeClaim of a name is one of a control plane.
func isVolume(p *manifests.Plane, name string) bool {
	number, ok := strings.CutPrefix(name, manifests.DataVolume+"-"+p.StatefulSet()+"-")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// endpoints returns where the tenant may answer, although nothing of it is in the namespace.
func (w *worker) endpoints() (all []netip.AddrPort) {
	if e := w.plane.Spec.Endpoint; e.Address.IsValid() {
		all = append(all, netip.AddrPortFrom(e.Address, uint16(e.Port)))
	}
	if at, err := netip.ParseAddrPort(w.status.Endpoint); err == nil && !slices.Contains(all, at) {
		all = append(all, at)
	}
	return all
}

// apiServerAt reports whether an API server of Kubernetes answers at an address: its
// certificate has the name of its Service. Nothing is sent to it.
func apiServerAt(ctx context.Context, at netip.AddrPort) bool {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	d := tls.Dialer{NetDialer: &net.Dialer{}, Config: &tls.Config{InsecureSkipVerify: true}} // whose it is does not matter
	conn, err := d.DialContext(ctx, "tcp", at.String())
	if err != nil {
		return false
	}
	defer conn.Close()
	certs := conn.(*tls.Conn).ConnectionState().PeerCertificates
	return len(certs) > 0 && certs[0].VerifyHostname("kubernetes.default.svc") == nil
}

// Lost returns the names of the Secrets with keys that a tenant has lost, and what shows that
// it has had them. Without missing keys, and without traces, there is nothing to replace.
func Lost(ctx context.Context, admin *rest.Config, namespace, tenant string) (missing, traces []string, err error) {
	c, err := client.New(admin)
	if err != nil {
		return nil, nil, err
	}
	ctx = cluster.Quiet(ctx)
	p, found := &manifests.Plane{Name: tenant}, map[string]*corev1.Secret{}
	for _, name := range p.Secrets() {
		s, err := c.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		found[name] = s
	}
	t, err := findTraces(ctx, cluster.NewAdmin("", time.Now), c, namespace, tenant)
	if err != nil {
		return nil, nil, err
	}
	return missingKeys(p, found), slices.Concat(t.there, t.ending), nil
}

// NewKeys makes the keys that a tenant has lost, which the controller never does. It returns
// the names of their Secrets, which have the notes of the certificates of before: they say
// what versions have run.
func NewKeys(ctx context.Context, admin *rest.Config, namespace, tenant string, now time.Time) (made []string, err error) {
	missing, traces, err := Lost(ctx, admin, namespace, tenant)
	switch {
	case err != nil:
		return nil, err
	case len(missing) == 0:
		return nil, fmt.Errorf("the tenant %q has all its keys in namespace %s: nothing is done", tenant, namespace)
	case len(traces) == 0:
		return nil, fmt.Errorf("namespace %s has nothing of a tenant %q: its keys are made when it is declared", namespace, tenant)
	}
	c, err := client.New(admin)
	if err != nil {
		return nil, err
	}
	p := &manifests.Plane{Name: tenant, Namespace: namespace}
	secrets, notes := c.CoreV1().Secrets(namespace), map[string]string{}
	if leaf, err := secrets.Get(ctx, p.LeafSecret(), metav1.GetOptions{}); err == nil && leaf.Labels[manifests.TenantLabel] == tenant {
		notes = map[string]string{manifests.VersionNote: leaf.Annotations[manifests.VersionNote], etcdNote: leaf.Annotations[etcdNote]}
	}
	for _, name := range missing {
		data, err := keysFor(p, name, now)
		if err != nil {
			return made, err
		}
		of := map[string]string{}
		if name == p.CASecret() {
			of = notes
		}
		if _, err := secrets.Create(ctx, secretOf(p, name, data, of), metav1.CreateOptions{FieldManager: manager}); err != nil {
			return made, err
		}
		made = append(made, name)
	}
	return made, nil
}

// keysFor makes the keys of a Secret.
func keysFor(p *manifests.Plane, secret string, now time.Time) (map[string][]byte, error) {
	switch secret {
	case p.CASecret():
		return pki.NewAuthority("kubernetes", now)
	case p.FrontProxySecret():
		return pki.NewAuthority("front-proxy-ca", now)
	case p.AccountsSecret():
		return pki.ServiceAccountKeys()
	}
	return nil, fmt.Errorf("the Secret %q has no keys of its own", secret)
}
