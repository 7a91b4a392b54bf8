package server

import (
	"context"
	"log/slog"

	"drover/pools"
	"drover/pools/boots"
)

// bootLines is a handler that adds the ID of the boot to each line about a machine, so that all
// lines of a boot can be found: "boot" beside "mac".
type bootLines struct {
	slog.Handler
	current func(pools.MAC) (boots.Record, bool)
	mac     string // of the logger; empty: each line has its own, or none
}

// withBoots returns a logger whose lines about a machine have the ID of its newest boot.
func withBoots(log *slog.Logger, current func(pools.MAC) (boots.Record, bool)) *slog.Logger {
	return slog.New(bootLines{Handler: log.Handler(), current: current})
}

// Handle writes a line.
func (h bootLines) Handle(ctx context.Context, r slog.Record) error {
	text := h.mac
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "mac" {
			text = a.Value.String()
		}
		return a.Key != "mac"
	})
	if mac, err := pools.ParseMAC(text); text != "" && err == nil {
		if b, ok := h.current(mac); ok {
			r = r.Clone()
			r.AddAttrs(slog.String("boot", b.ID))
		}
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs returns a handler whose lines have further attributes.
func (h bootLines) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if a.Key == "mac" {
			h.mac = a.Value.String()
		}
	}
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup returns a handler whose further attributes are in a group.
func (h bootLines) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}
