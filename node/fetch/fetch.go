// Package fetch fetches the root image, over HTTP or TFTP, into a file whose digest is
// known: [Fetcher]. It knows nothing of the content.
package fetch

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"drover/node/client"
	"drover/node/retry"
	"drover/node/tftp"
	"drover/pools"
)

// Fetcher fetches one file of known digest over HTTP, and retries until it has it. It
// resumes a broken transfer (RFC 9110, section 14), breaks off a stalled one, waits for
// a busy server as long as that asks for, fetches a chunk again whose digest is wrong, and
// starts again if the file changed. If nothing comes by HTTP, but the server answers by TFTP, it tries both
// in turns.
type Fetcher struct {
	Client   *http.Client
	URL      string
	Also     []string // URLs of the same file at other servers: the next one is asked after a try that brought nothing
	TFTP     string   // the server's host and port for TFTP; empty: HTTP only
	Name     string   // of the file by TFTP
	Digest   [sha256.Size]byte
	Chunks   Chunks        // of a file with that digest; zero: the file is checked as a whole
	Stall    time.Duration // limit of a read; 0: 15 s
	Interval time.Duration // between calls of Progress; 0: 3 s
	Retry    retry.Retrier

	// Fit returns an error, which is final, if there is no room for so many more
	// bytes. nil: no check.
	Fit func(more int64) error
	// Progress is called at Interval with the bytes so far, the total, and the bytes
	// per second since the last call. nil: not called.
	Progress func(done, total int64, rate float64)
	// Queued is called with this node's position in the server's queue, and with the
	// time that it waited since the last call, including the pause that follows.
	// nil: not called.
	Queued func(place int, spent time.Duration)

	// NoHTTP is, after Fetch, the reason why the file came by TFTP; nil: it came by HTTP.
	// In between it is the error of the last try by HTTP.
	NoHTTP error

	file  *os.File
	check *checker
	done  int64  // bytes in file and check
	total int64  // size of the file, known once a transfer has begun
	etag  string // strong validator of the content of file, or ""

	answered bool // by HTTP: with bytes, or with a place in the queue
	byTFTP   bool // the next try is by TFTP
	running  bool // the server answers by TFTP
	at       int  // the server of the next try by HTTP: 0 is URL, 1 the first of Also
}

// queueHold is the time for which the server may hold a request that waits for its turn:
// shorter than a stall, and short enough for a current position on the console.
const queueHold = 4 * time.Second

// errStalled is the error of a transfer without a byte for too long.
var errStalled = errors.New("transfer stalled")

// Fetch writes the file to path and returns its size. Its error is that of the last
// try; Retry.Notice is called with each.
func (f *Fetcher) Fetch(ctx context.Context, path string) (int64, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	f.file, f.check, f.done, f.total = file, newChecker(f.Chunks, f.Digest), 0, -1
	err = f.Retry.Do(ctx, func(ctx context.Context) error {
		before, start := f.done, time.Now()
		err := f.attempt(ctx)
		busy, _ := errors.AsType[retry.Busy](err)
		if f.done > before || busy.Place > 0 {
			f.Retry.Backoff.Reset() // the server answers: start with short waits again
		}
		if busy.Place > 0 && f.Queued != nil {
			f.Queued(busy.Place, time.Since(start)+busy.After)
		}
		return err
	})
	if err != nil {
		return 0, errors.Join(err, os.Remove(path))
	}
	return f.done, file.Close()
}

// attempt makes one request, and keeps the bytes that it receives.
func (f *Fetcher) attempt(ctx context.Context) error {
	stall := f.Stall
	if stall <= 0 {
		stall = 15 * time.Second
	}
	if f.byTFTP {
		f.byTFTP = false
		return f.overTFTP(ctx, stall)
	}
	before := f.done // may have come by TFTP
	err := f.overHTTP(ctx, stall)
	f.NoHTTP = err
	_, busy := errors.AsType[retry.Busy](err)
	f.answered = f.answered || busy || f.done > before
	if err != nil && !busy && f.done <= before {
		f.at = (f.at + 1) % (1 + len(f.Also))
	}
	f.byTFTP = f.TFTP != "" && !f.answered
	return err
}

