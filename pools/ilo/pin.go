package ilo

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// CertPins is a file of certificates, one "host:port sha256:..." to a line, with
// the meaning of [HostKeys]: pinned at first use, a change refused. It is safe
// for concurrent use.
type CertPins struct {
	Path string // made when it is first written

	// OnNew is told when a certificate was pinned. nil: nobody is told.
	OnNew func(address, fingerprint string)

	mu sync.Mutex
}

// checkCert checks the certificate of a connection.
func (s *Site) checkCert(address string, state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return fmt.Errorf("%w: %s shows no certificate", ErrHostKey, address)
	}
	sum := sha256.Sum256(state.PeerCertificates[0].Raw)
	got := "sha256:" + hex.EncodeToString(sum[:])
	if s.TLSPin == "" {
		return s.TLSPins.check(address, got)
	}
	if want := "sha256:" + strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(s.TLSPin), "sha256:"), ":", ""); want != got {
		return fmt.Errorf("%w: the certificate of %s is %s, want %s", ErrHostKey, address, got, want)
	}
	return nil
}

func (p *CertPins) check(address, got string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	data, err := os.ReadFile(p.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errPins, err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		switch {
		case len(f) != 2 || f[0] != address:
		case f[1] == got:
			return nil
		default:
			return fmt.Errorf("%w: the certificate of %s is %s, and %s has %s (if the certificate was renewed, remove its line from that file)",
				ErrHostKey, address, got, p.Path, f[1])
		}
	}
	if err := p.add(address, got); err != nil {
		return fmt.Errorf("%w: %w (name a file that can be written with --known-certs)", errPins, err)
	}
	if p.OnNew != nil {
		p.OnNew(address, got)
	}
	return nil
}

func (p *CertPins) add(address, fingerprint string) error {
	if err := os.MkdirAll(filepath.Dir(p.Path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(p.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, address, fingerprint)
	return errors.Join(err, f.Close())
}
