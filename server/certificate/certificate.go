// Package certificate has the certificate of the people-facing listener: of the operator's
// [Files], or of an authority that drover makes once ([Own]). Both are renewed while the server
// runs. [Pin] is how clients know the server without an authority of their host.
//
// The package knows neither the config nor the listener.
package certificate

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
)

// Source gives the certificate in use.
type Source interface {
	// Current is for each handshake; it never returns nil.
	Current() *tls.Certificate
	// Pinned returns the certificate whose key clients pin.
	Pinned() *x509.Certificate
	// File is the PEM file whose first certificate is that of Pinned.
	File() string
}

// Pin returns the SHA-256 of the public key of a certificate, for drover login --pin.
func Pin(c *x509.Certificate) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256(c.RawSubjectPublicKeyInfo))
}

// Config returns the config of a listener with the certificate of a source.
func Config(s Source) *tls.Config {
	return &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.Current(), nil }, MinVersion: tls.VersionTLS12,
	}
}