// overHTTP fetches what the file lacks. It breaks a transfer off that stalls.
func (f *Fetcher) overHTTP(ctx context.Context, stall time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(stall, func() {
		cancel(fmt.Errorf("%w: nothing came for %v", errStalled, stall))
	})
	defer timer.Stop()

	resp, err := f.request(ctx)
	if err != nil {
		return f.wrap(ctx, client.WithoutURL(err))
	}
	defer resp.Body.Close()
	if err := f.accept(resp); err != nil {
		return err
	}
	if err := f.copy(resp.Body, func() { timer.Reset(stall) }); err != nil {
		return f.wrap(ctx, err)
	}
	if f.done < f.total {
		return f.wrap(ctx, io.ErrUnexpectedEOF)
	}
	return f.verify()
}

// overTFTP fetches the whole file: TFTP cannot resume. The first time that the server
// answers, it may have started a moment ago: HTTP gets another try, since it has a queue.
func (f *Fetcher) overTFTP(ctx context.Context, stall time.Duration) error {
	r, err := tftp.Open(ctx, f.TFTP, f.Name, stall)
	before := f.running
	f.running = err == nil
	if err != nil {
		return fmt.Errorf("by TFTP: %w", err)
	}
	defer r.Close()
	if !before {
		return errors.New("HTTP brings nothing, but the server answers by TFTP; trying HTTP once more, then TFTP")
	}
	if err := f.restart(); err != nil {
		return err
	}
	f.total = r.Size
	if err := f.begins(); err != nil {
		return err
	}
	if err = f.copy(r, func() {}); err == nil {
		_, err = io.CopyN(io.Discard, r, 1) // the end of the transfer
	}
	if !errors.Is(err, io.EOF) {
		return f.wrap(ctx, fmt.Errorf("by TFTP: %w", err))
	}
	return f.verify()
}

// verify checks the last chunk of the file, which is whole.
func (f *Fetcher) verify() error {
	if err := f.check.end(); err != nil {
		return errors.Join(err, f.rewind(err))
	}
	return nil
}

func (f *Fetcher) request(ctx context.Context) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url(f.at), nil)
	if err != nil {
		return nil, retry.Final{Err: err}
	}
	if f.done > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", f.done))
		if f.etag != "" {
			req.Header.Set("If-Range", f.etag)
		}
	}
	req.Header.Set(pools.WaitHeader, strconv.Itoa(int(queueHold/time.Second)))
	return f.Client.Do(req)
}

// url returns the URL at a server.
func (f *Fetcher) url(at int) string {
	if at == 0 {
		return f.URL
	}
	return f.Also[at-1]
}

// accept checks the header of an answer and prepares the file for its body.
func (f *Fetcher) accept(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusOK:
		if err := f.restart(); err != nil {
			return err
		}
		if resp.ContentLength < 0 {
			return errors.New("server does not say how long the file is")
		}
		f.total = resp.ContentLength
		f.etag = strongETag(resp.Header)
		return f.begins()
	case http.StatusPartialContent:
		return f.resume(resp)
	case http.StatusRequestedRangeNotSatisfiable:
		return errors.Join(fmt.Errorf("server answers %s after %d bytes; fetching all of it anew", resp.Status, f.done), f.restart())
	}
	return client.StatusError(resp)
}

// resume checks that a partial answer begins where the file ends.
func (f *Fetcher) resume(resp *http.Response) error {
	from, total, err := parseContentRange(resp.Header.Get("Content-Range"))
	etag := strongETag(resp.Header)
	switch {
	case err != nil:
	case from != f.done || total != f.total:
		err = fmt.Errorf("server sends a part from byte %d of %d, want from byte %d of %d", from, total, f.done, f.total)
	case etag != f.etag:
		err = errors.New("the file changed on the server")
	default:
		return f.fits()
	}
	return errors.Join(fmt.Errorf("%w; fetching all of it anew", err), f.restart())
}

// begins checks the size of a file that comes from its begin.
func (f *Fetcher) begins() error {
	if f.Chunks.Size > 0 && f.total != f.Chunks.Total {
		return errors.Join(fmt.Errorf("server sends a file of %d bytes, want %d", f.total, f.Chunks.Total), f.restart())
	}
	return f.fits()
}

