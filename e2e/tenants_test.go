package e2e_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"drover/e2e/farm"
	"drover/e2e/tenants"
	"drover/internal/wait"
)

// TestTwoTenants makes two hosted tenants by kubectl apply, one after the other, and takes
// their memory, as "make bench-hosted" does with eight. No credential of the one is good
// anywhere else.
func TestTwoTenants(t *testing.T) {
	able(t)
	b, err := farm.Build(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	f := openFarm(ctx, t, b, farm.Config{Name: "drover-e2e-two", Volumes: 2})
	if err := tenants.Install(ctx, f); err != nil {
		t.Fatal(err)
	}
	var both []*tenants.Tenant
	for i, name := range []string{"one", "two"} {
		tenant, err := tenants.Start(ctx, f, name, tenants.Address(i))
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, tenant)
	}
	for _, tenant := range both {
		if tenant.Memory, err = tenants.Memory(ctx, f, tenant.Selector()); err != nil {
			t.Fatal(err)
		}
		for _, program := range []string{"etcd", "kube-apiserver", "kube-controller", "kube-scheduler", "proxy-server", tenants.Around} {
			if n := tenant.Memory[program]; n < 1<<20 || n > 1<<30 {
				t.Errorf("%s of %s has %d bytes of memory", program, tenant.Name, n)
			}
		}
		t.Logf("%s: Ready after %.1f s, nodes can join after %.1f s, %d MB of memory", tenant.Name, tenant.Ready, tenant.Joinable, tenant.Memory.Total()>>20)
	}
	wantApart(ctx, t, f)
}

// wantApart tries the credentials of tenant one at the API servers of the admin cluster and
// of tenant two, and at drover.
func wantApart(ctx context.Context, t *testing.T, f *farm.Farm) {
	t.Helper()
	admin, err := tenants.Admin(f)
	if err != nil {
		t.Fatal(err)
	}
	one := connection(ctx, t, f, admin, "one")
	two := connection(ctx, t, f, admin, "two")
	cluster, err := clientcmd.BuildConfigFromFlags("", f.Admin)
	if err != nil {
		t.Fatal(err)
	}
	certificate := rest.TLSClientConfig{CertData: one.CertData, KeyData: one.KeyData}
	credentials := map[string]*rest.Config{"the administrator's certificate": {TLSClientConfig: certificate}}
	client, err := kubernetes.NewForConfig(one)
	if err != nil {
		t.Fatal(err)
	}
	for _, account := range []string{"drover", "konnectivity-agent", "default"} {
		review, err := client.CoreV1().ServiceAccounts("kube-system").CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		credentials["the token of "+account] = &rest.Config{BearerToken: review.Status.Token}
	}
	for name, conf := range credentials {
		for place, host := range map[string]string{"the admin cluster": cluster.Host, "another tenant": two.Host, "drover": "https://" + farm.Address + ":8443", "drover's own host": "http://127.0.0.1:8443"} {
			conf := rest.CopyConfig(conf)
			conf.Host, conf.Dial, conf.Insecure, conf.Timeout = host, f.Dial, true, 30*time.Second
			wantUnauthorized(ctx, t, name+" at "+place, conf)
		}
		own := rest.CopyConfig(conf)
		own.Host, own.Dial, own.Insecure = one.Host, f.Dial, true
		if _, err := kubernetes.NewForConfigOrDie(own).Discovery().ServerVersion(); err != nil {
			t.Errorf("%s at its own tenant: %v", name, err)
		}
	}
}

// connection returns the connection of a tenant's administrator.
func connection(ctx context.Context, t *testing.T, f *farm.Farm, admin kubernetes.Interface, tenant string) *rest.Config {
	t.Helper()
	conf, err := tenants.Administrator(ctx, f, admin, tenant)
	if err != nil {
		t.Fatal(err)
	}
	return conf
}

// wantUnauthorized fails the test unless a server refuses to know a user, or does not listen
// there.
func wantUnauthorized(ctx context.Context, t *testing.T, what string, conf *rest.Config) {
	t.Helper()
	transport, err := rest.TransportFor(conf)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/v1/nodes", "/api/v1/namespaces/farm/secrets", "/api/v1/boots"} {
		status, err := statusOf(ctx, transport, conf.Host+path)
		switch {
		case err != nil && strings.Contains(err.Error(), "connection refused"):
		case err != nil:
			t.Errorf("%s, %s: %v", what, path, err)
		case status != http.StatusUnauthorized:
			t.Errorf("%s, %s: status %d, want Unauthorized", what, path, status)
		}
	}
}

// statusOf returns the status of the answer to a GET. It waits when it is told to: drover
// answers a few wrong tokens in a row, and then one every three seconds.
func statusOf(ctx context.Context, transport http.RoundTripper, url string) (int, error) {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return 0, err
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return 0, err
		}
		resp.Body.Close()
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		if resp.StatusCode != http.StatusTooManyRequests {
			return resp.StatusCode, nil
		}
		if err := wait.Sleep(ctx, time.Duration(max(seconds, 1))*time.Second); err != nil {
			return 0, err
		}
	}
}
