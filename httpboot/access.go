package httpboot

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"drover/pools"
)

// maxLoggedPath bounds the path in the log, in bytes.
const maxLoggedPath = 256

// maxLoud bounds the log lines above level debug, but for a boot's steps, in a
// second: enough to see what happens, without filling a disk over a weekend.
const maxLoud = 20

// done writes the log line of a request and calls the hooks. A path holds no
// secret: nonces are in a header.
func (h *handler) done(ctx context.Context, rec *recorder) {
	rec.Status = cmp.Or(rec.Status, http.StatusOK) // for a handler that wrote nothing
	rec.Took = time.Since(rec.start)
	reason := rec.refusal()
	if level := h.level(rec); h.Log.Enabled(ctx, level) {
		h.log(ctx, level, rec.Request, reason)
	}
	if h.OnRequest != nil {
		h.OnRequest(rec.Request)
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
	case rec.Status >= 500 && rec.Status != http.StatusServiceUnavailable:
		loud = slog.LevelError
	case rec.problem, rec.Status == http.StatusForbidden, rec.Status == http.StatusTooManyRequests, rec.Status == http.StatusServiceUnavailable:
		loud = slog.LevelWarn
	case rec.Status < 400 && rec.Err == nil:
		if isStep(rec.Route) {
			return slog.LevelInfo
		}
		return slog.LevelDebug
	}
	if !h.loud.Allow() {
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
	path := strings.ToValidUTF8(req.Path[:min(len(req.Path), maxLoggedPath)], "?")
	attrs = append(attrs,
		slog.String("method", req.Method), slog.String("path", path), slog.Int("status", req.Status),
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
