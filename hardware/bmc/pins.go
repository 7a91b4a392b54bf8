package bmc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"drover/internal/atomicfile"
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

	// OnBroken is called once for each broken line that was left out, with its place, FILE:LINE.
	// nil: no call.
	OnBroken func(place string)

	mu       sync.Mutex
	skipping sync.Mutex
	skipped  map[string]bool // the broken lines that were reported
}

// maxSkipped is the number of broken lines that are remembered.
const maxSkipped = 1000

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
// known returns. When there are none, it adds line to the file. When none matches, it
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

// Skip reports a broken line of the file, once for each text. The function known of [Pins.Check]
// calls it for lines of other addresses, and leaves them out.
func (p *Pins) Skip(number int, text string) {
	p.skipping.Lock()
	defer p.skipping.Unlock()
	if p.OnBroken == nil || p.skipped[text] {
		return
	}
	if len(p.skipped) >= maxSkipped {
		clear(p.skipped)
	}
	if p.skipped == nil {
		p.skipped = map[string]bool{}
	}
	p.skipped[text] = true
	p.OnBroken(fmt.Sprintf("%s:%d", p.Path, number))
}

// add appends a line to the file, durably: after a crash, or on a full disk, the file has its old
// content or the new one.
func (p *Pins) add(line string) error {
	if err := os.MkdirAll(filepath.Dir(p.Path), 0o700); err != nil {
		return err
	}
	path, mode := p.Path, os.FileMode(0o600)
	switch info, err := os.Stat(path); {
	case err == nil && !info.Mode().IsRegular():
		return appendTo(path, line) // such as /dev/null
	case err == nil:
		mode = info.Mode().Perm()
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	data, err := p.Read()
	if err != nil {
		return err
	}
	if n := len(data); n > 0 && data[n-1] != '\n' { // an editor left it out
		data = append(data, '\n')
	}
	return atomicfile.Write(path, append(append(data, line...), '\n'), mode)
}

func appendTo(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}
