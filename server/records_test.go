package server

import (
	"context"
	"log/slog"
	"testing"
)

// TestRecordsNeverWait: a disk that hangs holds up neither a change of the config nor the end of
// the server.
func TestRecordsNeverWait(t *testing.T) {
	r := newRecords(nil, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended, began, frozen := make(chan error), make(chan struct{}), make(chan struct{})
	defer close(frozen)
	go func() { ended <- r.run(ctx) }()
	r.add(func() { close(began); <-frozen })
	<-began
	for range 2 * maxRecords {
		r.add(func() { t.Error("written while the disk hangs") })
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
