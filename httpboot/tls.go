package httpboot

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
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	"drover/internal/atomicfile"
)

// TLS is the HTTPS side of the listener. It serves only the paths below /node/:
// config, join and events. Nodes authenticate it by the digest of its key, which is on
// their kernel command line, so they need no certificate authority and no clock. Images
// stay on the plain listener, which can use sendfile; their digest protects them.
type TLS struct {
	Addr        string // TCP address of [Server.ListenTLS]
	Certificate tls.Certificate
}

// Pin returns the SHA-256 of the certificate's public key (its SubjectPublicKeyInfo), as
// on the kernel command line: sha256: and hex digits. It is empty if t is nil.
func (t *TLS) Pin() (string, error) {
	if t == nil {
		return "", nil
	}
	if len(t.Certificate.Certificate) == 0 {
		return "", errors.New("there is no certificate")
	}
	leaf, err := x509.ParseCertificate(t.Certificate.Certificate[0])
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(leaf.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

func (t *TLS) config() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{t.Certificate}, MinVersion: tls.VersionTLS13}
}

// ListenTLS binds the socket of [Server.TLS]. Pass it to [Server.Serve].
func (s *Server) ListenTLS() (net.Listener, error) { return net.Listen("tcp", s.TLS.Addr) }

// NodeKey returns a new certificate for the key in a file. It makes the key if the file
// does not exist; isNew reports that. The certificate changes each time, since nodes
// check only the key.
func NodeKey(file string) (c tls.Certificate, isNew bool, err error) {
	var key *ecdsa.PrivateKey
	_, isNew, err = atomicfile.ReadOrMakeKey(file, func(data []byte) (err error) {
		key, err = parseKey(data)
		return err
	}, makeKey)
	if err != nil {
		return c, false, fmt.Errorf("key of the HTTPS listener: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: "drover"},
		NotBefore:    time.Unix(0, 0),
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // RFC 5280, 4.1.2.5: no end
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return c, false, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, isNew, nil
}

// parseKey reads the content of a key file.
func parseKey(data []byte) (*ecdsa.PrivateKey, error) {
	if block, _ := pem.Decode(data); block != nil {
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if key, ok := key.(*ecdsa.PrivateKey); ok {
				return key, nil
			}
		}
	}
	return nil, errors.New("it holds no private key: restore it, or remove it to have a new one made")
}

// makeKey returns the content of a new key file.
func makeKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}
