package tenants

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/kube/cluster"
	"drover/tenants/manifests"
	"drover/tenants/pki"
)

// keys are the authorities of a tenant.
type keys struct {
	secret    *corev1.Secret // of ca, with the tenant's annotations
	leaf      *corev1.Secret // of what the CAs have signed; nil: there is none yet
	ca, front *pki.Authority
	accounts  map[string][]byte
}

// vniNote is the annotation with the number of a tenant's pod network.
const vniNote = "drover.dev/vni"

// firstVNI leaves room for networks that people made by hand.
const firstVNI = 100

// readKeys reads the authorities of a tenant, and makes those that it never had.
func (w *worker) readKeys(ctx context.Context) (*keys, error) {
	p := w.plane
	found, err := w.readSecrets(ctx, p.CASecret(), p.FrontProxySecret(), p.AccountsSecret(), p.LeafSecret())
	if err != nil {
		return nil, err
	}
	if err := w.mayMakeKeys(ctx, found); err != nil {
		return nil, err
	}
	k := &keys{leaf: found[p.LeafSecret()]}
	if k.secret, err = w.make(ctx, found, p.CASecret()); err != nil {
		return nil, err
	}
	front, err := w.make(ctx, found, p.FrontProxySecret())
	if err != nil {
		return nil, err
	}
	accounts, err := w.make(ctx, found, p.AccountsSecret())
	if err != nil {
		return nil, err
	}
	if k.ca, err = loaded(k.secret); err != nil {
		return nil, err
	}
	if k.front, err = loaded(front); err != nil {
		return nil, err
	}
	if err := pki.CheckServiceAccountKeys(accounts.Data); err != nil {
		return nil, fmt.Errorf("the Secret %q: %w", accounts.Name, err)
	}
	k.accounts = accounts.Data
	return k, nil
}

func loaded(s *corev1.Secret) (*pki.Authority, error) {
	a, err := pki.LoadAuthority(s.Data)
	if err != nil {
		return nil, fmt.Errorf("the Secret %q: %w", s.Name, err)
	}
	return a, nil
}

// readSecrets reads Secrets of the tenant, before any is made. It returns an error if one is
// another's.
func (w *worker) readSecrets(ctx context.Context, names ...string) (map[string]*corev1.Secret, error) {
	found := map[string]*corev1.Secret{}
	for _, name := range names {
		s, err := w.secrets().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := w.owned("Secret", name, s.Labels); err != nil {
			return nil, err
		}
		found[name] = s
	}
	return found, nil
}

// make returns the Secret of a key that was found, or makes it: see [worker.mayMakeKeys].
func (w *worker) make(ctx context.Context, found map[string]*corev1.Secret, name string) (*corev1.Secret, error) {
	if s := found[name]; s != nil {
		return s, nil
	}
	content, err := keysFor(w.plane, name, w.now())
	if err != nil {
		return nil, err
	}
	made, err := w.secrets().Create(ctx, secretOf(w.plane, name, content, nil), metav1.CreateOptions{FieldManager: manager})
	if err == nil {
		w.log.Info("keys made", "secret", name)
	}
	return made, err
}

// secretOf returns a Secret of a tenant.
func secretOf(p *manifests.Plane, name string, data map[string][]byte, notes map[string]string) *corev1.Secret {
	annotations, _ := annotated(nil, notes)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.Namespace, Labels: p.Labels(), Annotations: annotations},
		Type:       corev1.SecretTypeOpaque,
		Data:       data,
	}
}

// write makes or changes a Secret of the tenant that is not the only copy of a key.
func (w *worker) write(ctx context.Context, name string, data map[string][]byte, notes map[string]string) error {
	found, err := w.secrets().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = w.secrets().Create(ctx, secretOf(w.plane, name, data, notes), metav1.CreateOptions{FieldManager: manager})
		return err
	}
	if err != nil {
		return err
	}
	if err := w.owned("Secret", name, found.Labels); err != nil {
		return err
	}
	changed := found.DeepCopy()
	changed.Data = data
	if all, noted := annotated(found.Annotations, notes); noted {
		changed.Annotations = all
	}
	if reflect.DeepEqual(found, changed) {
		return nil
	}
	_, err = w.secrets().Update(ctx, changed, metav1.UpdateOptions{FieldManager: manager})
	return err
}

// note writes annotations of the Secret of the CA, which outlives a removed tenant. Empty ones
// stay as they are.
func (w *worker) note(ctx context.Context, k *keys, notes map[string]string) error {
	annotations, changes := annotated(k.secret.Annotations, notes)
	if _, removed := annotations[removedNote]; !changes && !removed {
		return nil
	}
	delete(annotations, removedNote) // it is there again
	changed := k.secret.DeepCopy()
	changed.Annotations = annotations
	updated, err := w.secrets().Update(ctx, changed, metav1.UpdateOptions{FieldManager: manager})
	if err == nil {
		k.secret = updated
	}
	return err
}

// chooseVNI chooses the number of the tenant's pod network, which no other tenant of the
// namespace has, deleted ones that keep their keys included. It stays as it is.
func (w *worker) chooseVNI(ctx context.Context, k *keys) error {
	if w.number != 0 {
		return nil
	}
	c := w.controller
	c.numbers.Lock()
	defer c.numbers.Unlock()
	taken := map[int]bool{}
	opts := metav1.ListOptions{LabelSelector: manifests.ManagedBy + "=" + manifests.Drover}
	err := cluster.EachPage(ctx, c.limits, w.secrets(), opts, func(page []*corev1.Secret) {
		for _, s := range page {
			if n, err := strconv.Atoi(s.Annotations[vniNote]); err == nil && s.Name != k.secret.Name {
				taken[n] = true
			}
		}
	})
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(k.secret.Annotations[vniNote])
	if err != nil || n < 1 || n >= 1<<24 || taken[n] {
		for n = firstVNI; taken[n]; n++ {
		}
		if err := w.note(ctx, k, map[string]string{vniNote: strconv.Itoa(n)}); err != nil {
			return err
		}
	}
	w.number = n
	return nil
}

