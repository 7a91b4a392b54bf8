package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// leafLife is how long a certificate is valid. It is renewed when a third is left.
const leafLife = 365 * 24 * time.Hour

// Leaf describes the certificate of a server or a client.
type Leaf struct {
	File   string   // the keys of its Secret are File.crt and File.key
	Name   string   // common name: the user's name
	Groups []string // organizations: the user's groups
	Hosts  []string // addresses and DNS names of a server; without any it is a client
	// Whole makes the certificate valid as long as its authority: its program does not
	// read it again.
	Whole bool
	// Life is how long the certificate is valid; zero is a year.
	Life time.Duration
}

// Pair is a certificate and its key, in PEM.
type Pair struct{ Cert, Key []byte }

// Issue makes a new key and its certificate, which does not outlive the authority.
func (a *Authority) Issue(l Leaf, now time.Time) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	end := now.Add(leafLife)
	if l.Life > 0 {
		end = now.Add(l.Life)
	}
	if l.Whole || end.After(a.cert.NotAfter) {
		end = a.cert.NotAfter
	}
	if !end.After(now) {
		return Pair{}, fmt.Errorf("certificate %s: its CA ended on %s", l.File, a.cert.NotAfter.UTC().Format(time.DateOnly))
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: l.Name, Organization: l.Groups},
		NotBefore:             now.Add(-early),
		NotAfter:              end,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{l.usage()},
		BasicConstraintsValid: true,
	}
	template.IPAddresses, template.DNSNames = l.names()
	cert, err := sign(template, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, err
	}
	text, err := encodeKey(key)
	return Pair{Cert: cert, Key: text}, err
}

// Stale returns the reason to issue a certificate anew, or "" if it is good: it is of this
// authority, is as the leaf describes, and more than a third of its life is left.
func (a *Authority) Stale(p Pair, l Leaf, now time.Time) string {
	certs, err := decodeCerts(p.Cert)
	if err != nil {
		return "it is missing or broken"
	}
	cert := certs[0]
	key, err := decodeKey(p.Key)
	if err != nil {
		return "its key is missing or broken"
	}
	if public, ok := cert.PublicKey.(*ecdsa.PublicKey); !ok || !public.Equal(key.Public()) {
		return "its key is another's"
	}
	addresses, names := l.names()
	switch {
	case cert.CheckSignatureFrom(a.cert) != nil:
		return "its CA has changed"
	case cert.Subject.CommonName != l.Name || !equalSets(cert.Subject.Organization, l.Groups):
		return "its user has changed"
	case !equalSets(cert.DNSNames, names) || !slices.EqualFunc(cert.IPAddresses, addresses, net.IP.Equal):
		return "its names have changed"
	case !slices.Equal(cert.ExtKeyUsage, []x509.ExtKeyUsage{l.usage()}):
		return "its purpose has changed"
	case l.Whole && cert.NotAfter.Equal(a.cert.NotAfter):
		return ""
	case cert.NotAfter.Sub(now) < cert.NotAfter.Sub(cert.NotBefore)/3:
		return "it ends on " + cert.NotAfter.UTC().Format(time.DateOnly)
	}
	return ""
}

// Ends returns the end of the certificate of a pair, or zero if it is broken.
func (p Pair) Ends() time.Time {
	certs, err := decodeCerts(p.Cert)
	if err != nil {
		return time.Time{}
	}
	return certs[0].NotAfter
}

func (l Leaf) usage() x509.ExtKeyUsage {
	if len(l.Hosts) > 0 {
		return x509.ExtKeyUsageServerAuth
	}
	return x509.ExtKeyUsageClientAuth
}

// names returns the addresses and DNS names of Hosts, sorted and without duplicates.
func (l Leaf) names() (addresses []net.IP, names []string) {
	hosts := slices.Clone(l.Hosts)
	slices.Sort(hosts)
	for _, host := range slices.Compact(hosts) {
		if ip := net.ParseIP(host); ip != nil {
			addresses = append(addresses, ip)
		} else {
			names = append(names, strings.ToLower(host))
		}
	}
	return addresses, names
}

func equalSets(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
