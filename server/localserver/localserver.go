// Package localserver is how the commands of a host find the server of the same host: [Write]
// stores the address of its REST API, and which certificate it has, beside its token in the state
// directory. [Read] is for the commands. So they need no option when the server listens
// elsewhere than by default, or has HTTPS.
//
// The package knows neither the config nor the REST API.
package localserver

import (
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"drover/internal/atomicfile"
	"drover/server/certificate"
)

// File is the name of the file in the state directory. Each start of the server writes it anew.
const File = "api.addr"

const maxFile = 64 << 10 // bytes, of File and of the certificate

// patience is how long the start of a server waits for the disk, which takes the file later.
const patience = 2 * time.Second

// Server is how to reach the API of this host's server.
type Server struct {
	URL string `json:"url"` // https://127.0.0.1:8443
	// Certificate is the absolute path of the PEM file of its certificate, or of the authority that issued it; empty
	// with plain HTTP.
	Certificate string `json:"certificate,omitempty"`
}

// Write stores how to reach a listener with this certificate file, empty for plain HTTP.
func Write(dir string, listener net.Addr, certificate string) error {
	if certificate != "" {
		var err error
		if certificate, err = filepath.Abs(certificate); err != nil {
			return err
		}
	}
	text, err := json.Marshal(Server{urlOf(listener.String(), certificate != ""), certificate})
	if err != nil {
		return err
	}
	file := atomicfile.Kept{Path: filepath.Join(dir, File), Mode: 0o644, Patience: patience}
	return file.Write(append(text, '\n'))
}

// urlOf returns the URL of a listener, as its own host reaches it.
func urlOf(listener string, secure bool) string {
	host, port, _ := net.SplitHostPort(listener) // a listener has both
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http"
	if secure {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// Read returns what Write has stored, and the pin of the certificate as it is now: something may
// have renewed it. The pin is empty with plain HTTP. The error is [io/fs.ErrNotExist] if no server
// has run with this directory.
func Read(dir string) (s Server, pin string, err error) {
	file := filepath.Join(dir, File)
	text, err := atomicfile.Read(file, maxFile)
	if err != nil {
		return s, "", err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, "", fmt.Errorf("%s is damaged: %w (the next start of drover serve writes it anew)", file, err)
	}
	if s.Certificate == "" {
		return s, "", nil
	}
	if text, err = atomicfile.Read(s.Certificate, maxFile); err != nil {
		return s, "", fmt.Errorf("certificate of the API: %w", err)
	}
	c, err := certificate.ParseCert(text)
	if err != nil {
		return s, "", fmt.Errorf("certificate of the API: %s: %w", s.Certificate, err)
	}
	return s, certificate.Pin(c), nil
}
