package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/internal/wait"
	"drover/pools"
	"drover/state/backup"
	"drover/web/client"
)

// How long a server may take to end, which waits for transfers up to server.grace, and how
// long to begin anew.
const (
	endTimeout   = 65 * time.Minute
	beginTimeout = 5 * time.Minute
)

// replace restores a backup under a server that runs, and waits until it serves again.
func (r *restore) replace(cmd *cobra.Command, b *backup.Backup) error {
	r.client.InState(r.dir)
	sum, err := b.Propose(r.dir)
	if err != nil {
		return err
	}
	if _, err := cli.Send(cmd.Context(), &r.client, client.RestoreState, pools.RestoreRequest{SHA256: sum}); err != nil {
		return errors.Join(err, backup.Withdraw(r.dir))
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "the server ends, when running transfers have ended, and begins anew with the backup")
	for _, step := range []struct {
		limit time.Duration
		done  func() bool
	}{
		{endTimeout, func() bool { return r.gone(backup.Proposed) }},
		{beginTimeout, func() bool { return r.gone(backup.Pending) && r.answers(cmd) }},
	} {
		for end := time.Now().Add(step.limit); !step.done(); {
			if time.Now().After(end) {
				return &cli.Error{Code: cli.Unreachable, Err: errors.New("the server does not serve again: read its log (journalctl -u drover); at its next start it has the state that it has taken, the old one or that of the backup")}
			}
			if err := wait.Sleep(cmd.Context(), 50*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// gone reports whether a file of the state directory is not there.
func (r *restore) gone(name string) bool {
	_, err := os.Lstat(filepath.Join(r.dir, name))
	return errors.Is(err, fs.ErrNotExist)
}

// answers reports whether a server answers. The token may be another one now.
func (r *restore) answers(cmd *cobra.Command) bool {
	c := cli.ClientOf(cmd)
	c.InState(r.dir)
	_, err := cli.Get(cmd.Context(), c, client.Version)
	return cli.CodeOf(err) != cli.Unreachable
}
