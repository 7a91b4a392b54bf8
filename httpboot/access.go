package httpboot

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"drover/pools"
)

// maxLoggedPath bounds the path in the log, in bytes.
const maxLoggedPath = 256

// done writes the log line of a request and calls the hooks. A path holds no
// secret: nonces are in a header.
func (h *handler) done(rec *recorder, r *http.Request, took time.Duration) {
	if rec.status == 0 {
		rec.status = http.StatusOK // a handler that wrote nothing
	}
	req := Request{
		Method: r.Method, Route: rec.route, Path: r.URL.Path, MAC: rec.mac, Pool: rec.pool, Node: rec.node,
		Status: rec.status, Bytes: rec.bytes, Took: took, Remote: addrOf(r.RemoteAddr).String(), Err: rec.err,
		Admitted: rec.admitted, Position: rec.position, Waited: rec.waited,
	}
	reason := rec.refusal()
	if level := h.level(rec); h.Log.Enabled(r.Context(), level) {
		h.log(r.Context(), level, req, reason)
	}
	if h.OnRequest != nil {
		h.OnRequest(req)
	}
	if reason != "" {
		h.refused(reason)
	}
}

// refused calls the hook.
func (h *handler) refused(reason Refusal) {
	if h.OnRefused != nil {
		h.OnRefused(reason)
	}
}

// level returns the log level of a request. A boot has five lines at most at
// level info, however often it asks for its turn; a client that is refused all
// the time gets a few lines a second.
func (h *handler) level(rec *recorder) slog.Level {
	loud := slog.LevelInfo
	switch {
	case rec.queued:
		return slog.LevelDebug
	case rec.status >= 500 && rec.status != http.StatusServiceUnavailable:
		loud = slog.LevelError
	case rec.problem, rec.status == http.StatusForbidden, rec.status == http.StatusTooManyRequests, rec.status == http.StatusServiceUnavailable:
		loud = slog.LevelWarn
	case rec.status < 400 && rec.err == nil:
		if isStep(rec.route) {
			return slog.LevelInfo
		}
		return slog.LevelDebug
	}
	if !h.loud.allows(time.Now()) {
		return slog.LevelDebug
	}
	return loud
}

// isStep reports whether a boot asks for a route about once.
func isStep(route string) bool {
	switch route {
	case "", "GET /boot.ipxe", "POST " + pools.NodePath + "{mac}/events":
		return false
	}
	return true
}

func (h *handler) log(ctx context.Context, level slog.Level, req Request, reason Refusal) {
	attrs := make([]slog.Attr, 0, 12)
	if !req.MAC.IsZero() {
		attrs = append(attrs, slog.String("mac", req.MAC.String()), slog.String("pool", req.Pool), slog.String("node", req.Node))
	}
	attrs = append(attrs,
		slog.String("method", req.Method), slog.String("path", cut(req.Path, maxLoggedPath)), slog.Int("status", req.Status),
		slog.Int64("bytes", req.Bytes), slog.Duration("took", req.Took), slog.String("addr", req.Remote))
	if req.Position > 0 {
		attrs = append(attrs, slog.Int("position", req.Position), slog.Duration("waited", req.Waited))
	}
	if reason != "" {
		attrs = append(attrs, slog.String("refused", string(reason)))
	}
	if req.Err != nil {
		attrs = append(attrs, slog.String("err", req.Err.Error()))
	}
	h.Log.LogAttrs(ctx, level, "request", attrs...)
}

// throttle bounds the lines above level debug in a second.
type throttle struct {
	mu     sync.Mutex
	second int64
	n      int
}

// maxLoud shows what happens, and fills no disk over a weekend.
const maxLoud = 20

func (t *throttle) allows(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := now.Unix(); s != t.second {
		t.second, t.n = s, 0
	}
	t.n++
	return t.n <= maxLoud
}
