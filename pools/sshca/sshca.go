// Package sshca makes the SSH host keys of nodes and the certificate authority (CA) that
// signs them. All are Ed25519 keys derived from the server's secret: a node has the same key
// in each boot, and cannot derive that of another node or of the CA.
//
//	keys := sshca.Keys{Secret: secret}
//	host, err := keys.Host("m1", []string{"m1", "m1.example.org", "10.28.36.174"})
//	line, err := keys.KnownHosts("*.example.org")
//
// It knows neither configs nor files.
package sshca

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Keys makes keys.
type Keys struct {
	Secret []byte // of the server; 32 bytes or more
}

// Host is the identity of one host, as files of sshd(8).
type Host struct {
	Private     string // PEM, secret
	Public      string // a line of authorized_keys
	Certificate string // a line
}

// comment is behind the public keys.
const comment = "drover"

// derive returns the key of a purpose.
func (k Keys) derive(purpose string) (ed25519.PrivateKey, error) {
	if len(k.Secret) < 32 {
		return nil, fmt.Errorf("ssh key: the server's secret has %d bytes, want 32 or more", len(k.Secret))
	}
	seed, err := hkdf.Key(sha256.New, k.Secret, nil, purpose, ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("ssh key: %w", err)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// authority returns the CA.
func (k Keys) authority() (ssh.Signer, error) {
	key, err := k.derive("drover ssh host ca ed25519")
	if err != nil {
		return nil, err
	}
	return ssh.NewSignerFromSigner(key)
}

// Host returns the keys of a host, with a certificate for its names and addresses. The
// certificate has no end: a node may run for years without a boot, and the key that it is for
// does not change either. Another secret ends both.
func (k Keys) Host(name string, principals []string) (Host, error) {
	// A certificate without principals would be good for every host.
	if len(principals) == 0 || slices.Contains(principals, "") {
		return Host{}, errors.New("ssh host certificate: a name of the host is empty")
	}
	ca, err := k.authority()
	if err != nil {
		return Host{}, err
	}
	key, err := k.derive("drover ssh host key ed25519 " + name)
	if err != nil {
		return Host{}, err
	}
	private, err := ssh.MarshalPrivateKey(key, name)
	if err != nil {
		return Host{}, fmt.Errorf("ssh host key: %w", err)
	}
	public, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		return Host{}, fmt.Errorf("ssh host key: %w", err)
	}
	c := &ssh.Certificate{
		Key: public, CertType: ssh.HostCert, KeyId: name, ValidPrincipals: principals, ValidBefore: ssh.CertTimeInfinity,
	}
	if err := c.SignCert(rand.Reader, ca); err != nil {
		return Host{}, fmt.Errorf("ssh host certificate: %w", err)
	}
	return Host{
		Private:     string(pem.EncodeToMemory(private)),
		Public:      string(ssh.MarshalAuthorizedKey(public)),
		Certificate: string(ssh.MarshalAuthorizedKey(c)),
	}, nil
}

// KnownHosts returns the line of known_hosts by which clients trust the CA for the hosts of a
// pattern: names with the wildcards "*" and "?", separated by commas.
func (k Keys) KnownHosts(pattern string) (string, error) {
	if pattern == "" || strings.ContainsAny(pattern, " \t\r\n#") {
		return "", fmt.Errorf("%q is no pattern of hosts: write names with * and ?, separated by commas", pattern)
	}
	ca, err := k.authority()
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(ca.PublicKey())))
	return "@cert-authority " + pattern + " " + key + " " + comment + "\n", nil
}
