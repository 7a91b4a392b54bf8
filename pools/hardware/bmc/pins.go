package bmc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"drover/pools/atomicfile"
)

// maxPins bounds a file of pins, in bytes.
const maxPins = 1 << 20

// Pins is a file of pinned host keys or certificates. The first key of an address is
// pinned, and any other key is an error from then on. That keeps the password from an
// attacker in the network. It is safe for concurrent use.
type Pins struct {
	Path string // created when it is first written

	// OnNew is called after a key was pinned. nil: no call.
	OnNew func(address, fingerprint string)

	mu sync.Mutex
}

// Read returns the content of the file: none when it does not exist.
func (p *Pins) Read() ([]byte, error) {
	data, err := os.ReadFile(p.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err == nil && len(data) > maxPins:
		err = fmt.Errorf("%s: %d bytes, more than %d", p.Path, len(data), maxPins)
	}
	return data, err
}

// Check compares the fingerprint of an address with its pinned fingerprints, which
// known returns. When there are none, it appends line to the file. When none matches, it
// returns the first of them as other. Errors wrap [ErrPins].
func (p *Pins) Check(address, fingerprint, line string, known func() ([]string, error)) (other string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pinned, err := known()
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrPins, err)
	case slices.Contains(pinned, fingerprint):
		return "", nil
	case len(pinned) > 0:
		return pinned[0], nil
	}
	if err := p.add(line); err != nil {
		return "", fmt.Errorf("%w: %w (name a file that can be written with --known-hosts or --known-certs)", ErrPins, err)
	}
	if p.OnNew != nil {
		p.OnNew(address, fingerprint)
	}
	return "", nil
}

func (p *Pins) add(line string) error {
	if err := os.MkdirAll(filepath.Dir(p.Path), 0o700); err != nil {
		return err
	}
	_, missing := os.Stat(p.Path)
	f, err := os.OpenFile(p.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	if missing != nil { // an import by root must leave a file that the server can read
		err = errors.Join(err, atomicfile.Own(p.Path))
	}
	return errors.Join(err, f.Close())
}
