package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"drover/pools/atomicfile"
	"drover/pools/state"
	"drover/pools/state/wal"
)

// comment is in the header of a backup's gzip. It tells a backup from other files.
const comment = "drover backup"

// manifestName is the name of the last entry.
const manifestName = "backup.json"

// pack writes files as a tar with gzip.
func pack(w io.Writer, files []wal.File, now time.Time) error {
	z := gzip.NewWriter(w)
	z.Comment = comment
	t := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Mode: 0o600, Size: int64(len(f.Data)), ModTime: now, Format: tar.FormatPAX}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.Data); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

// Read reads a backup and checks each of its bytes.
func Read(path string) (*Backup, error) {
	raw, err := atomicfile.Read(path, maxSize)
	if err != nil {
		return nil, err
	}
	b := &Backup{raw: raw, data: map[string][]byte{}}
	if err = b.unpack(bytes.NewReader(raw)); err == nil {
		err = b.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// damaged returns an error about a backup that is not as it was written.
func damaged(cause any) error { return fmt.Errorf("the backup is damaged: %v", cause) }

// carries reports whether a backup may have a file of that name. Some names are instructions to
// the server: that it starts with damaged state, or takes over a restore.
func carries(name string) bool {
	return plain.MatchString(name) && name != state.AcceptLossFile && name != Pending && name != Proposed
}

// unpack reads the entries of a backup.
func (b *Backup) unpack(r io.Reader) error {
	in := bufio.NewReader(r)
	z, err := gzip.NewReader(in)
	if err != nil || z.Comment != comment {
		return errors.New("it is not a backup of drover")
	}
	z.Multistream(false)
	room := int64(maxSize)
	bounded := &io.LimitedReader{R: z, N: room + 1<<20}
	t := tar.NewReader(bounded)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return damaged(err)
		}
		_, twice := b.data[h.Name]
		switch {
		case h.Typeflag != tar.TypeReg || !carries(h.Name) || twice:
			return damaged(fmt.Sprintf("it has the entry %q", h.Name))
		case h.Size > room:
			return fmt.Errorf("more than %d bytes", int64(maxSize))
		}
		data, err := io.ReadAll(t)
		if err != nil {
			return damaged(err)
		}
		room -= int64(len(data))
		b.data[h.Name] = data
	}
	// The checksum of gzip is at the end.
	if _, err := io.Copy(io.Discard, bounded); err != nil {
		return damaged(err)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return damaged("there are bytes behind its end")
	}
	return nil
}

// check compares the files with the manifest.
func (b *Backup) check() error {
	text, ok := b.data[manifestName]
	if !ok {
		return damaged("its list of files is missing")
	}
	delete(b.data, manifestName)
	if err := json.Unmarshal(text, &b.Manifest); err != nil {
		return damaged(err)
	}
	if b.Format > format {
		return fmt.Errorf("written by a newer drover (%s, format %d, this one knows %d): use that version", b.Version, b.Format, format)
	}
	if b.Format < 1 || len(b.Files) != len(b.data) {
		return damaged(fmt.Sprintf("it has %d files, and lists %d", len(b.data), len(b.Files)))
	}
	for _, f := range b.Files {
		data, ok := b.data[f.Name]
		if sum := sha256.Sum256(data); !ok || int64(len(data)) != f.Size || hex.EncodeToString(sum[:]) != f.SHA256 {
			return damaged(f.Name + " is not as it was written")
		}
	}
	if b.data[state.FileName] == nil {
		return damaged("it has no state")
	}
	return nil
}

// Try opens the state of a backup in a new directory in dir, and returns the number of its
// nodes of the API. A state that is damaged, or of a newer version, is an error.
func (b *Backup) Try(dir string) (nodes int, err error) {
	tmp, err := os.MkdirTemp(dir, trying+"*")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	for name, data := range b.data {
		if err := os.WriteFile(filepath.Join(tmp, name), data, 0o600); err != nil {
			return 0, err
		}
	}
	s, err := state.Open(tmp, state.Options{FlushEvery: time.Hour})
	if err != nil {
		return 0, fmt.Errorf("the state in the backup: %w", err)
	}
	parts := s.Damage()
	all, err := s.Nodes.Nodes()
	if err = errors.Join(err, s.Close()); err != nil {
		return 0, err
	}
	if parts > 0 {
		return 0, damaged(fmt.Sprintf("%d parts of its state", parts))
	}
	return len(all), nil
}

// trying is what the names of directories of Try begin with.
const trying = ".restore-"

// Stage makes the backup the state of dir: durably, and at one instant. Its files get into
// their places by [Finish].
func (b *Backup) Stage(dir string) error {
	return atomicfile.Write(filepath.Join(dir, Pending), b.raw, 0o600)
}
