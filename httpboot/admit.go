package httpboot

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"drover/pools"
)

const (
	// defaultHold is how long a request waits here for its turn when the client
	// does not say what it likes. A client that knows nothing of the queue takes
	// a refusal for a failure, so it is better kept waiting.
	defaultHold = 45 * time.Second
	maxHold     = 5 * time.Minute

	// hurry is how long an image's transfer may take for one MiB while others
	// wait for its slot: a hundredth of a gigabit link is ten times faster.
	hurry = 15 * time.Second
)

// admit waits until the image's whole file may be sent to who asks. Kernels and
// initrds are small and firmware has no patience: they are never behind it.
// Without an error, what it returns must be called after the transfer.
func (h *handler) admit(rec *recorder, r *http.Request) (leave func(), err error) {
	remote, _ := netip.ParseAddrPort(r.RemoteAddr)
	who := visitor{addr: addrOf(r.RemoteAddr), port: remote.Port()}
	if !rec.mac.IsZero() {
		who.port = 0
	}
	p, err := h.queue.enter(r.Context(), who, r.Header.Get("Range") == "", hold(r))
	var line notYet
	switch {
	case errors.As(err, &line):
		rec.queued, rec.place = true, line.place
		rec.Header().Set(pools.PlaceHeader, strconv.Itoa(line.place))
		again := min(time.Second+time.Duration(line.place/200)*time.Second, 5*time.Second)
		return nil, &HTTPError{Code: http.StatusServiceUnavailable, RetryAfter: again,
			Msg: fmt.Sprintf("%d of %d that wait for an image: ask again in %s to keep the place", line.place, line.of, again)}
	case errors.Is(err, errStopping), errors.Is(err, errFetching):
		return nil, &HTTPError{Code: http.StatusServiceUnavailable, Msg: err.Error() + ": ask again in 2s", RetryAfter: 2 * time.Second, Reason: RefusedBusy}
	case err != nil: // it left
		rec.queued = true
		return nil, &HTTPError{Code: http.StatusServiceUnavailable, Msg: "gone while it waited for an image", Err: err}
	}
	if rec.hurry = h.queue.crowded; p.first {
		rec.admitted, rec.place, rec.waited = true, p.place, p.took
	}
	return func() { h.queue.leave(p, rec.reachedEnd()) }, nil
}

// hold is how long a client likes to be kept waiting.
func hold(r *http.Request) time.Duration {
	s := r.Header.Get(pools.WaitHeader)
	if n, err := strconv.Atoi(s); err == nil {
		return min(time.Duration(max(n, 0))*time.Second, maxHold)
	}
	return defaultHold
}

// reachedEnd tells whether the client has now got the end of the file: of one
// that got a range in the middle, more is to come.
func (r *recorder) reachedEnd() bool {
	switch {
	case r.err != nil:
		return false
	case r.status != http.StatusPartialContent:
		return true
	}
	// "bytes 100-199/200"; several ranges have none
	span, size, ok1 := strings.Cut(r.Header().Get("Content-Range"), "/")
	_, last, ok2 := strings.Cut(span, "-")
	n, err1 := strconv.ParseInt(last, 10, 64)
	total, err2 := strconv.ParseInt(size, 10, 64)
	return ok1 && ok2 && err1 == nil && err2 == nil && n == total-1
}
