package backup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"drover/internal/atomicfile"
	"drover/pools"
)

// Proposed is the name of a backup in the state directory that a server is to take over. Until
// it does, the backup means nothing.
const Proposed = "restore.proposed"

// Propose lays the backup ready in dir, and returns its SHA-256.
func (b *Backup) Propose(dir string) (sum string, err error) {
	return b.sum, b.copyTo(filepath.Join(dir, Proposed))
}

// IsProposed reports whether a backup lies ready in dir. It does not write to the disk.
func IsProposed(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, Proposed))
	return err == nil
}

// Withdraw removes a backup that was laid ready in dir.
func Withdraw(dir string) error {
	if err := os.Remove(filepath.Join(dir, Proposed)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// CheckProposed returns an error if no backup with this SHA-256 lies ready in dir.
func CheckProposed(dir, sum string) error {
	b, err := Read(filepath.Join(dir, Proposed))
	if errors.Is(err, fs.ErrNotExist) {
		return pools.Hint("run drover restore --now on the host of the server, with its --state", "no backup lies ready in the state directory")
	}
	if err != nil {
		return err
	}
	if b.sum != sum {
		return pools.Hint("run drover restore --now again", "another backup lies ready in the state directory")
	}
	return nil
}

// Accept makes the backup that lies ready in dir the state of dir, as [Backup.Stage] does. The
// server of dir has closed its state.
func Accept(dir, sum string) error {
	if err := CheckProposed(dir, sum); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dir, Proposed), filepath.Join(dir, Pending)); err != nil {
		return err
	}
	return atomicfile.SyncDir(dir)
}
