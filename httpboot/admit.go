package httpboot

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"drover/httpboot/queue"
	"drover/pools"
)

const (
	// defaultHold is how long a request waits for its turn when the client sets
	// no time. A client that does not know the queue takes a refusal for a
	// failure, so the server keeps it waiting.
	defaultHold = 45 * time.Second
	maxHold     = 5 * time.Minute

	// crowdedStall is how long a transfer of an image may take for one MiB while
	// other clients wait for its slot: a hundredth of a gigabit link is ten times
	// faster.
	crowdedStall = 15 * time.Second
)

// admit waits until the root image may be sent to the client. Kernels and initrds
// are small and firmware has no patience, so they never wait. Without an error,
// leave must be called after the transfer.
func (h *handler) admit(rec *recorder, r *http.Request) (leave func(), err error) {
	remote, _ := netip.ParseAddrPort(r.RemoteAddr)
	client := queue.Client{Addr: addrOf(r.RemoteAddr), Port: remote.Port()}
	if !rec.mac.IsZero() {
		client.Port = 0
	}
	turn, err := h.queue.Enter(r.Context(), client, r.Header.Get("Range") == "", hold(r))
	var wait queue.WaitError
	switch {
	case errors.As(err, &wait):
		rec.queued, rec.position = true, wait.Position
		rec.Header().Set(pools.PlaceHeader, strconv.Itoa(wait.Position))
		again := min(time.Second+time.Duration(wait.Position/200)*time.Second, 5*time.Second)
		return nil, &HTTPError{Code: http.StatusServiceUnavailable, RetryAfter: again,
			Msg: fmt.Sprintf("%v: ask again in %s to keep the place", wait, again)}
	case errors.Is(err, queue.ErrStopped), errors.Is(err, queue.ErrTwice):
		return nil, &HTTPError{Code: http.StatusServiceUnavailable, Msg: err.Error() + ": ask again in 2s", RetryAfter: 2 * time.Second, Reason: RefusedBusy}
	case err != nil: // the client left
		rec.queued = true
		return nil, &HTTPError{Code: http.StatusServiceUnavailable, Msg: "gone while it waited for an image", Err: err}
	}
	if rec.crowded = h.queue.Crowded; turn.First {
		rec.admitted, rec.position, rec.waited = true, turn.Position, turn.Waited
	}
	return func() { h.queue.Leave(turn, rec.reachedEnd()) }, nil
}

// hold returns how long a client's request may wait for its turn.
func hold(r *http.Request) time.Duration {
	s := r.Header.Get(pools.WaitHeader)
	if n, err := strconv.Atoi(s); err == nil {
		return min(time.Duration(max(n, 0))*time.Second, maxHold)
	}
	return defaultHold
}

// reachedEnd reports whether the client has now got the end of the file: after a
// range in the middle it asks for more.
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
