// Package invite serves the bundle of a host over HTTPS, once: to the holder of a token, who
// knows the server's key.
//
//	i, err := invite.New("legacy1", listener, write)
//	fmt.Println(i.Command())
//	err = i.Serve(ctx)
//
// The token is in a header that curl reads from its standard input: it is in no URL, no log,
// and no argument of a program. The first request gets a script with a second token, for
// the bundle, whose credentials are made then.
package invite

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"sync"
	"text/template"
	"time"
)

// Lifetime is the time that a link is valid.
const Lifetime = 10 * time.Minute

const (
	maxConnections = 16      // that have sent no request
	maxHeader      = 8 << 10 // bytes
	headerTimeout  = 10 * time.Second
	writeTimeout   = 5 * time.Minute // for the bundle, of some hundred MiB
)

// Invitation is a link that makes a machine a host.
type Invitation struct {
	Log      *slog.Logger
	Lifetime time.Duration // default [Lifetime]

	name     string
	listener net.Listener
	address  string // host:port of the link
	write    func(ctx context.Context, w io.Writer) error
	cert     tls.Certificate
	pin      string
	done     chan error // of the bundle

	mu    sync.Mutex
	steps map[string]string // path → the token that opens it, once
}

//go:embed files/install.sh
var script string

// New returns an invitation for a host. The link has that address, which leads to the
// listener, and write writes the bundle.
func New(name, address string, l net.Listener, write func(ctx context.Context, w io.Writer) error) (*Invitation, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(public)
	return &Invitation{
		Log: slog.New(slog.DiscardHandler), name: name, listener: l, address: address, write: write,
		cert: tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, pin: "sha256//" + base64.StdEncoding.EncodeToString(sum[:]),
		done: make(chan error, 1), steps: map[string]string{"/" + name: rand.Text(), "/" + name + "/bundle": rand.Text()},
	}, nil
}

func (i *Invitation) url() string { return "https://" + i.address + "/" + i.name }

// Command returns the line to type on the host, as its root. It has the token.
func (i *Invitation) Command() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return fmt.Sprintf(`printf 'header = "Authorization: Bearer %s"' | curl -fsSk -K - --pinnedpubkey '%s' %s | sh`, i.steps["/"+i.name], i.pin, i.url())
}

// Serve serves the invitation until bundle fetched; nil says that it was. It closes
// the listener.
func (i *Invitation) Serve(ctx context.Context) error {
	lifetime := i.Lifetime
	if lifetime == 0 {
		lifetime = Lifetime
	}
	server := &http.Server{
		Handler: i, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: writeTimeout, MaxHeaderBytes: maxHeader,
		ConnState: new(waiting).observe,
		ErrorLog:  slog.NewLogLogger(i.Log.Handler(), slog.LevelDebug),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{i.cert}, MinVersion: tls.VersionTLS12},
	}
	server.SetKeepAlivesEnabled(false) // a connection that waits is one without a request
	serving := make(chan error, 1)
	go func() { serving <- server.ServeTLS(i.listener, "", "") }()
	var err error
	select {
	case err = <-i.done:
	case err = <-serving:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-time.After(lifetime):
		err = fmt.Errorf("nobody has fetched the bundle in %s: the link is of no use any more", lifetime)
	}
	// The last answer may go on; its handler has ended.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), headerTimeout)
	defer cancel()
	if server.Shutdown(closing) != nil {
		_ = server.Close()
	}
	return err
}

// ServeHTTP answers each of the two paths once.
func (i *Invitation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from, _, _ := net.SplitHostPort(r.RemoteAddr)
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet || !i.use(r.URL.Path, r.Header.Get("Authorization")) {
		i.Log.Warn("request without a valid token of the invitation", "from", from)
		http.Error(w, "no such invitation, or it is used up: drover host invite makes another", http.StatusForbidden)
		return
	}
	if r.URL.Path == "/"+i.name {
		i.Log.Info("invitation used", "from", from)
		i.serveScript(w)
		return
	}
	// All of it first: an error is not the middle of a tar.
	var b bytes.Buffer
	err := i.write(r.Context(), &b)
	if err == nil {
		w.Header().Set("Content-Length", fmt.Sprint(b.Len()))
		_, err = w.Write(b.Bytes())
	} else {
		i.Log.Error("cannot make the bundle", "err", err)
		http.Error(w, "cannot make the bundle: see the output of drover host invite", http.StatusInternalServerError)
	}
	if err != nil {
		err = fmt.Errorf("the link is used, and the bundle was not fetched: %w", err)
	} else {
		i.Log.Info("bundle fetched", "from", from)
	}
	i.done <- err
}

// use reports whether the token opens a path, and takes both away.
func (i *Invitation) use(path, authorization string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	token, ok := i.steps[path]
	if !ok || subtle.ConstantTimeCompare([]byte(authorization), []byte("Bearer "+token)) != 1 {
		return false
	}
	delete(i.steps, path)
	return true
}

func (i *Invitation) serveScript(w http.ResponseWriter) {
	i.mu.Lock()
	token := i.steps["/"+i.name+"/bundle"]
	i.mu.Unlock()
	var b bytes.Buffer
	err := template.Must(template.New("").Parse(script)).Execute(&b, map[string]string{"Name": i.name, "Pin": i.pin, "URL": i.url(), "Token": token})
	if err != nil {
		i.done <- err
		return
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		i.done <- errors.Join(errors.New("the link is used, and its script was not fetched"), err)
	}
}
