package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// clientCert makes an authority and a client certificate of it. Usage: clientcert NAME CA CERT KEY.
func clientCert(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: clientcert NAME CA CERT KEY")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	valid := x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	ca, leaf := valid, valid
	ca.Subject, ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = pkix.Name{CommonName: "people"}, true, true, x509.KeyUsageCertSign
	leaf.Subject, leaf.ExtKeyUsage = pkix.Name{CommonName: args[0]}, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for file, c := range map[string]*x509.Certificate{args[1]: &ca, args[2]: &leaf} {
		der, err := x509.CreateCertificate(rand.Reader, c, &ca, &key.PublicKey, key)
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(file), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[3]), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}
