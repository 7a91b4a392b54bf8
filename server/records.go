package server

import (
	"context"
	"log/slog"
	"time"

	"drover/pools"
	"drover/state"
)

// maxRecords bounds the changes that wait to be recorded while the disk is slow.
const maxRecords = 64

// records writes the audit of changes that nobody has asked for over the API. Its goroutine is
// its own, so that no change of the config waits for the disk.
type records struct {
	store *state.Store
	log   *slog.Logger
	queue chan func()
}

func newRecords(store *state.Store, log *slog.Logger) *records {
	return &records{store: store, log: log, queue: make(chan func(), maxRecords)}
}

// run records until ctx ends. It does not wait for a disk that hangs then.
func (r *records) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case write := <-r.queue:
			written := make(chan struct{})
			go func() {
				defer close(written)
				write()
			}()
			select {
			case <-written:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// add queues a write. It never waits.
func (r *records) add(write func()) {
	select {
	case r.queue <- write:
	default:
		r.log.Error("change not recorded: the disk is too slow")
	}
}

// audit records that a change of the config is in force.
func (r *records) audit(who, action string, changes ...pools.AuditChange) {
	e := pools.AuditEntry{Time: time.Now(), Actor: who, Action: action, Result: "done", Changes: changes}
	r.add(func() {
		if err := r.store.Audit.Add(e); err != nil {
			r.log.Error("audit not stored", "err", err)
		}
	})
}
