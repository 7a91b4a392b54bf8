package fetch

import "sync/atomic"

// hasher checks a file in a goroutine of its own, so that on several processors the
// transfer does not wait for the digest. Do not use the checker before end has returned.
type hasher struct {
	free, full chan []byte
	done       chan struct{}
	failed     atomic.Pointer[error] // the first error; what comes after it is not checked
}

// The buffers of a hasher: enough to continue while the other side is busy.
const (
	hasherBuffers = 16
	hasherSize    = 256 << 10
)

func newHasher(c *checker) *hasher {
	r := &hasher{free: make(chan []byte, hasherBuffers), full: make(chan []byte, hasherBuffers), done: make(chan struct{})}
	for range hasherBuffers {
		r.free <- make([]byte, hasherSize)
	}
	go func() {
		defer close(r.done)
		for b := range r.full {
			if r.err() == nil {
				if err := c.write(b); err != nil {
					r.failed.Store(&err)
				}
			}
			r.free <- b[:hasherSize]
		}
	}()
	return r
}

// buffer returns a free buffer.
func (r *hasher) buffer() []byte { return <-r.free }

// add checks b, the first bytes of a buffer, and takes the buffer back.
func (r *hasher) add(b []byte) { r.full <- b }

// err returns the error of a chunk that was wrong, or nil so far.
func (r *hasher) err() error {
	if err := r.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// end waits until all added bytes are checked, and returns err.
func (r *hasher) end() error {
	close(r.full)
	<-r.done
	return r.err()
}
