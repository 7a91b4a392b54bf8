package kube_test

import (
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/e2e/fixture"
	"drover/kube"
	"drover/kube/cluster"
	"drover/pools"
)

// keep puts a Secret into the cluster; without data it deletes the Secret.
func (s *apiServer) keep(name string, data map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if data == nil {
		delete(s.kept, name)
	} else {
		secret := corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "tenants"}, Data: map[string][]byte{}}
		for k, v := range data {
			secret.Data[k] = []byte(v)
		}
		s.kept[name] = secret
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// selected returns the Secret that a request selects by name.
func (s *apiServer) selected(r *http.Request) (corev1.Secret, bool) {
	name, ok := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	if !ok || !strings.Contains(r.URL.Path, "/namespaces/tenants/") {
		s.t.Errorf("drover asked for more Secrets than one: %s", r.URL)
	}
	secret, ok := s.kept[name]
	return secret, ok
}

func (s *apiServer) getSecrets(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := corev1.SecretList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	if secret, ok := s.selected(r); ok {
		list.Items = append(list.Items, secret)
	}
	s.send(w, 200, list)
}

// eachSecret yields the Secret that a request selects, if it exists.
func (s *apiServer) eachSecret(r *http.Request) iter.Seq[metav1.Object] {
	return func(yield func(metav1.Object) bool) {
		if secret, ok := s.selected(r); ok {
			yield(&secret)
		}
	}
}

// watching returns the number of open watches of Secrets.
func (s *apiServer) watching() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches["/api/v1/namespaces/tenants/secrets"]
}

// config returns the content of the server's kubeconfig, with another token.
func (s *apiServer) config(token string) string {
	text, err := os.ReadFile(s.kubeconfig())
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "the-servers-own-credential", token)
}

// clock is a clock that a test sets.
type clock struct{ seconds atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(1_000_000+c.seconds.Load(), 0) }

// byRef returns a Clusters whose tenant-a has its credentials in a Secret of the admin
// cluster.
func byRef(t *testing.T, admin *apiServer, edit ...func(*pools.Cluster)) (*kube.Clusters, *fixture.Log, *clock) {
	log, clock := new(fixture.Log), new(clock)
	c := &kube.Clusters{Admin: admin.kubeconfig(), Now: clock.now, DeadAfter: 10 * time.Millisecond, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	conf := pools.Cluster{Name: "tenant-a", SecretRef: pools.SecretRef{Namespace: "tenants", Name: "tenant-a-kubeconfig"}}
	for _, e := range edit {
		e(&conf)
	}
	c.Set([]pools.Cluster{conf})
	t.Cleanup(c.Close)
	return c, log, clock
}

// joins returns nil if nodes can join. It waits until the Secret is read.
func joins(t *testing.T, c *kube.Clusters) (err error) {
	t.Helper()
	fixture.Eventually(t, "its kubeconfig is read", func() bool {
		_, err = c.Join(t.Context(), plan(), addr(), "")
		return err == nil || !strings.Contains(err.Error(), "its kubeconfig is not read yet")
	})
	return err
}

// The contents that a Secret may have, and those that are refused.
func TestSecrets(t *testing.T) {
	tenant := newAPIServer(t)
	good := tenant.config("tok")
	host := strings.TrimPrefix(tenant.URL, "https://")
	ca := tenant.ca()
	user := func(s string) string { return strings.Replace(good, "token: tok", s, 1) }
	tests := []struct {
		name          string
		key, endpoint string
		data          map[string]string
		want          string // in the error; empty: nodes can join
	}{
		{"Cluster API", "", "", map[string]string{"value": good}, ""},
		{"Kamaji", "", "", map[string]string{"admin.conf": good, "super-admin.conf": "x"}, ""},
		{"by hand", "", "", map[string]string{"kubeconfig": good}, ""},
		{"by its key", "super-admin.conf", "", map[string]string{"admin.conf": "x", "super-admin.conf": good}, ""},
		{"token", "", host, map[string]string{"ca.crt": ca, "token": "tok\n", "namespace": "kube-system"}, ""},
		{"none", "", "", nil, "there is no Secret tenants/tenant-a-kubeconfig of the admin cluster"},
		{"another key", "", "", map[string]string{"config": good, "x": ""}, "it has none of the keys value, admin.conf, kubeconfig, but config, x; name one with secretRef.key"},
		{"its key is missing", "value", "", map[string]string{"admin.conf": good}, "it has none of the keys value, but admin.conf"},
		{"token, and nobody knows where", "", "", map[string]string{"ca.crt": ca, "token": "tok"}, "name the API server with clusters[].endpoint"},
		{"CA alone", "", host, map[string]string{"ca.crt": ca}, "neither tls.crt and tls.key nor a token"},
		{"no kubeconfig", "", "", map[string]string{"value": "secret-words: ["}, `its "value" is no kubeconfig`},
		{"empty", "", "", map[string]string{"value": ""}, "its kubeconfig cannot be used: its current-context leads to no API server"},
		{"huge", "", "", map[string]string{"value": strings.Repeat("#", 1<<20+1)}, "larger than 1048576 bytes"},
		{"a program", "", "", map[string]string{"value": user("exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, interactiveMode: Never}")}, `its user "u" runs a program (exec)`},
		{"a provider", "", "", map[string]string{"value": user("auth-provider: {name: gcp}")}, `its user "u" has an auth-provider`},
		{"a token file", "", "", map[string]string{"value": user("tokenFile: /var/lib/drover/api.token")}, `its user "u" names files`},
		{"a key file", "", "", map[string]string{"value": user("client-key: /etc/ssl/private/key.pem")}, `its user "u" names files`},
		{"a CA file", "", "", map[string]string{"value": strings.Replace(good, "certificate-authority-data", "certificate-authority", 1)}, `its cluster "c" names a file`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			admin := newAPIServer(t)
			if tt.data != nil {
				admin.keep("tenant-a-kubeconfig", tt.data)
			}
			c, log, _ := byRef(t, admin, func(c *pools.Cluster) { c.SecretRef.Key, c.Endpoint = tt.key, tt.endpoint })
			err := joins(t, c)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if strings.Contains(log.String(), "secret-words") || err != nil && strings.Contains(err.Error(), "secret-words") {
				t.Errorf("content of a Secret is in the log or the error: %v\n%s", err, log)
			}
		})
	}
}

