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
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Secure is a listener with TLS for what is below /node/: config, join and
// events. Nodes know it by the digest of its key, which is on their kernel
// command line: they need no certificate authority and no clock. Images stay on
// the plain listener, where sendfile is, and are known by their digest.
type Secure struct {
	Addr        string // where [Server.ListenSecure] listens
	URL         string // what nodes are told to come to, such as https://10.28.0.2:8444
	Certificate tls.Certificate
}

// Pin returns the SHA-256 of the certificate's public key (its
// SubjectPublicKeyInfo), in hex.
func (s *Secure) Pin() (string, error) { return pin(s.Certificate) }

func pin(c tls.Certificate) (string, error) {
	if len(c.Certificate) == 0 {
		return "", errors.New("there is no certificate")
	}
	leaf, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(leaf.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:]), nil
}

// Config is how the listener talks TLS.
func (s *Secure) Config() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{s.Certificate}, MinVersion: tls.VersionTLS13}
}

// args are the words of the kernel command line that tell a node of the
// listener; none when there is none.
func (s *Secure) args() ([]string, error) {
	if s == nil {
		return nil, nil
	}
	pin, err := s.Pin()
	if err != nil {
		return nil, fmt.Errorf("key of the HTTPS listener: %w", err)
	}
	return []string{"drover.https=" + s.URL, "drover.pin=sha256:" + pin}, nil
}

// ListenSecure binds the socket of [Server.Secure]. Pass it to [Server.Serve].
func (s *Server) ListenSecure() (net.Listener, error) { return net.Listen("tcp", s.Secure.Addr) }

// NodeKey returns a certificate for the key in a file, and makes the key if
// there is none. The certificate is made anew each time: nodes look at the key
// alone.
func NodeKey(file string) (c tls.Certificate, isNew bool, err error) {
	key, err := readKey(file)
	if errors.Is(err, fs.ErrNotExist) {
		isNew = true
		key, err = makeKey(file)
	}
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

func readKey(file string) (*ecdsa.PrivateKey, error) {
	if fi, err := os.Stat(file); err != nil {
		return nil, err
	} else if fi.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s: others can read it (mode %s): chmod 600, or remove it to have a new one made", file, fi.Mode().Perm())
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if block, _ := pem.Decode(b); block != nil {
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if key, ok := key.(*ecdsa.PrivateKey); ok {
				return key, nil
			}
		}
	}
	return nil, fmt.Errorf("%s holds no private key: restore it, or remove it to have a new one made", file)
}

// makeKey writes a new key, whole or not at all: every node that boots is told
// its digest.
func makeKey(file string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".key-*") // for its owner only
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	return key, os.Rename(f.Name(), file)
}
