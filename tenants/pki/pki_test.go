package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/tenants/pki"
)

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func newAuthority(t *testing.T) (*pki.Authority, map[string][]byte) {
	t.Helper()
	data, err := pki.NewAuthority("tenant-a", start)
	if err != nil {
		t.Fatal(err)
	}
	a, err := pki.LoadAuthority(data)
	if err != nil {
		t.Fatal(err)
	}
	return a, data
}

func issue(t *testing.T, a *pki.Authority, l pki.Leaf) pki.Pair {
	t.Helper()
	p, err := a.Issue(l, start)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestIssue(t *testing.T) {
	a, _ := newAuthority(t)
	p := issue(t, a, pki.Leaf{File: "apiserver", Name: "kube-apiserver", Hosts: []string{"10.0.0.1", "kubernetes", "fd00::1"}})
	if _, err := tls.X509KeyPair(p.Cert, p.Key); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(p.Cert)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.Trust)
	for _, name := range []string{"10.0.0.1", "kubernetes", "fd00::1"} {
		if _, err := cert.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: start}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := cert.Verify(x509.VerifyOptions{DNSName: "10.0.0.2", Roots: roots, CurrentTime: start}); err == nil {
		t.Error("a name that it does not have is good")
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: start, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err == nil {
		t.Error("the certificate of a server is one of a client too")
	}
	if got, want := p.Ends(), start.AddDate(1, 0, 0); !got.Equal(want) {
		t.Errorf("it ends on %s, want %s", got, want)
	}
}

func TestStale(t *testing.T) {
	a, _ := newAuthority(t)
	other, _ := newAuthority(t)
	client := pki.Leaf{File: "scheduler", Name: "system:kube-scheduler", Groups: []string{"b", "a"}}
	server := pki.Leaf{File: "apiserver", Name: "kube-apiserver", Hosts: []string{"10.0.0.1", "kubernetes"}}
	whole := pki.Leaf{File: "konnectivity", Name: "konnectivity", Hosts: []string{"10.0.0.1"}, Whole: true}
	pairOf := map[string]pki.Pair{}
	for _, l := range []pki.Leaf{client, server, whole} {
		pairOf[l.File] = issue(t, a, l)
	}
	swapped := pki.Pair{Cert: pairOf["apiserver"].Cert, Key: pairOf["scheduler"].Key}
	day := 24 * time.Hour
	reordered, more, fewer, renamed, regrouped, purpose := server, server, server, client, client, server
	reordered.Hosts = []string{"kubernetes", "10.0.0.1", "kubernetes"}
	more.Hosts = append(slices.Clone(server.Hosts), "api.example.com")
	fewer.Hosts = server.Hosts[:1]
	renamed.Name = "system:kube-controller-manager"
	regrouped.Groups = nil
	purpose.Hosts = nil
	tests := []struct {
		name  string
		a     *pki.Authority
		pair  pki.Pair
		leaf  pki.Leaf
		after time.Duration
		want  string
	}{
		{"new", a, pairOf["apiserver"], server, 0, ""},
		{"new client", a, pairOf["scheduler"], client, 0, ""},
		{"two thirds of its life", a, pairOf["apiserver"], server, 240 * day, ""},
		{"a third is left", a, pairOf["apiserver"], server, 244 * day, "it ends on 2027-11-01"},
		{"ended", a, pairOf["apiserver"], server, 400 * day, "it ends on 2027-11-01"},
		{"as long as its CA", a, pairOf["konnectivity"], whole, 8 * 365 * day, ""},
		{"other order of names", a, pairOf["apiserver"], reordered, 0, ""},
		{"a name more", a, pairOf["apiserver"], more, 0, "its names have changed"},
		{"a name less", a, pairOf["apiserver"], fewer, 0, "its names have changed"},
		{"another user", a, pairOf["scheduler"], renamed, 0, "its user has changed"},
		{"other groups", a, pairOf["scheduler"], regrouped, 0, "its user has changed"},
		{"a server becomes a client", a, pairOf["apiserver"], purpose, 0, "its names have changed"},
		{"another CA", other, pairOf["apiserver"], server, 0, "its CA has changed"},
		{"key of another", a, swapped, server, 0, "its key is another's"},
		{"none", a, pki.Pair{}, server, 0, "it is missing or broken"},
		{"no key", a, pki.Pair{Cert: pairOf["apiserver"].Cert}, server, 0, "its key is missing or broken"},
		{"broken", a, pki.Pair{Cert: []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")}, server, 0, "it is missing or broken"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.a.Stale(tt.pair, tt.leaf, start.Add(tt.after)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// During a rotation the bundle has the certificates of the old and the new CA.
func TestRotationOverlaps(t *testing.T) {
	_, before := newAuthority(t)
	_, after := newAuthority(t)
	data := maps.Clone(after)
	data[pki.Bundle] = append(slices.Clone(after[pki.Bundle]), before[pki.Bundle]...)
	a, err := pki.LoadAuthority(data)
	if err != nil {
		t.Fatal(err)
	}
	old, err := pki.LoadAuthority(before)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.Trust)
	for _, signer := range []*pki.Authority{old, a} {
		block, _ := pem.Decode(issue(t, signer, pki.Leaf{File: "x", Name: "x", Hosts: []string{"x"}}).Cert)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: start}); err != nil {
			t.Error(err)
		}
	}
}

func TestBrokenAuthority(t *testing.T) {
	a, data := newAuthority(t)
	_, other := newAuthority(t)
	leaf := issue(t, a, pki.Leaf{File: "x", Name: "x"})
	tests := []struct {
		name, key string
		value     []byte
		want      string
	}{
		{"no certificate", pki.SigningCert, nil, "tls.crt: no certificate in PEM"},
		{"text", pki.SigningCert, []byte("hello"), "tls.crt: not only certificates in PEM"},
		{"no key", pki.SigningKey, nil, "tls.key: no key in PEM"},
		{"key of another", pki.SigningKey, other[pki.SigningKey], "tls.key: not the key of tls.crt"},
		{"a leaf", pki.SigningCert, leaf.Cert, "tls.crt: not the certificate of a CA"},
		{"other bundle", pki.Bundle, other[pki.Bundle], "ca.crt: does not have the certificate of tls.crt"},
		{"key in the bundle", pki.Bundle, data[pki.SigningKey], "ca.crt: not only certificates in PEM"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			broken := maps.Clone(data)
			broken[tt.key] = tt.value
			_, err := pki.LoadAuthority(broken)
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), string(data[pki.SigningKey])) {
				t.Error("the error quotes the key")
			}
		})
	}
}