// A Secret is rotated, broken, deleted and created again while drover runs.
func TestSecretChanges(t *testing.T) {
	const name = "tenant-a-kubeconfig"
	admin, tenant, moved := newAPIServer(t), newAPIServer(t), newAPIServer(t)
	admin.keep(name, map[string]string{"value": tenant.config("first")})
	c, log, clock := byRef(t, admin)
	if err := joins(t, c); err != nil {
		t.Fatal(err)
	}

	admin.keep(name, map[string]string{"value": moved.config("second")})
	fixture.Eventually(t, "the new credentials in force", func() bool { return joins(t, c) == nil && moved.count("POST secrets") > 0 })

	// A bad Secret does not replace the good one, but is reported.
	admin.keep(name, map[string]string{"value": "["})
	fixture.Eventually(t, "the bad one noticed", func() bool { return strings.Contains(log.String(), "no usable kubeconfig") })
	if err := joins(t, c); err != nil {
		t.Errorf("with a bad Secret: %v, want the earlier credentials in force", err)
	}
	if err := c.Check(t.Context())["tenant-a"]; err == nil || !strings.Contains(err.Error(), `the one before is still in force: Secret tenants/tenant-a-kubeconfig of the admin cluster: its "value" is no kubeconfig`) {
		t.Errorf("check: %v", err)
	}

	// The admin cluster is down: nothing changes for the tenants.
	admin.set("GET secrets", fail(500, "InternalError", "no leader"))
	admin.set("WATCH secrets", fail(500, "InternalError", "no leader"))
	admin.CloseClientConnections()
	fixture.Eventually(t, "the outage noticed", func() bool { return strings.Contains(log.String(), "cannot read cluster Secret") })
	if err := joins(t, c); err != nil {
		t.Errorf("during an outage of the admin cluster: %v", err)
	}
	admin.keep(name, nil)
	admin.set("GET secrets", nil)
	admin.set("WATCH secrets", nil)
	fixture.Eventually(t, "the deletion noticed", func() bool {
		err := joins(t, c)
		return err != nil && strings.Contains(err.Error(), `cluster "tenant-a": connect: its kubeconfig cannot be used: there is no Secret`)
	})
	clock.seconds.Add(60)
	if err := c.Check(t.Context())["tenant-a"]; err == nil || !strings.Contains(err.Error(), "there is no Secret") {
		t.Errorf("check: %v", err)
	}
	admin.keep(name, map[string]string{"value": tenant.config("third")})
	fixture.Eventually(t, "it is back", func() bool { return joins(t, c) == nil })
	for _, secret := range []string{"first", "second", "third"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the credentials are in the log: %s", log)
		}
	}
}

