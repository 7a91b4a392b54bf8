// Package contexts keeps the servers that an operator has logged in to: URL, token, and how
// the server proves who it is. They are in a file of the operator's home, mode 0600.
//
// It does not know the REST API.
package contexts

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"drover/internal/atomicfile"
)

// Env names another file for contexts.
const Env = "DROVER_CONTEXTS"

// maxFile bounds the file, in bytes.
const maxFile = 1 << 20

// Context is a server and how to reach it.
type Context struct {
	Name  string `json:"name"`
	URL   string `json:"url"`
	CA    string `json:"ca,omitempty"`  // PEM; empty: the authorities of this host
	Pin   string `json:"pin,omitempty"` // SHA-256 of the public key of the server or its authority, hexadecimal; in place of an authority of this host
	Token string `json:"token,omitempty"`

	// ClientCert and ClientKey are the files of a client certificate, which are read each
	// time: something may renew them.
	ClientCert string `json:"clientCert,omitempty"`
	ClientKey  string `json:"clientKey,omitempty"`
}

// Contexts are the contexts of an operator.
type Contexts struct {
	Current string    `json:"current,omitempty"` // its name
	All     []Context `json:"contexts"`

	path string
}

// Load reads the contexts of the operator. There need not be any.
func Load() (*Contexts, error) {
	c := &Contexts{path: os.Getenv(Env)}
	if c.path == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return c, nil // a service without a home has none
		}
		c.path = filepath.Join(dir, "drover", "contexts.json")
	}
	data, err := atomicfile.Read(c.path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	if info, err := os.Stat(c.path); err == nil && info.Mode().Perm()&0o077 != 0 {
		return c, fmt.Errorf("%s has tokens, and others can read it (mode %s): chmod 600 %s", c.path, info.Mode(), c.path)
	}
	if err := json.Unmarshal(data, c); err != nil {
		return c, fmt.Errorf("%s: %w (remove it, and log in again)", c.path, err)
	}
	return c, nil
}

// Find returns a context by its name; without a name the current one.
func (c *Contexts) Find(name string) (Context, bool) {
	if name == "" {
		name = c.Current
	}
	i := slices.IndexFunc(c.All, func(x Context) bool { return x.Name == name })
	if i < 0 {
		return Context{}, false
	}
	return c.All[i], true
}

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.:_-]{0,100}$`)

// Put adds a context, or replaces that of its name, and makes it the current one.
func (c *Contexts) Put(x Context) error {
	if !validName.MatchString(x.Name) {
		return fmt.Errorf("context %q: want letters, digits, '.', ':', '_' and '-'", x.Name)
	}
	c.remove(x.Name)
	c.All, c.Current = append(c.All, x), x.Name
	return c.save()
}

// Use makes a context the current one; none for an empty name.
func (c *Contexts) Use(name string) error {
	if _, ok := c.Find(name); !ok && name != "" {
		return c.Unknown(name)
	}
	c.Current = name
	return c.save()
}

// Remove removes a context with its token.
func (c *Contexts) Remove(name string) error {
	if !c.remove(name) {
		return c.Unknown(name)
	}
	if c.Current == name {
		c.Current = ""
	}
	return c.save()
}

// Unknown returns the error of a context that is not there.
func (c *Contexts) Unknown(name string) error {
	names := make([]string, len(c.All))
	for i, x := range c.All {
		names[i] = x.Name
	}
	return fmt.Errorf("no context %q in %s (%s); drover login makes one", name, c.path, strings.Join(names, ", "))
}

func (c *Contexts) remove(name string) bool {
	n := len(c.All)
	c.All = slices.DeleteFunc(c.All, func(x Context) bool { return x.Name == name })
	return len(c.All) < n
}

func (c *Contexts) save() error {
	if c.path == "" {
		return errors.New("this user has no home for contexts: name a file in " + Env)
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return err
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Rewrite(c.path, append(text, '\n'), 0o600)
}

// TLS returns the config for HTTPS; nil for that of this host.
func (x Context) TLS() (*tls.Config, error) {
	config, err := x.trust()
	if err != nil || x.ClientCert == "" {
		return config, err
	}
	pair, err := tls.LoadX509KeyPair(x.ClientCert, x.ClientKey)
	if err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// trust returns the part of the config that says which server is the right one.
func (x Context) trust() (*tls.Config, error) {
	switch {
	case x.Pin != "":
		pin, err := parsePin(x.Pin)
		if err != nil {
			return nil, err
		}
		return &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
			return x.pinned(pin, s.PeerCertificates)
		}}, nil
	case x.CA != "":
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(x.CA)) {
			return nil, errors.New("the CA is not a certificate in PEM")
		}
		return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, nil
	}
	return nil, nil
}

// pinned reports whether a server is known by a pin: it has that key, or an authority with that
// key has signed its certificate, for the host of URL.
func (x Context) pinned(pin []byte, chain []*x509.Certificate) error {
	for i, c := range chain {
		got := sha256.Sum256(c.RawSubjectPublicKeyInfo)
		if subtle.ConstantTimeCompare(got[:], pin) != 1 {
			continue
		}
		if i == 0 {
			return nil
		}
		u, err := url.Parse(x.URL)
		if err != nil {
			return err
		}
		o := x509.VerifyOptions{DNSName: u.Hostname(), Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool()}
		o.Roots.AddCert(c)
		for _, between := range chain[1:i] {
			o.Intermediates.AddCert(between)
		}
		if _, err = chain[0].Verify(o); err == nil {
			return nil
		}
		if _, ok := errors.AsType[x509.HostnameError](err); ok {
			return fmt.Errorf("%w (add %s to server.apiTLS.names there)", err, u.Hostname())
		}
		return err
	}
	return fmt.Errorf("the server has the key sha256:%x, and not the one that is pinned: if its key was changed, log in again", sha256.Sum256(chain[0].RawSubjectPublicKeyInfo))
}

// parsePin reads the SHA-256 of a public key, in hexadecimal, with or without "sha256:".
func parsePin(text string) ([]byte, error) {
	pin, err := hex.DecodeString(strings.TrimPrefix(text, "sha256:"))
	if err != nil || len(pin) != sha256.Size {
		return nil, fmt.Errorf("pin %q: want sha256: and 64 hexadecimal digits", text)
	}
	return pin, nil
}
