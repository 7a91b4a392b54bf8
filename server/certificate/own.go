package certificate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"drover/internal/atomicfile"
	"drover/pools"
	"drover/tenants/pki"
)

// The files of an authority of drover's own. The first has its key and its certificate, mode
// 0600; the second is the certificate alone, for clients.
const (
	OwnKey  = "api-ca.key"
	OwnCert = "api-ca.crt"
)

// leafLife is how long a certificate of [Own] is valid. A new one is issued when a third is
// left.
const leafLife = 90 * 24 * time.Hour

// Own is an authority that drover makes, and a certificate that it issues. The key of the
// certificate is in memory alone: clients trust the authority, which is in files.
type Own struct {
	Dir   string          // of the files
	Names func() []string // addresses and DNS names of the server, at the moment
	Log   *slog.Logger
	Now   func() time.Time

	authority *pki.Authority
	cert      *x509.Certificate // of the authority

	mu      sync.Mutex
	pair    pki.Pair
	leaf    *tls.Certificate
	checked time.Time
}

// Open reads the authority, or makes it, and issues a certificate.
func (o *Own) Open() error {
	file := filepath.Join(o.Dir, OwnKey)
	_, isNew, err := atomicfile.ReadOrMakeKey(file, o.load, func() ([]byte, error) {
		data, err := pki.NewAuthority("drover API", o.Now())
		return append(data[pki.SigningKey], data[pki.SigningCert]...), err
	})
	if err != nil {
		return err
	}
	if isNew {
		o.Log.Info("made the certificate authority of the API", "file", file)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: certBlock, Bytes: o.cert.Raw})
	if old, err := atomicfile.Read(o.File(), maxFile); err != nil || !bytes.Equal(old, public) {
		if err := atomicfile.Write(o.File(), public, 0o644); err != nil {
			return err
		}
	}
	o.checked = o.Now()
	return o.renew(o.checked)
}

const (
	certBlock = "CERTIFICATE"
	maxFile   = 1 << 20 // bytes
)

// load reads the authority from the text of its file.
func (o *Own) load(text []byte) (err error) {
	var key, cert []byte
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == certBlock {
			cert = pem.EncodeToMemory(block)
		} else {
			key = pem.EncodeToMemory(block)
		}
	}
	if o.authority, err = pki.LoadAuthority(map[string][]byte{pki.SigningKey: key, pki.SigningCert: cert, pki.Bundle: cert}); err != nil {
		return pools.Hint("restore it from a backup; or remove it: drover makes another one, and clients log in again",
			"it does not have the key and the certificate of an authority")
	}
	o.cert, err = ParseCert(cert)
	return err
}

// File implements [Source].
func (o *Own) File() string { return filepath.Join(o.Dir, OwnCert) }

// ParseCert reads the first certificate of a text in PEM.
func ParseCert(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("its certificate is not PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}

// renew issues a certificate if there is a reason to: there is none, it ends, or the server has
// other names.
func (o *Own) renew(now time.Time) error {
	want := pki.Leaf{File: "api", Name: "drover", Hosts: o.Names(), Life: leafLife}
	why := o.authority.Stale(o.pair, want, now)
	if why == "" {
		return nil
	}
	pair, err := o.authority.Issue(want, now)
	if err != nil {
		return err
	}
	leaf, err := tls.X509KeyPair(append(bytes.Clone(pair.Cert), o.authority.Trust...), pair.Key)
	if err != nil {
		return err
	}
	if o.leaf != nil {
		o.Log.Info("server.apiTLS: the certificate was issued anew", "why", why, "until", leaf.Leaf.NotAfter, "names", fmt.Sprint(want.Hosts))
	}
	o.pair, o.leaf = pair, &leaf
	return nil
}

// Current implements [Source].
func (o *Own) Current() *tls.Certificate {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := o.Now(); now.Sub(o.checked).Abs() >= checkEvery {
		o.checked = now
		if err := o.renew(now); err != nil {
			o.Log.Error("server.apiTLS: the certificate was not issued anew, and the one before stays in use", "err", err)
		}
	}
	return o.leaf
}

// Pinned implements [Source]: clients know the server by its authority, which stays.
func (o *Own) Pinned() *x509.Certificate { return o.cert }
