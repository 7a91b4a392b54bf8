package server

import (
	"context"
	"fmt"
	"time"

	"drover/internal/atomicfile"
	"drover/pools"
	"drover/state/backup"
)

// Restore is the error of [Server.Run] when it was asked to begin anew with a backup. Close the
// server, and call [New] with it in the options.
type Restore struct {
	SHA256 string // of the backup
	By     string // as in the audit
}

func (r *Restore) Error() string { return "beginning anew with a backup, as " + r.By + " wants" }

// finishRestore puts the backup in place that is to be restored, and returns it; nil if there is
// none. A state directory that others can write to is an error.
func finishRestore(o Options) (*backup.Backup, error) {
	if err := atomicfile.CheckDirectory(o.State); err != nil {
		return nil, fmt.Errorf("state directory %w", err)
	}
	if o.Restore != nil {
		if err := backup.Accept(o.State, o.Restore.SHA256); err != nil {
			o.Log.Error("backup not restored: the state is unchanged", "err", err)
		}
	}
	b, err := backup.Finish(o.State)
	if b != nil {
		o.Log.Warn("state restored from a backup", "created", b.Created, "version", b.Version)
	}
	return b, err
}

// recordRestore adds the restore of a backup to the audit, which is that of the backup. It
// removes what a restore has left that was killed before its begin: beside the start, which a disk
// that hangs must not hold up.
func (s *Server) recordRestore(o Options, b *backup.Backup) {
	if backup.IsProposed(o.State) {
		go func() {
			if err := backup.Withdraw(o.State); err != nil {
				s.log.Warn("proposed backup not removed", "file", backup.Proposed, "err", err)
			}
		}()
	}
	if b == nil {
		return
	}
	by := "drover restore on this host"
	if o.Restore != nil {
		by = o.Restore.By
	}
	if err := s.Store.Audit.Add(pools.AuditEntry{Time: time.Now(), Actor: by, Action: "restore the backup of " + b.Created.Format(time.RFC3339), Result: "done"}); err != nil {
		s.log.Error("audit not stored", "err", err)
	}
}

// restorer begins the server anew with a backup, for the REST API.
type restorer struct {
	dir  string
	asks chan<- *Restore
}

// Check implements [api.Restorer].
func (r restorer) Check(sum string) error { return backup.CheckProposed(r.dir, sum) }

// Restore implements [api.Restorer].
func (r restorer) Restore(sum, by string) error {
	select {
	case r.asks <- &Restore{sum, by}:
		return nil
	default:
		return pools.Hint("wait until the server has begun anew", "a restore is under way")
	}
}

// awaitRestore returns the restore that a client asks for.
func (s *Server) awaitRestore(ctx context.Context) error {
	select {
	case r := <-s.restores:
		return r
	case <-ctx.Done():
		return nil
	}
}
