package fetch

import "hash"

// hasher computes a hash in a goroutine of its own, so that on several processors the
// transfer does not wait for the digest. Do not use the hash before end has returned.
type hasher struct {
	free, full chan []byte
	done       chan struct{}
}

// The buffers of a hasher: enough to continue while the other side is busy.
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

// buffer returns a free buffer.
func (r *hasher) buffer() []byte { return <-r.free }

// add hashes b, the first bytes of a buffer, and takes the buffer back.
func (r *hasher) add(b []byte) { r.full <- b }

// end waits until all added bytes are hashed.
func (r *hasher) end() {
	close(r.full)
	<-r.done
}
