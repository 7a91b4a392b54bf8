package contexts_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"drover/cmd/drover/cli/contexts"
)

// party is a certificate with its key.
type party struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue makes a certificate that by signs; nil: itself. An authority has no names.
func issue(t *testing.T, by *party, names ...string) *party {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "drover"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: names, IsCA: len(names) == 0, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	p := &party{c, key}
	if by == nil {
		by = p
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by.cert, &key.PublicKey, by.key)
	if err != nil {
		t.Fatal(err)
	}
	if p.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *party) pin() string {
	sum := sha256.Sum256(p.cert.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (p *party) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.cert.Raw}))
}

// shake returns the error of a client with the trust of x, which meets a server that has the first
// certificate and sends all of them.
func shake(t *testing.T, x contexts.Context, chain ...*party) error {
	t.Helper()
	config, err := x.TLS()
	if err != nil {
		t.Fatal(err)
	}
	config = config.Clone()
	config.ServerName = "drover.example.org"
	pair := tls.Certificate{PrivateKey: chain[0].key}
	for _, p := range chain {
		pair.Certificate = append(pair.Certificate, p.cert.Raw)
	}
	client, server := net.Pipe()
	defer client.Close()
	go func() {
		defer server.Close()
		_ = tls.Server(server, &tls.Config{Certificates: []tls.Certificate{pair}}).Handshake()
	}()
	return tls.Client(client, config).Handshake()
}

// TestPin: a server is known by its own key, or by an authority's that has signed its certificate
// for the host of the URL. To send the certificate of the authority is no proof: anyone has it.
func TestPin(t *testing.T) {
	const name, url = "drover.example.org", "https://drover.example.org:8443"
	ca, other := issue(t, nil), issue(t, nil)
	leaf, self, elsewhere := issue(t, ca, name), issue(t, nil, name), issue(t, ca, "elsewhere.example.org")
	between := issue(t, ca)
	below, forged := issue(t, between, name), issue(t, other, name)
	for what, tt := range map[string]struct {
		x     contexts.Context
		chain []*party
		want  string // a part of the error; "": it is known
	}{
		"its key":                          {contexts.Context{Pin: self.pin()}, []*party{self}, ""},
		"its key, elsewhere":               {contexts.Context{Pin: elsewhere.pin()}, []*party{elsewhere}, ""},
		"without the scheme":               {contexts.Context{Pin: strings.TrimPrefix(self.pin(), "sha256:")}, []*party{self}, ""},
		"its authority":                    {contexts.Context{Pin: ca.pin()}, []*party{leaf, ca}, ""},
		"an authority two above":           {contexts.Context{Pin: ca.pin()}, []*party{below, between, ca}, ""},
		"another key":                      {contexts.Context{Pin: other.pin()}, []*party{self}, "has the key " + self.pin()},
		"an authority that is not sent":    {contexts.Context{Pin: ca.pin()}, []*party{leaf}, "has the key " + leaf.pin()},
		"an authority that has not signed": {contexts.Context{Pin: ca.pin()}, []*party{forged, ca}, "signed by unknown authority"},
		"nor what is between":              {contexts.Context{Pin: ca.pin()}, []*party{forged, other, ca}, "signed by unknown authority"},
		"for another host":                 {contexts.Context{Pin: ca.pin()}, []*party{elsewhere, ca}, "add drover.example.org to server.apiTLS.names there"},
		"a CA":                             {contexts.Context{CA: ca.pem()}, []*party{leaf}, ""},
		"a CA, for another host":           {contexts.Context{CA: ca.pem()}, []*party{elsewhere}, "elsewhere.example.org"},
		"another CA":                       {contexts.Context{CA: other.pem()}, []*party{leaf, ca}, "unknown authority"},
	} {
		tt.x.URL = url
		if err := shake(t, tt.x, tt.chain...); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", what, err, tt.want)
		}
	}
}

func TestTrust(t *testing.T) {
	for _, x := range []contexts.Context{{Pin: "sha256:00"}, {Pin: strings.Repeat("zz", 32)}, {CA: "none"}, {ClientCert: "/nowhere", ClientKey: "/nowhere"}} {
		if config, err := x.TLS(); err == nil {
			t.Errorf("%+v: got %+v", x, config)
		}
	}
	if config, err := (contexts.Context{}).TLS(); config != nil || err != nil { // that of this host
		t.Errorf("got %+v, %v", config, err)
	}
}
