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

// maxLoggedPath limits the path in the log, in bytes.
const maxLoggedPath = 256

// maxLogRate limits the log lines above level debug, in lines per second. Lines of a
// boot's steps do not count. The limit keeps a client from filling the disk.
const maxLogRate = 20

// done logs a request and calls the hooks. Paths contain no secret: nonces are in a
// header.
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

// refused calls OnRefused, unless it is nil.
func (h *handler) refused(reason Refusal) {
	if h.OnRefused != nil {
		h.OnRefused(reason)
	}
}

// level returns the log level of a request. A boot has at most five lines at level info,
// even if it requests its turn often. Other lines are limited to maxLogRate.
func (h *handler) level(rec *recorder) slog.Level {
	level := slog.LevelInfo
	switch {
	case rec.queued:
		return slog.LevelDebug
	case rec.Status >= 500 && rec.Status != http.StatusServiceUnavailable:
		level = slog.LevelError
	case rec.problem, rec.Status == http.StatusForbidden, rec.Status == http.StatusTooManyRequests, rec.Status == http.StatusServiceUnavailable:
		level = slog.LevelWarn
	case rec.Status < 400 && rec.Err == nil:
		if isStep(rec.Route) {
			return slog.LevelInfo
		}
		return slog.LevelDebug
	}
	if !h.logRate.Allow() {
		return slog.LevelDebug
	}
	return level
}

// isStep reports whether a boot requests a route about once.
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
