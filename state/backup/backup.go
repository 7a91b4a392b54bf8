// Package backup writes the state directory of a server to one file, and puts such a file in
// its place.
//
// [Write] reads a directory that a server may have open: the log as it is at an instant, with
// all that was acknowledged before, the keys, and the copy of the config. The file is a tar
// with gzip; its last entry has the size and the SHA-256 of each other one.
//
// [Read] checks all of a backup, and [Backup.Try] opens its state in a directory of its own.
// [Backup.Stage] then puts the backup into the state directory by one rename, as [Pending]. From
// that instant on the state is that of the backup: [Finish] puts the files in their places,
// and begins anew after a crash. A server calls it before it opens its state. Under a server
// that runs, [Backup.Propose] lays the backup ready, and the server takes it with [Accept] when it
// has closed its state.
//
// The package does not know the content of the state.
package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"drover/internal/atomicfile"
	"drover/state"
	"drover/state/wal"
)

// format is the version of the layout of a backup. Read refuses a newer one.
const format = 1

// maxSize bounds the files of a backup together, in bytes.
const maxSize = 1 << 30

// Manifest describes a backup.
type Manifest struct {
	Format  int       `json:"format"`
	Version string    `json:"version"` // of the drover that wrote it
	Created time.Time `json:"created"`
	Files   []File    `json:"files"`
}

// File is a file of a backup.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // hexadecimal
}

// Backup is a backup that was read. It has a state.
type Backup struct {
	Manifest
	path  string // of the file
	sum   string // its SHA-256, hexadecimal
	state []byte // the content of [state.FileName]
}

// Write writes a backup of the state directory dir to the file path, with mode 0600. After a
// crash the file is the old one or the new one. version is that of this program.
func Write(dir, path, version string, now time.Time) (Manifest, error) {
	m := Manifest{Format: format, Version: version, Created: now.UTC().Truncate(time.Second)}
	if err := mayWrite(dir, path); err != nil {
		return m, err
	}
	files, err := collect(dir)
	if err != nil {
		return m, err
	}
	for _, f := range files {
		sum := sha256.Sum256(f.Data)
		m.Files = append(m.Files, File{f.Name, int64(len(f.Data)), hex.EncodeToString(sum[:])})
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return m, err
	}
	files = append(files, wal.File{Name: manifestName, Data: append(text, '\n')})
	return m, atomicfile.Create(path, 0o600, func(f *os.File) error { return pack(f, files, m.Created) })
}

// mayWrite returns an error for a path that must not be replaced: anything but a backup.
func mayWrite(dir, path string) error {
	if _, err := os.Lstat(filepath.Join(dir, Pending)); err == nil {
		return fmt.Errorf("%s: a restore is under way: start drover, which finishes it", filepath.Join(dir, Pending))
	}
	inside, err := sameDirectory(dir, filepath.Dir(path))
	if err != nil {
		return err
	}
	if inside {
		return fmt.Errorf("%s is in the state directory: a backup belongs elsewhere, best on another disk", path)
	}
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil // it does not exist; others are for the write
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file (mode %s)", path, info.Mode())
	}
	head := make([]byte, 64)
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if n, _ := f.Read(head); !bytes.Contains(head[:n], []byte(comment)) {
		return fmt.Errorf("%s exists and is no backup: give another name, or remove it", path)
	}
	return nil
}

func sameDirectory(a, b string) (bool, error) {
	x, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	y, err := os.Stat(b)
	if err != nil {
		return false, err
	}
	return os.SameFile(x, y), nil
}

// plain is the form of the names of a state directory's files that belong to a backup.
var plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,200}$`)

// left are the names of files that are no part of a backup.
func left(name string) bool {
	return !carries(name) || name == manifestName ||
		slices.Contains([]string{".damaged", ".old", ".tmp", ".snap", ".log", ".sock", ".addr", ".id"}, filepath.Ext(name))
}

// collect reads the files of a state directory.
func collect(dir string) ([]wal.File, error) {
	format, err := atomicfile.Read(filepath.Join(dir, state.FileName), maxSize)
	if err != nil {
		return nil, fmt.Errorf("%w (is it the state directory of a server that has run?)", err)
	}
	if !strings.HasPrefix(string(format), "drover state, format ") {
		return nil, fmt.Errorf("%s is no state file of drover, or damaged", filepath.Join(dir, state.FileName))
	}
	files, err := wal.Copy(dir, maxSize)
	if err != nil {
		return nil, err
	}
	room := int64(maxSize)
	for _, f := range files {
		room -= int64(len(f.Data))
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if left(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		data, err := atomicfile.Read(filepath.Join(dir, e.Name()), room)
		if err != nil {
			return nil, err
		}
		room -= int64(len(data))
		files = append(files, wal.File{Name: e.Name(), Data: data})
	}
	return files, nil
}
