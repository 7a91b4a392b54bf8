package httpboot

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"drover/internal/lograte"
	"drover/pools"
)

// maxLoggedPath limits the path in the log, in bytes.
const maxLoggedPath = 256

// Limits of the log lines of one kind, in lines per second, so that no client fills the
// disk.
const (
	maxLines = 20
	maxSteps = 100 // successful steps of boots, beside the budget of each declared machine
)

// done logs a request and calls the hooks. Paths contain no secret: nonces are in a
// header.
func (h *handler) done(ctx context.Context, rec *recorder) {
	rec.Status = cmp.Or(rec.Status, http.StatusOK) // for a handler that wrote nothing
	rec.Took = time.Since(rec.start)
	reason := rec.refusal()
	if level, kind, limiter := h.line(rec, reason); limiter == nil || limiter.Allow(level, kind) {
		h.log(ctx, level, rec.Request, reason)
	}
	if h.server.OnRequest != nil {
		h.server.OnRequest(rec.Request)
	}
	if reason != "" {
		h.refused(reason)
	}
}

// refused calls OnRefused, unless it is nil.
func (h *handler) refused(reason Refusal) {
	if h.server.OnRefused != nil {
		h.server.OnRefused(reason)
	}
}

// line returns level, kind and limiter of the log line of a request; at level debug no line
// is left out. A boot has at most five lines at level info, even if it requests its turn
// often.
func (h *handler) line(rec *recorder, reason Refusal) (level slog.Level, kind string, limiter *lograte.Limiter) {
	switch {
	case rec.queued:
		return slog.LevelDebug, "queued", nil
	case rec.Status >= 500 && rec.Status != http.StatusServiceUnavailable:
		return slog.LevelError, "fault", h.lines
	case rec.problem:
		return slog.LevelWarn, "problem", h.lines
	case rec.Status == http.StatusForbidden, rec.Status == http.StatusTooManyRequests, rec.Status == http.StatusServiceUnavailable:
		return slog.LevelWarn, cmp.Or(string(reason), "refused"), h.lines
	case rec.Status < 400 && rec.Err == nil && isStep(rec.Route):
		if client, _ := netip.ParseAddr(rec.Remote); rec.plan != nil && !rec.plan.CatchAll && h.budget.Allow(client) {
			return slog.LevelInfo, "step", nil
		}
		return slog.LevelInfo, "step", h.steps
	case rec.Status < 400 && rec.Err == nil:
		return slog.LevelDebug, "request", nil
	}
	return slog.LevelInfo, cmp.Or(string(reason), "failed"), h.lines
}

// isStep reports whether a boot requests a route about once.
func isStep(route string) bool {
	switch route {
	case "", "GET /boot.ipxe", "POST " + pools.PeersPath, "POST " + pools.NodePath + "{mac}/events":
		return false
	}
	return true
}

func (h *handler) log(ctx context.Context, level slog.Level, req Request, reason Refusal) {
	if !h.server.Log.Enabled(ctx, level) {
		return
	}
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
	h.server.Log.LogAttrs(ctx, level, "request", attrs...)
}
