// Package tenants makes hosted tenants in a farm and measures them: how long it takes from
// kubectl apply until nodes can join, and how much memory their control planes have.
//
//	one, err := tenants.Start(ctx, f, "tenant-1", address)     // f is a farm.Farm with drover
//	one.Memory, err = tenants.Memory(ctx, f, one.Selector())
//	peer, err := tenants.Separate(ctx, f, one)                 // the same programs, a pod each
//
// Memory is PSS: a page that n processes share counts as 1/n of a page in each. The package
// knows the labels and Secrets of package hosted, and nothing else of drover.
package tenants

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"drover/e2e/farm"
	"drover/internal/wait"
)

// Version is the version of Kubernetes of the tenants: that of the lab.
const Version = "v1.37.1"

// Tenant is a tenant and its figures.
type Tenant struct {
	Name     string     `json:"name"`
	Address  netip.Addr `json:"address"`
	Ready    Seconds    `json:"ready"`    // from kubectl apply until the object is Ready
	Joinable Seconds    `json:"joinable"` // until cluster-info is signed with a new token
	Memory   PSS        `json:"memory"`
}

// Seconds is a duration.
type Seconds float64

func since(t time.Time) Seconds { return Seconds(time.Since(t).Seconds()) }

// Selector returns the labels of the tenant's pods.
func (t *Tenant) Selector() string { return "drover.dev/tenant=" + t.Name }

// values are those of the chart: a farm without machines.
const values = `config:
  server: {interfaces: [br0], address: 10.77.0.1}
  subnets: [{cidr: 10.77.0.0/24, router: 10.77.0.1}]
image: {tag: e2e, pullPolicy: Never}
storage: {images: {hostPath: /mnt/images}, loaders: {hostPath: /mnt/loaders}}
`

// Install installs drover's chart, with objects and no machines.
func Install(ctx context.Context, f *farm.Farm) error {
	file := filepath.Join(f.Dir, "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		return err
	}
	return f.Install(ctx, file)
}

// Address returns the address of tenant number i, from 0 to 99, in the rack.
func Address(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 0, byte(100 + i)}) }

// Start makes the object of a tenant, and waits until it is Ready and nodes can join it.
func Start(ctx context.Context, f *farm.Farm, name string, address netip.Addr) (*Tenant, error) {
	t := &Tenant{Name: name, Address: address}
	object := fmt.Sprintf(`{apiVersion: drover.dev/v1alpha1, kind: Tenant, metadata: {name: %s, namespace: %s},
spec: {controlPlane: {version: %s, endpoint: {address: %s}, storage: {size: 1Gi}}}}`, name, farm.Namespace, Version, address)
	begin := time.Now()
	if _, err := f.Kubectl(ctx, strings.NewReader(object), "apply", "-f", "-"); err != nil {
		return nil, err
	}
	if err := t.await(ctx, f, begin); err != nil {
		return nil, fmt.Errorf("tenant %s: %w", name, err)
	}
	return t, nil
}

// await waits until the tenant is Ready and joinable, and notes when.
func (t *Tenant) await(ctx context.Context, f *farm.Farm, begin time.Time) error {
	admin, err := client(f, f.Admin)
	if err != nil {
		return err
	}
	joinable := &joinTest{farm: f, admin: admin, tenant: t.Name}
	return poll(ctx, func() error {
		var errs []error
		if t.Joinable == 0 {
			if err := joinable.try(ctx); err != nil {
				errs = append(errs, err)
			} else {
				t.Joinable = since(begin)
			}
		}
		if t.Ready == 0 {
			if err := ready(ctx, admin, t.Name); err != nil {
				errs = append(errs, err)
			} else {
				t.Ready = since(begin)
			}
		}
		return errors.Join(errs...)
	})
}

// ready returns nil if the object of a tenant is Ready.
func ready(ctx context.Context, admin kubernetes.Interface, name string) error {
	text, err := admin.CoreV1().RESTClient().Get().AbsPath("/apis/drover.dev/v1alpha1/namespaces", farm.Namespace, "tenants", name).DoRaw(ctx)
	if err != nil {
		return err
	}
	var object struct {
		Status struct{ Conditions []metav1.Condition }
	}
	if err := json.Unmarshal(text, &object); err != nil {
		return err
	}
	for _, c := range object.Status.Conditions {
		if c.Type == "Ready" && c.Status == metav1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("not Ready: %+v", object.Status.Conditions)
}

// joinTest does what kubeadm join does first, with a new token.
type joinTest struct {
	farm   *farm.Farm
	admin  kubernetes.Interface
	tenant string

	conf  *rest.Config // of the tenant's administrator, once it is known
	token string       // its ID, once it is made
	http  *http.Client
	url   string
}

// try returns nil if anybody can read cluster-info, and it is signed with the token.
func (j *joinTest) try(ctx context.Context) error {
	if j.token == "" {
		if err := j.makeToken(ctx); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, j.url+"/api/v1/namespaces/kube-public/configmaps/cluster-info", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := j.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && !strings.Contains(string(text), `"jws-kubeconfig-`+j.token+`"`) {
		err = fmt.Errorf("cluster-info: %s, without a signature", resp.Status)
	}
	return err
}

// makeToken makes a token as the tenant's administrator.
func (j *joinTest) makeToken(ctx context.Context) error {
	if j.conf == nil {
		conf, err := Administrator(ctx, j.farm, j.admin, j.tenant)
		if err != nil {
			return err
		}
		j.conf = conf
	}
	tenant, err := kubernetes.NewForConfig(j.conf)
	if err != nil {
		return err
	}
	id := strings.ToLower(rand.Text())[:6]
	_, err = tenant.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id}, Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{"token-id": id, "token-secret": strings.ToLower(rand.Text())[:16], "usage-bootstrap-signing": "true", "usage-bootstrap-authentication": "true"},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(j.conf.CAData) {
		return errors.New("the kubeconfig has no CA")
	}
	j.http = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DialContext: j.farm.Dial, DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots},
	}}
	j.token, j.url = id, j.conf.Host
	return nil
}

// Administrator returns the connection of a tenant's administrator.
func Administrator(ctx context.Context, f *farm.Farm, admin kubernetes.Interface, tenant string) (*rest.Config, error) {
	secret, err := admin.CoreV1().Secrets(farm.Namespace).Get(ctx, tenant+"-admin", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	conf, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
	if err != nil {
		return nil, err
	}
	conf.Dial, conf.Timeout = f.Dial, 5*time.Second
	return conf, nil
}

// Admin returns the connection of the admin cluster's administrator.
func Admin(f *farm.Farm) (kubernetes.Interface, error) { return client(f, f.Admin) }

func client(f *farm.Farm, kubeconfig string) (kubernetes.Interface, error) {
	conf, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	conf.Dial, conf.QPS, conf.Burst = f.Dial, 100, 200
	return kubernetes.NewForConfig(conf)
}

// poll calls try until it returns nil or ctx ends.
func poll(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		if wait.Sleep(ctx, 100*time.Millisecond) != nil {
			return fmt.Errorf("%w; last: %w", context.Cause(ctx), err)
		}
	}
}