// A node that joins while the credentials change gets an error with a retry time: the
// cluster of the new credentials never signs its token.
func TestSecretChangesDuringJoin(t *testing.T) {
	const name = "tenant-a-kubeconfig"
	admin, tenant, moved := newAPIServer(t), newAPIServer(t), newAPIServer(t)
	tenant.unsigned = true
	admin.keep(name, map[string]string{"value": tenant.config("first")})
	c, _, _ := byRef(t, admin)
	joined := make(chan error, 1)
	go func() { joined <- joins(t, c) }()
	fixture.Eventually(t, "a token minted", func() bool { return tenant.count("POST secrets") > 0 })
	admin.keep(name, map[string]string{"value": moved.config("second")})
	err := <-joined
	if err == nil || !strings.Contains(err.Error(), "wait for the signature of a join token: its credentials have just changed") {
		t.Errorf("got %v", err)
	}
	if busy, ok := errors.AsType[*cluster.Error](err); !ok || busy.RetryAfter() > 5*time.Second {
		t.Errorf("got %v, want to be asked again soon", err)
	}
	if err := joins(t, c); err != nil {
		t.Error(err)
	}
}

// The Secret of a cluster that was removed from the config is no longer watched.
func TestSecretIsUnwatched(t *testing.T) {
	admin, tenant := newAPIServer(t), newAPIServer(t)
	admin.keep("tenant-a-kubeconfig", map[string]string{"value": tenant.config("tok")})
	c, _, _ := byRef(t, admin)
	if err := joins(t, c); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "watched", func() bool { return admin.watching() == 1 })
	c.Set(nil)
	fixture.Eventually(t, "watched no more", func() bool { return admin.watching() == 0 })
}

// Errors of the admin cluster itself.
func TestAdminCluster(t *testing.T) {
	t.Run("drover does not run in a cluster", func(t *testing.T) {
		t.Setenv("KUBERNETES_SERVICE_HOST", "")
		c := &kube.Clusters{}
		c.Set([]pools.Cluster{{Name: "tenant-a", SecretRef: pools.SecretRef{Namespace: "tenants", Name: "x"}}})
		defer c.Close()
		if err := joins(t, c); err == nil || !strings.Contains(err.Error(), "server.adminKubeconfig is not set, and drover does not run in a cluster") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no such file", func(t *testing.T) {
		c := &kube.Clusters{Admin: filepath.Join(t.TempDir(), "none")}
		c.Set([]pools.Cluster{{Name: "tenant-a", SecretRef: pools.SecretRef{Namespace: "tenants", Name: "x"}}})
		defer c.Close()
		if err := joins(t, c); err == nil || !strings.Contains(err.Error(), "server.adminKubeconfig") || !strings.Contains(err.Error(), "no such file") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no right", func(t *testing.T) {
		admin := newAPIServer(t)
		admin.set("GET secrets", fail(403, "Forbidden", "secrets is forbidden"))
		c, _, _ := byRef(t, admin)
		if err := joins(t, c); err == nil || !strings.Contains(err.Error(), "drover may not get, list and watch it") {
			t.Errorf("got %v", err)
		}
	})
}

// A kubeconfig file that is broken or gone while drover runs.
func TestKubeconfigFileChanges(t *testing.T) {
	s := newAPIServer(t)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	write := func(text string, age time.Duration) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(age) // file times may be coarse
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write(s.config("tok"), 0)
	c, _ := newClusters(t, path)
	if err := joins(t, c); err != nil {
		t.Fatal(err)
	}
	write("[", time.Hour)
	if err := joins(t, c); err != nil {
		t.Errorf("with a bad file: %v, want the earlier credentials in force", err)
	}
	if err := c.Check(t.Context())["tenant-a"]; err == nil || !strings.Contains(err.Error(), "the one before is still in force") {
		t.Errorf("check: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := joins(t, c); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("without a file: %v", err)
	}
	write(s.config("tok"), 2*time.Hour)
	if err := joins(t, c); err != nil {
		t.Error(err)
	}
}
