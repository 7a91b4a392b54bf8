package main

import "hash"

// hasher feeds a hash from a goroutine of its own, so that a machine with more
// than one processor does not hold its transfer up to compute a digest. Nobody
// else may use the hash until end has returned.
type hasher struct {
	free, full chan []byte
	done       chan struct{}
}

// The buffers of a hasher: enough to go on while the other side is busy.
const (
	hasherBuffers = 16
	hasherSize    = 256 << 10
)

func newHasher(h hash.Hash) *hasher {
	r := &hasher{free: make(chan []byte, hasherBuffers), full: make(chan []byte, hasherBuffers), done: make(chan struct{})}
	for range hasherBuffers {
		r.free <- make([]byte, hasherSize)
	}
	go func() {
		defer close(r.done)
		for b := range r.full {
			h.Write(b) // never returns an error
			r.free <- b[:hasherSize]
		}
	}()
	return r
}

// buffer returns one that nobody uses.
func (r *hasher) buffer() []byte { return <-r.free }

// add hashes the first bytes of a buffer, which is the hasher's again.
func (r *hasher) add(b []byte) { r.full <- b }

// end waits until all that was added is in the hash.
func (r *hasher) end() {
	close(r.full)
	<-r.done
}
