package httpboot

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"drover/httpboot/queue"
	"drover/pools"
	"drover/pools/resolve"
)

const (
	// defaultHold is the time that a request waits for its turn if the client sets
	// none. A client that does not know the queue treats a refusal as a failure, so
	// the server keeps it waiting.
	defaultHold = 45 * time.Second
	maxHold     = 5 * time.Minute

	// crowdedStall is the time that a transfer of an image may take for one MiB while
	// other clients wait for its slot. Even a hundredth of a gigabit link is ten
	// times faster.
	crowdedStall = 15 * time.Second
	// displacedStall is the same for a client that keeps a machine of a lower rank
	// waiting: 350 kB/s.
	displacedStall = 3 * time.Second
)

// admit waits until the root image may be sent to the client. Requests for kernels and
// initrds never wait: the files are small, and the timeouts of firmware short. If the
// error is nil, the caller has to call [queue.Queue.Leave] after the transfer.
func (h *handler) admit(rec *recorder, r *http.Request) (turn queue.Turn, err error) {
	client := queue.Client{Addr: addrOf(r.RemoteAddr), Rank: h.rank(rec.plan)}
	if client.Rank == queue.Stranger {
		remote, _ := netip.ParseAddrPort(r.RemoteAddr)
		client.Port = remote.Port()
	}
	turn, err = h.queue.Enter(r.Context(), client, r.Header.Get("Range") == "", hold(r))
	var wait queue.WaitError
	switch {
	case errors.As(err, &wait):
		rec.queued, rec.Position = true, wait.Position
		rec.Header().Set(pools.PlaceHeader, strconv.Itoa(wait.Position))
		again := min(time.Second+time.Duration(wait.Position/200)*time.Second, 5*time.Second)
		return turn, &httpError{Code: http.StatusServiceUnavailable, RetryAfter: again,
			Msg: fmt.Sprintf("%v: ask again in %s to keep the place", wait, again)}
	case errors.Is(err, queue.ErrStopped), errors.Is(err, queue.ErrTwice), errors.Is(err, queue.ErrFull):
		return turn, &httpError{Code: http.StatusServiceUnavailable, Msg: err.Error() + ": ask again in 2s", RetryAfter: 2 * time.Second, Reason: RefusedBusy}
	case err != nil: // the client disconnected
		rec.queued = true
		return turn, &httpError{Code: http.StatusServiceUnavailable, Msg: "gone while it waited for an image", Err: err}
	}
	rec.mostStall = func() time.Duration { return h.stallOf(client) }
	if turn.First {
		rec.Admitted, rec.Position, rec.Waited = true, turn.Position, turn.Waited
	}
	return turn, nil
}

// stallOf returns the time that a transfer to a client may take for one MiB.
func (h *handler) stallOf(c queue.Client) time.Duration {
	switch crowded, before := h.queue.Crowded(c); {
	case before:
		return displacedStall
	case crowded:
		return crowdedStall
	}
	return h.StallTimeout
}

// rank returns the rank of the machine with a Plan. The Plan is nil for a client that is
// no machine.
func (h *handler) rank(p *resolve.Plan) queue.Rank {
	switch {
	case p == nil:
		return queue.Stranger
	case !p.CatchAll:
		return queue.Declared
	case h.server.Clients == nil || h.server.Clients.Booting(p.Node):
		return queue.Booting
	}
	return queue.Stranger
}

// hold returns the time that a client's request may wait for its turn.
func hold(r *http.Request) time.Duration {
	s := r.Header.Get(pools.WaitHeader)
	if n, err := strconv.Atoi(s); err == nil {
		return min(time.Duration(max(n, 0))*time.Second, maxHold)
	}
	return defaultHold
}