// leaf is a certificate of the control plane and the authority that signs it.
type leaf struct {
	pki.Leaf
	by *pki.Authority
}

// leaves returns the certificates of a control plane.
func (w *worker) leaves(k *keys) []leaf {
	p := w.plane
	hosts := slices.Concat([]string{
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + p.Domain(),
		"localhost", "127.0.0.1", "::1", p.Service(), p.Service() + "." + p.Namespace, p.Service() + "." + p.Namespace + ".svc",
		p.Address.String(),
	}, p.ServiceIPs(), p.Spec.CertSANs)
	return []leaf{
		{pki.Leaf{File: "apiserver", Name: "kube-apiserver", Hosts: hosts}, k.ca},
		{pki.Leaf{File: "apiserver-kubelet-client", Name: "kube-apiserver-kubelet-client"}, k.ca},
		{pki.Leaf{File: "front-proxy-client", Name: "front-proxy-client"}, k.front},
		{pki.Leaf{File: "controller-manager", Name: "system:kube-controller-manager"}, k.ca},
		{pki.Leaf{File: "scheduler", Name: "system:kube-scheduler"}, k.ca},
		{pki.Leaf{File: "konnectivity-client", Name: "system:konnectivity-server"}, k.ca},
		// The konnectivity-server reads its certificate at its start only.
		{pki.Leaf{File: "konnectivity", Name: "konnectivity-server", Hosts: []string{p.Address.String()}, Whole: true}, k.ca},
	}
}

// renew issues the certificates that are missing, wrong or near their end.
func (w *worker) renew(ctx context.Context, k *keys) (map[string][]byte, error) {
	data := map[string][]byte{}
	if k.leaf != nil {
		maps.Copy(data, k.leaf.Data)
	}
	var certs []Certificate
	for _, l := range w.leaves(k) {
		cert, key := l.File+".crt", l.File+".key"
		pair := pki.Pair{Cert: data[cert], Key: data[key]}
		if why := l.by.Stale(pair, l.Leaf, w.now()); why != "" {
			var err error
			if pair, err = l.by.Issue(l.Leaf, w.now()); err != nil {
				return nil, err
			}
			w.log.Info("certificate issued", "certificate", l.File, "because", why)
			data[cert], data[key] = pair.Cert, pair.Key
		}
		certs = append(certs, Certificate{l.File, metav1.NewTime(pair.Ends())})
	}
	certs = append(certs, Certificate{"ca", metav1.NewTime(k.ca.Ends())}, Certificate{"front-proxy-ca", metav1.NewTime(k.front.Ends())})
	slices.SortStableFunc(certs, func(a, b Certificate) int { return a.Ends.Compare(b.Ends.Time) })
	w.status.Certificates = certs
	return data, w.write(ctx, w.plane.LeafSecret(), data, map[string]string{manifests.VersionNote: w.ran, etcdNote: w.plane.Etcd})
}

// id changes with the keys that programs read only when they start.
func (k *keys) id(leaves map[string][]byte) string {
	return manifests.Fingerprint(leaves["konnectivity.crt"], k.ca.Trust, k.secret.Data[pki.SigningCert], k.front.Trust, k.accounts[pki.AccountPublic])
}

// kubeconfigKey is the key of the kubeconfig in a Secret.
const kubeconfigKey = "value"

// administrator keeps the kubeconfig of people.
func (w *worker) administrator(ctx context.Context, k *keys) error {
	name := w.plane.AdminSecret()
	found, err := w.secrets().Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	l := pki.Leaf{File: "administrator", Name: "administrator", Groups: []string{"drover:administrators"}}
	var pair pki.Pair
	if err == nil {
		pair = pki.Pair{Cert: found.Data[corev1.TLSCertKey], Key: found.Data[corev1.TLSPrivateKeyKey]}
	}
	if k.ca.Stale(pair, l, w.now()) != "" {
		if pair, err = k.ca.Issue(l, w.now()); err != nil {
			return err
		}
	}
	text, err := pki.Kubeconfig(w.plane.Name, "https://"+w.plane.Endpoint(), "", k.ca.Trust, pki.User{Pair: pair})
	if err != nil {
		return err
	}
	return w.write(ctx, name, map[string][]byte{kubeconfigKey: text, corev1.TLSCertKey: pair.Cert, corev1.TLSPrivateKeyKey: pair.Key}, nil)
}

// own returns the kubeconfig of the controller in the tenant, which is kept nowhere.
func (w *worker) own(k *keys) ([]byte, error) {
	pair, err := k.ca.Issue(pki.Leaf{File: "controller", Name: "drover", Groups: []string{"system:masters"}, Life: ownLife}, w.now())
	if err != nil {
		return nil, err
	}
	return pki.Kubeconfig(w.plane.Name, "https://"+w.plane.Endpoint(), "", k.ca.Trust, pki.User{Pair: pair})
}

// ownLife is the life of the controller's certificate in a tenant.
const ownLife = 7 * 24 * time.Hour
