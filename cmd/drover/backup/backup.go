// Package backup has the commands drover backup and drover restore. They read and write the
// state directory on the host of the server; package state/backup does the work.
package backup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/internal/atomicfile"
	"drover/state"
	"drover/state/backup"
)

// Commands returns the commands. version is that of this program.
func Commands(version string) []*cobra.Command {
	return []*cobra.Command{newBackupCommand(version), newRestoreCommand()}
}

// result is what a command has written or read.
type result struct {
	File    string        `json:"file"`
	Created time.Time     `json:"created"`
	Version string        `json:"version"`
	Nodes   *int          `json:"nodes,omitempty"` // of the API
	Files   []backup.File `json:"files"`
}

func newBackupCommand(version string) *cobra.Command {
	var dir string
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write the state of a server to one file, while it runs",
		Long: `Backup writes the state directory to one file: the nodes of the API, leases, boots, audit,
keys and tokens, and the last good config, as they are at one instant. Images and loaders are
left out. The server may run meanwhile. It runs on the host of the server, as root or as the
server's user.

The file has secrets: its mode is 0600. It has checksums, which drover restore compares. An
older backup of that name is replaced in one step; any other file is left alone.`,
		Example: "  drover backup /root/drover.backup\n  drover backup /root/drover-$(date +%F).backup -o json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := backup.Write(dir, args[0], version, time.Now())
			if err != nil {
				return err
			}
			r := result{File: args[0], Created: m.Created, Version: m.Version, Files: m.Files}
			return output.Print(cmd, r, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s: %d files of %s; it has secrets\n", r.File, len(r.Files), dir)
				return err
			})
		},
	}
	stateFlag(cmd, &dir)
	output.Flag(cmd, "text", "json", "yaml")
	cli.OnHost(cmd, "name a state directory with --state", "state")
	return cmd
}

func stateFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "state", cli.DefaultState, "state directory of the server")
	_ = cmd.MarkFlagDirname("state")
}

// restore holds the flags of drover restore.
type restore struct {
	dir                   string
	check, now, next, yes bool
	output                cli.Output
	client                cli.Client
}

func newRestoreCommand() *cobra.Command {
	var r restore
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make the state of a backup that of the server",
		Long: `Restore checks a backup, opens its state aside, and then puts it in the place of the
state directory's, at one instant: if it is killed, or the host fails, the state is the old
one or the new one. A backup that is damaged or of a newer drover is refused. Images and
loaders stay as they are.

A server that runs with the directory is not disturbed: restore refuses, unless it is told
--now or --at-restart. With --now the server begins anew with the backup: it refuses new
requests, lets running transfers end (server.grace), and serves again. With --at-restart the
backup is in force when the server starts again, and what changes until then is lost. With
--check it restores nothing. --now asks the server of --state, by the token in that directory.`,
		Example: "  drover restore /root/drover.backup --check\n  drover restore /root/drover.backup\n  drover restore /root/drover.backup --now\n  drover restore /root/drover.backup --at-restart -y",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return r.run(cmd, args[0]) },
	}
	stateFlag(cmd, &r.dir)
	cmd.Flags().BoolVar(&r.check, "check", false, "only check the backup")
	cmd.Flags().BoolVar(&r.now, "now", false, "the server runs: it begins anew with the backup")
	cmd.Flags().BoolVar(&r.next, "at-restart", false, "the server may run: restore when it starts again")
	cmd.MarkFlagsMutuallyExclusive("check", "now", "at-restart")
	r.client.Flags(cmd)
	cli.YesFlag(cmd, &r.yes)
	r.output.Flag(cmd, "text", "json", "yaml")
	cli.OnHost(cmd, "name a state directory with --state", "state", "check")
	return cmd
}

func (r *restore) run(cmd *cobra.Command, file string) (err error) {
	b, err := backup.Read(file)
	if err != nil {
		return err
	}
	tries := os.TempDir()
	if !r.check && !r.gone(".") {
		tries = r.dir
	}
	nodes, err := b.Try(tries)
	if err != nil {
		return err
	}
	done := "is a good backup"
	if !r.check {
		if done, err = r.install(cmd, b, nodes); err != nil {
			return err
		}
	}
	res := result{file, b.Created, b.Version, &nodes, b.Files}
	return r.output.Print(cmd, res, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s of %s, %d nodes of the API: %s\n", file, b.Created.Format(time.DateTime), nodes, done)
		return err
	})
}

// install restores a backup that was checked, and says what it has done. Until the operator
// agrees it makes no file and no directory.
func (r *restore) install(cmd *cobra.Command, b *backup.Backup, nodes int) (done string, err error) {
	question := fmt.Sprintf("replace the state in %s by that of %s UTC, with %d nodes of the API?", r.dir, b.Created.Format(time.DateTime), nodes)
	alone := !r.now && !r.next // no server may run
	var lock *os.File
	defer func() {
		if lock != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	if alone && !r.gone(state.FileName) {
		if lock, err = r.lock(); err != nil {
			return "", err
		}
	}
	if err := cli.Confirm(cmd, r.yes, question); err != nil {
		return "", err
	}
	if err := makeState(r.dir); err != nil {
		return "", err
	}
	switch {
	case r.next:
		return "it is in force from the next start of drover on", b.Stage(r.dir)
	case r.now:
		return "the server has begun anew with it", r.replace(cmd, b)
	case lock == nil:
		if lock, err = r.lock(); err != nil {
			return "", err
		}
	}
	if err := b.Stage(r.dir); err != nil {
		return "", err
	}
	_, err = backup.FinishLocked(r.dir, lock)
	return "restored", err
}

// lock locks the state against a server that runs.
func (r *restore) lock() (*os.File, error) {
	lock, err := state.Lock(r.dir, time.Second)
	if err != nil {
		err = fmt.Errorf("%w: stop it first (systemctl stop drover), or give --now or --at-restart", err)
	}
	return lock, err
}

// makeState makes the state directory of a server that has never run.
func makeState(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Own(filepath.Clean(dir))
}
