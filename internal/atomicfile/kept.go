package atomicfile

import (
	"cmp"
	"errors"
	"os"
	"sync"
	"time"
)

// ErrHangs gives up a write because the disk takes none.
var ErrHangs = errors.New("the disk hangs: it has taken no write for some time")

const (
	patience   = 10 * time.Second // the default of Kept.Patience: far longer than a write to a busy disk
	retryPause = time.Second      // after a write that has failed
)

// Kept is a file whose content a program has in RAM. [Kept.Write] waits for the disk for a limited
// time, and holds no lock meanwhile. The newest content is written again and again until the disk
// has taken it. The fields are set before the first Write.
type Kept struct {
	Path     string
	Mode     os.FileMode
	Patience time.Duration // how long Write waits; 0: 10 s
	// Replace writes the content; nil: as the function Write does.
	Replace func(path string, data []byte, mode os.FileMode) error

	mu      sync.Mutex
	content []byte
	newest  uint64 // number of the content
	tried   uint64 // number of the last one that was tried
	err     error  // of that try
	writing bool   // a goroutine writes
	closed  bool
	ended   chan struct{} // closed when a try ends
}

// Write replaces the content of the file, durably. An error says why the disk does not have it
// yet: it will, unless another content follows, or the program ends.
func (k *Kept) Write(data []byte) error { return k.Wait(k.Put(data)) }

// Put is the part of [Kept.Write] that does not wait. Contents are written in the order of the
// calls. The number is for Wait.
func (k *Kept) Put(data []byte) (number uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.content = data
	k.newest++
	if k.ended == nil {
		k.ended = make(chan struct{})
	}
	if !k.writing && !k.closed {
		k.writing = true
		go k.run()
	}
	return k.newest
}

// Wait waits until the disk has the content of a Put, or a newer one.
func (k *Kept) Wait(number uint64) error {
	timeout := time.After(cmp.Or(k.Patience, patience))
	for {
		k.mu.Lock()
		tried, err, ended := k.tried >= number, k.err, k.ended
		if k.closed && !tried {
			tried, err = true, os.ErrClosed
		}
		k.mu.Unlock()
		if tried {
			return err
		}
		select {
		case <-ended:
		case <-timeout:
			return ErrHangs
		}
	}
}

// Stored reports whether the disk has the newest content.
func (k *Kept) Stored() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tried == k.newest && k.err == nil
}

// Close ends the tries. It does not wait for the disk.
func (k *Kept) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	k.wake()
}

// run writes the newest content until the disk has it.
func (k *Kept) run() {
	replace := k.Replace
	if replace == nil {
		replace = Write
	}
	for {
		k.mu.Lock()
		data, number := k.content, k.newest
		k.mu.Unlock()
		err := replace(k.Path, data, k.Mode)
		k.mu.Lock()
		k.tried, k.err = number, err
		again := k.wake()
		if k.closed || err == nil && number == k.newest {
			k.writing = false
			k.mu.Unlock()
			return
		}
		k.mu.Unlock()
		if err != nil {
			select {
			case <-again: // closed, since nothing else wakes
			case <-time.After(retryPause):
			}
		}
	}
}

// wake tells all that wait that a try has ended. It returns the channel that closes next.
func (k *Kept) wake() <-chan struct{} {
	if k.ended != nil {
		close(k.ended)
	}
	k.ended = make(chan struct{})
	return k.ended
}
