package ilo

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// errPins says that the file of pinned keys is not well: whose key it is, is not
// known then.
var errPins = errors.New("pinned keys")

// maxKnownHosts bounds the file of host keys.
const maxKnownHosts = 1 << 20

// HostKeys is a file of host keys in the form of OpenSSH's known_hosts. A
// chassis that is not in it is added when it is first seen; one whose key has
// changed is refused: somebody may be between, who would read the password.
// It is safe for concurrent use.
type HostKeys struct {
	Path string // made when it is first written

	// OnNew is told when a key was pinned. nil: nobody is told.
	OnNew func(address, fingerprint string)

	mu sync.Mutex
}

// pinned returns the keys that are known of an address.
func (h *HostKeys) pinned(address string) ([]ssh.PublicKey, error) {
	data, err := os.ReadFile(h.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case len(data) > maxKnownHosts:
		return nil, fmt.Errorf("%s: %d bytes, more than %d", h.Path, len(data), maxKnownHosts)
	}
	want := knownhosts.Normalize(address)
	var keys []ssh.PublicKey
	for no, text := range bytes.Split(data, []byte("\n")) {
		if text = bytes.TrimSpace(text); len(text) == 0 || text[0] == '#' {
			continue
		}
		marker, hosts, key, _, _, err := ssh.ParseKnownHosts(text)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s:%d: no line of known hosts: %w", h.Path, no+1, err)
		case marker == "" && slices.Contains(hosts, want):
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// check pins a key at first use, and refuses any other from then on.
func (h *HostKeys) check(address string, key ssh.PublicKey) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	known, err := h.pinned(address)
	if err != nil {
		return fmt.Errorf("%w: %w", errPins, err)
	}
	got := ssh.FingerprintSHA256(key)
	switch {
	case slices.ContainsFunc(known, func(k ssh.PublicKey) bool { return bytes.Equal(k.Marshal(), key.Marshal()) }):
		return nil
	case len(known) > 0:
		return fmt.Errorf("%w: %s has %s, and %s has %s (if the chassis was exchanged or reset, remove its line from that file)",
			ErrHostKey, address, got, h.Path, ssh.FingerprintSHA256(known[0]))
	}
	if err := h.add(address, key); err != nil {
		return fmt.Errorf("%w: %w (name a file that can be written with --known-hosts)", errPins, err)
	}
	if h.OnNew != nil {
		h.OnNew(address, got)
	}
	return nil
}

// add appends a line.
func (h *HostKeys) add(address string, key ssh.PublicKey) error {
	if err := os.MkdirAll(filepath.Dir(h.Path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(h.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(knownhosts.Line([]string{address}, key) + "\n")
	return errors.Join(err, f.Close())
}

// hostKeyCheck is what an SSH client asks: the fingerprint that the operator
// gave stands against the file.
func (l Login) hostKeyCheck() ssh.HostKeyCallback {
	return func(_ string, _ net.Addr, key ssh.PublicKey) error {
		got := ssh.FingerprintSHA256(key)
		switch {
		case l.HostKey != "" && strings.TrimRight(l.HostKey, "=") != got:
			return fmt.Errorf("%w: %s has %s, want %s", ErrHostKey, l.Address, got, l.HostKey)
		case l.HostKey != "":
			return nil
		case l.HostKeys == nil:
			return fmt.Errorf("%w: there is neither a fingerprint nor a file to pin the key of %s in", ErrHostKey, l.Address)
		}
		return l.HostKeys.check(l.Address, key)
	}
}
