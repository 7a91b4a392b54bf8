package state

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"drover/state/wal"
)

// AcceptLossFile is the name of a file that an operator makes in the state directory to
// let Open leave out what is damaged or missing, nodes too. Open removes it.
const AcceptLossFile = "accept-loss"

// remedy follows an error about damage. Its argument is the state directory.
const remedy = "restore the directory from a backup; or, to go on without what is lost, run: touch %s, and start drover again"

// open locks the directory, and fills the tables.
func (s *Store) open(dir string, o Options) error {
	path, accept := filepath.Join(dir, FileName), filepath.Join(dir, AcceptLossFile)
	s.engine.AcceptLoss = exists(accept)
	err := s.checkMissing(dir, o)
	if err == nil {
		s.lock, err = lock(path, o.LockTimeout)
	}
	if err == nil {
		err = s.read(dir, path)
	}
	if errors.Is(err, wal.ErrDamaged) {
		err = fmt.Errorf("%w: "+remedy, err, accept)
	}
	if err != nil {
		if s.lock != nil {
			err = errors.Join(err, s.lock.Close())
		}
		return err
	}
	if s.engine.AcceptLoss {
		err := os.Remove(accept)
		s.log.Warn("started without what is damaged or missing", "file", accept, "err", err)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// checkMissing returns an error if the directory has no state but files of a server that
// ran with it.
func (s *Store) checkMissing(dir string, o Options) error {
	has, err := s.engine.HasSnapshot()
	if err != nil || has || s.engine.AcceptLoss {
		return err
	}
	for _, name := range o.Keys {
		if exists(filepath.Join(dir, name)) {
			return fmt.Errorf("%s has no state, but %s of a server that ran with it: %w", dir, name, wal.ErrDamaged)
		}
	}
	return nil
}

// read reads the locked state file, and all others.
func (s *Store) read(dir, path string) error {
	content, err := io.ReadAll(s.lock)
	if err != nil {
		return err
	}
	has, err := s.engine.HasSnapshot()
	if err != nil {
		return err
	}
	version, found := strings.CutPrefix(string(content), formatText)
	switch {
	case found:
		version, _, _ = strings.Cut(version, "\n")
		if err = checkFormat(version, format); err != nil && has {
			err = fmt.Errorf("%w (if it is this file alone that is damaged, remove it: it is written again)", err)
		}
	case len(content) > 0 && !has && !s.engine.AcceptLoss:
		err = fmt.Errorf("not a state file of drover: %w", wal.ErrDamaged)
	default:
		err = s.writeFormat(has)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := s.engine.Open(); err != nil {
		return fmt.Errorf("state directory %s: %w", dir, err)
	}
	return nil
}

// writeFormat writes the content of a state file that is empty or damaged. It is no error
// if that fails where there is a state all the same.
func (s *Store) writeFormat(hasState bool) error {
	err := s.lock.Truncate(0)
	if err == nil {
		_, err = s.lock.WriteAt([]byte(formatFile), 0)
	}
	err = errors.Join(err, s.lock.Sync())
	if hasState {
		s.log.Warn("the state file was missing, empty or damaged, and is written again", "file", s.lock.Name(), "err", err)
		return nil
	}
	return err
}
