package cluster_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"drover/kube/cluster"
	"drover/pools"
)

// TestExpiry: the end of the credentials in a kubeconfig, and nothing of files that
// others renew.
func TestExpiry(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	jwt := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now, NotAfter: now.AddDate(10, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	b64 := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	cert := "client-certificate-data: " + b64("CERTIFICATE", der) + ", client-key-data: " + b64("PRIVATE KEY", private)
	for _, tt := range []struct {
		name, user string
		want       time.Time
	}{
		{"token with an end", "token: " + jwt(`{"exp":1900000000}`), time.Unix(1900000000, 0)},
		{"token without an end", "token: " + jwt(`{"sub":"drover"}`), time.Time{}},
		{"end that is no number", "token: " + jwt(`{"exp":"soon"}`), time.Time{}},
		{"end before all time", "token: " + jwt(`{"exp":-1}`), time.Time{}},
		{"end after all time", "token: " + jwt(`{"exp":1e300}`), time.Time{}},
		{"no base64", "token: a.!.b", time.Time{}},
		{"no token of that form", "token: abc.def", time.Time{}},
		{"certificate", cert, template.NotAfter},
		{"certificate, and a token that ends before", cert + ", token: " + jwt(`{"exp":1800000000}`), time.Unix(1800000000, 0)},
		{"file of a token", "tokenFile: /var/run/token", time.Time{}},
		{"password", "username: drover, password: secret", time.Time{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubeconfig")
			text := `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}],
contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {` + tt.user + `}}]}`
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			got := cluster.Expiry(cluster.New(pools.Cluster{Name: "c"}, path, time.Now).Client())
			if !got.Equal(tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	if got := cluster.Expiry(cluster.New(pools.Cluster{Name: "c"}, "missing", time.Now).Client()); !got.IsZero() {
		t.Errorf("no kubeconfig: got %v", got)
	}
}