func (f *Fetcher) fits() error {
	if f.Fit == nil {
		return nil
	}
	if err := f.Fit(f.total - f.done); err != nil {
		return retry.Final{Err: err}
	}
	return nil
}

// restart empties the file.
func (f *Fetcher) restart() error {
	f.total, f.etag = -1, ""
	return f.cut(0)
}

// rewind cuts off a wrong chunk and everything behind it. After another error, or when
// nothing is left, it empties the file.
func (f *Fetcher) rewind(err error) error {
	w, ok := errors.AsType[*wrong](err)
	if !ok || w.from == 0 {
		return f.restart()
	}
	return f.cut(w.from)
}

// cut cuts the file off at the begin of a chunk.
func (f *Fetcher) cut(at int64) error {
	f.check.reset(at)
	f.done = at
	if err := f.file.Truncate(at); err != nil {
		return retry.Final{Err: err}
	}
	if _, err := f.file.Seek(at, io.SeekStart); err != nil {
		return retry.Final{Err: err}
	}
	return nil
}

// copy moves the body into the file and checks it, both at once, until it ends, total is
// reached, or a chunk is wrong.
func (f *Fetcher) copy(body io.Reader, alive func()) error {
	digest := newHasher(f.check)
	err := f.receive(body, digest, alive)
	bad := digest.end()
	if _, final := errors.AsType[retry.Final](err); final || bad == nil {
		return err
	}
	return errors.Join(bad, f.rewind(bad))
}

func (f *Fetcher) receive(body io.Reader, digest *hasher, alive func()) error {
	interval := f.Interval
	if interval <= 0 {
		interval = 3 * time.Second
	}
	told, toldAt := f.done, time.Now()
	buf := digest.buffer()
	for {
		n, err := body.Read(buf[:min(int64(len(buf)), max(1, f.total-f.done))])
		if n > 0 {
			alive()
			if werr := f.write(buf[:n]); werr != nil {
				return werr
			}
			digest.add(buf[:n])
			buf = digest.buffer()
		}
		if passed := time.Since(toldAt); f.Progress != nil && passed >= interval {
			f.Progress(f.done, f.total, float64(f.done-told)/passed.Seconds())
			told, toldAt = f.done, time.Now()
		}
		switch {
		case f.done >= f.total, errors.Is(err, io.EOF), digest.err() != nil:
			return nil
		case err != nil:
			return err
		}
	}
}

func (f *Fetcher) write(b []byte) error {
	if _, err := f.file.Write(b); err != nil {
		// The content of the file is unknown now, and full RAM stays full.
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.ENOMEM) {
			err = fmt.Errorf("RAM is full after %d of %d bytes: %w", f.done, f.total, err)
		}
		return retry.Final{Err: err}
	}
	f.done += int64(len(b))
	return nil
}

// wrap adds to an error the place where the transfer ended, and the reason if the
// fetcher broke it off.
func (f *Fetcher) wrap(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errStalled) {
		err = cause
	}
	if f.done > 0 {
		return fmt.Errorf("after %d of %d bytes: %w", f.done, f.total, err)
	}
	return err
}

// strongETag returns the strong validator of an answer; empty without one. If-Range may
// not use a weak one (RFC 9110, section 13.1.5).
func strongETag(h http.Header) string {
	if etag := h.Get("ETag"); strings.HasPrefix(etag, `"`) {
		return etag
	}
	return ""
}

// parseContentRange reads "bytes 100-199/200" and returns 100 and 200. A range that does
// not end at the end of the file is an error: none was requested.
func parseContentRange(s string) (from, total int64, err error) {
	bad := fmt.Errorf("server sends a part with Content-Range %q", s)
	span, ok := strings.CutPrefix(s, "bytes ")
	if !ok {
		return 0, 0, bad
	}
	span, size, ok1 := strings.Cut(span, "/")
	first, last, ok2 := strings.Cut(span, "-")
	if !ok1 || !ok2 {
		return 0, 0, bad
	}
	var n [3]int64
	for i, s := range []string{first, last, size} {
		v, err := strconv.ParseUint(s, 10, 63)
		if err != nil {
			return 0, 0, bad
		}
		n[i] = int64(v)
	}
	if n[0] > n[1] || n[1] != n[2]-1 {
		return 0, 0, bad
	}
	return n[0], n[2], nil
}
