package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// The keys of the Secret of an authority. The names are those that Cluster API reads.
const (
	SigningCert = "tls.crt"
	SigningKey  = "tls.key"
	Bundle      = "ca.crt"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	// early is the time before now at which certificates begin to be valid: clocks
	// of nodes differ.
	early = 5 * time.Minute
)

// Authority is a certificate authority.
type Authority struct {
	// Trust has the certificates, in PEM, that verify what this authority and, during
	// a rotation, the one before it have signed.
	Trust []byte

	cert *x509.Certificate
	key  crypto.Signer
}

// NewAuthority makes an authority and returns the data of its Secret.
func NewAuthority(name string, now time.Time) (map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-early),
		NotAfter:              now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	cert, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	text, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{SigningCert: cert, SigningKey: text, Bundle: cert}, nil
}

// LoadAuthority reads the data of the Secret of an authority. Errors name the key of the
// Secret, and never quote its content.
func LoadAuthority(data map[string][]byte) (*Authority, error) {
	certs, err := decodeCerts(data[SigningCert])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", SigningCert, err)
	}
	key, err := decodeKey(data[SigningKey])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", SigningKey, err)
	}
	trusted, err := decodeCerts(data[Bundle])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Bundle, err)
	}
	a := &Authority{Trust: data[Bundle], cert: certs[0], key: key}
	switch public, ok := a.cert.PublicKey.(*ecdsa.PublicKey); {
	case !a.cert.IsCA:
		return nil, fmt.Errorf("%s: not the certificate of a CA", SigningCert)
	case !ok || !public.Equal(key.Public()):
		return nil, fmt.Errorf("%s: not the key of %s", SigningKey, SigningCert)
	}
	for _, c := range trusted {
		if c.Equal(a.cert) {
			return a, nil
		}
	}
	return nil, fmt.Errorf("%s: does not have the certificate of %s", Bundle, SigningCert)
}

// Ends returns the end of the authority's own certificate.
func (a *Authority) Ends() time.Time { return a.cert.NotAfter }

// sign makes a certificate, in PEM, with a random serial number.
func sign(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// decodeKey reads an ECDSA key in SEC 1 or PKCS #8.
func decodeKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no key in PEM")
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("no ECDSA key") // the error may quote the key
	}
	if key, ok := key.(*ecdsa.PrivateKey); ok {
		return key, nil
	}
	return nil, errors.New("no ECDSA key")
}

// decodeCerts reads one or more certificates.
func decodeCerts(text []byte) (certs []*x509.Certificate, err error) {
	for len(bytes.TrimSpace(text)) > 0 {
		block, rest := pem.Decode(text)
		if block == nil || block.Type != "CERTIFICATE" {
			return nil, errors.New("not only certificates in PEM")
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certs, text = append(certs, cert), rest
	}
	if len(certs) == 0 {
		return nil, errors.New("no certificate in PEM")
	}
	return certs, nil
}
