package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// File is a file of a log.
type File struct {
	Name string
	Data []byte
}

// Copy tries again while another process changes the files.
const (
	copyTries = 50
	copyPause = 20 * time.Millisecond
)

// Files returns the names of all files of the log in dir, of a snapshot that is being written
// too.
func Files(dir string) (names []string, err error) {
	for _, pattern := range []string{snapshotPattern, logPattern, snapshotPattern + ".tmp"} {
		all, err := generations(dir, pattern)
		if err != nil {
			return nil, err
		}
		for _, g := range all {
			names = append(names, fmt.Sprintf(pattern, g))
		}
	}
	return names, nil
}

// Copy reads the log in dir as it is at an instant after the call began, with all changes
// that were durable before. Another process may have it open. A directory without a log, and
// one with damage, is an error. The files have at most limit bytes.
func Copy(dir string, limit int64) ([]File, error) {
	for try := 1; ; try++ {
		files, err := copyOnce(dir, limit)
		if !errors.Is(err, errMoving) || try == copyTries {
			return files, err
		}
		time.Sleep(copyPause)
	}
}

// errMoving is the error of files that another process may be changing.
var errMoving = errors.New("damaged, or in change")

func copyOnce(dir string, limit int64) ([]File, error) {
	snapshot, logs, err := current(dir)
	if err != nil {
		return nil, err
	}
	var files []File
	for i, name := range append([]string{snapshot}, logs...) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", name, errMoving)
		}
		if err != nil {
			return nil, err
		}
		if data, err = whole(name, data, i == len(logs)); err != nil {
			return nil, err
		}
		if limit -= int64(len(data)); limit < 0 {
			return nil, fmt.Errorf("%s: the state is too large", dir)
		}
		files = append(files, File{name, data})
	}
	now, logsNow, err := current(dir)
	if err == nil && (now != snapshot || !slices.Equal(logs, logsNow)) {
		err = fmt.Errorf("%s: %w", dir, errMoving)
	}
	return files, err
}

// current returns the names of the newest snapshot and of the logs since.
func current(dir string) (snapshot string, logs []string, err error) {
	snapshots, err := generations(dir, snapshotPattern)
	if err != nil {
		return "", nil, err
	}
	if len(snapshots) == 0 {
		return "", nil, fmt.Errorf("%s has no state", dir)
	}
	newest := snapshots[len(snapshots)-1]
	all, err := generations(dir, logPattern)
	for _, g := range all {
		if g >= newest {
			logs = append(logs, fmt.Sprintf(logPattern, g))
		}
	}
	if err == nil && len(logs) == 0 {
		err = fmt.Errorf("%s: no log of %s: %w", dir, fmt.Sprintf(snapshotPattern, newest), errMoving)
	}
	return fmt.Sprintf(snapshotPattern, newest), logs, err
}

// whole returns the content of a file without damage. Of the newest log it leaves out the
// end behind the last record, which another process may be writing.
func whole(name string, data []byte, newest bool) ([]byte, error) {
	var generation uint64
	if _, err := fmt.Sscanf(name, "drover.%d.", &generation); err != nil {
		return nil, err
	}
	complete := newest || filepath.Ext(name) == ".log"
	end, err := ReadRecords(data, generation, func(_ int64, changes []byte) error {
		complete = complete || len(changes) == 0
		return nil
	}, func(from, to int64) error {
		return fmt.Errorf("%s: offset %d, %d bytes: %w", name, from, to-from, errMoving)
	})
	switch {
	case err != nil:
		return nil, err
	case !complete:
		return nil, fmt.Errorf("%s: cut off at offset %d: %w", name, end, errMoving)
	case newest:
		data = append(slices.Clip(data[:end]), make([]byte, recordHeader)...) // room for a record, as checkTail asks
	}
	return data, nil
}