func TestEndedAuthority(t *testing.T) {
	a, _ := newAuthority(t)
	_, err := a.Issue(pki.Leaf{File: "apiserver", Name: "x"}, start.AddDate(11, 0, 0))
	if err == nil || !strings.Contains(err.Error(), "its CA ended on 2036-10-29") {
		t.Errorf("got %v", err)
	}
	p, err := a.Issue(pki.Leaf{File: "apiserver", Name: "x"}, a.Ends().AddDate(0, -1, 0))
	if err != nil || p.Ends().After(a.Ends()) {
		t.Errorf("a certificate ends on %s, its CA on %s (%v)", p.Ends(), a.Ends(), err)
	}
}

func TestServiceAccountKeys(t *testing.T) {
	data, err := pki.ServiceAccountKeys()
	if err != nil {
		t.Fatal(err)
	}
	if err := pki.CheckServiceAccountKeys(data); err != nil {
		t.Error(err)
	}
	other, err := pki.ServiceAccountKeys()
	if err != nil {
		t.Fatal(err)
	}
	overlap := maps.Clone(data)
	overlap[pki.AccountPublic] = append(slices.Clone(other[pki.AccountPublic]), data[pki.AccountPublic]...)
	if err := pki.CheckServiceAccountKeys(overlap); err != nil {
		t.Errorf("two public keys: %v", err)
	}
	data[pki.AccountPublic] = other[pki.AccountPublic]
	if err := pki.CheckServiceAccountKeys(data); err == nil || err.Error() != "sa.pub: does not have the public key of sa.key" {
		t.Errorf("got %v", err)
	}
}

func TestKubeconfigNamesFiles(t *testing.T) {
	text, err := pki.Kubeconfig("tenant-a", "https://127.0.0.1:6443", "/pki/ca.crt", nil, pki.User{CertFile: "/pki/x.crt", KeyFile: "/pki/x.key"})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "-data") || !strings.Contains(string(text), `"client-certificate": "/pki/x.crt"`) {
		t.Errorf("got %s", text)
	}
}
