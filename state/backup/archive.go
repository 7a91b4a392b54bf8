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

	"drover/internal/atomicfile"
	"drover/state"
	"drover/state/wal"
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

// The bounds of what a backup unpacks to. A state has at most some twenty bytes for one of the file: what has
// more is made to fill memory and disks.
const (
	maxSmall   = 16 << 20 // bytes, of any backup
	maxRatio   = 100      // bytes for one of the file
	maxEntries = 1000
	maxText    = 1 << 20 // bytes of an entry that is kept in memory
)

// Read reads a backup and checks each of its bytes. It keeps none of its files in memory: others
// read the file at path again.
func Read(path string) (*Backup, error) {
	b := &Backup{path: path}
	seen := map[string]File{}
	var manifest []byte
	err := b.each(func(f File, r io.Reader) (err error) {
		if f.Name == manifestName {
			manifest, err = readText(f, r)
			return err
		}
		if f.Name == state.FileName {
			b.state, err = readText(f, r)
			r = bytes.NewReader(b.state)
		}
		if err == nil {
			f.SHA256, err = digestOf(r)
		}
		seen[f.Name] = f
		return err
	})
	if err == nil {
		err = b.check(manifest, seen)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

func readText(f File, r io.Reader) ([]byte, error) {
	if f.Size > maxText {
		return nil, damaged(fmt.Sprintf("%s has %d bytes", f.Name, f.Size))
	}
	return io.ReadAll(r)
}

func digestOf(r io.Reader) (string, error) {
	h := sha256.New()
	_, err := io.Copy(h, r)
	return hex.EncodeToString(h.Sum(nil)), err
}

// damaged returns an error about a backup that is not as it was written.
func damaged(cause any) error { return fmt.Errorf("the backup is damaged: %v", cause) }

// carries reports whether a backup may have a file of that name. Some names are instructions to
// the server: that it starts with damaged state, or takes over a restore.
func carries(name string) bool {
	return plain.MatchString(name) && name != state.AcceptLossFile && name != Pending && name != Proposed
}

// open opens the file of the backup.
func (b *Backup) open() (f *os.File, size int64, err error) {
	if f, err = atomicfile.Open(b.path); err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() > maxSize {
		err = fmt.Errorf("more than %d bytes", int64(maxSize))
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// each calls do with each entry of the backup: its name, its size and its content. It sets the
// digest of the file.
func (b *Backup) each(do func(File, io.Reader) error) error {
	file, size, err := b.open()
	if err != nil {
		return err
	}
	defer file.Close()
	raw := sha256.New()
	in := bufio.NewReader(io.TeeReader(file, raw))
	z, err := gzip.NewReader(in)
	if err != nil || z.Comment != comment {
		return errors.New("it is not a backup of drover")
	}
	z.Multistream(false)
	bounded := &io.LimitedReader{R: z, N: min(maxSize, max(maxSmall, maxRatio*size)) + 1}
	if err := entries(tar.NewReader(bounded), bounded, do); err != nil {
		return err
	}
	// The checksum of gzip is at the end.
	if _, err := io.Copy(io.Discard, bounded); err != nil {
		return damaged(err)
	}
	if bounded.N == 0 {
		return tooLarge()
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return damaged("there are bytes behind its end")
	}
	b.sum = hex.EncodeToString(raw.Sum(nil))
	return nil
}

func tooLarge() error {
	return fmt.Errorf("it unpacks to more than a state has: more than %d bytes, or %d for each byte of the file", int64(maxSize), maxRatio)
}

func entries(t *tar.Reader, bounded *io.LimitedReader, do func(File, io.Reader) error) error {
	names := map[string]bool{}
	for {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case bounded.N == 0 || err == nil && h.Size > bounded.N:
			return tooLarge()
		case err != nil:
			return damaged(err)
		case h.Typeflag != tar.TypeReg || !carries(h.Name) || names[h.Name] || len(names) >= maxEntries:
			return damaged(fmt.Sprintf("it has the entry %q", h.Name))
		}
		names[h.Name] = true
		if err := do(File{Name: h.Name, Size: h.Size}, entry{t}); err != nil {
			return err
		}
	}
}

// entry has the errors of an entry's content.
type entry struct{ r io.Reader }

func (e entry) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = damaged(err)
	}
	return n, err
}

// check compares the files with the manifest.
func (b *Backup) check(manifest []byte, seen map[string]File) error {
	if manifest == nil {
		return damaged("its list of files is missing")
	}
	if err := json.Unmarshal(manifest, &b.Manifest); err != nil {
		return damaged(err)
	}
	if b.Format > format {
		return fmt.Errorf("written by a newer drover (%s, format %d, this one knows %d): use that version", b.Version, b.Format, format)
	}
	if b.Format < 1 || len(b.Files) != len(seen) {
		return damaged(fmt.Sprintf("it has %d files, and lists %d", len(seen), len(b.Files)))
	}
	for _, f := range b.Files {
		if seen[f.Name] != f {
			return damaged(f.Name + " is not as it was written")
		}
	}
	if b.state == nil {
		return damaged("it has no state")
	}
	return nil
}

// unpack has write store each file of the backup. A file that is another one by now is an error.
func (b *Backup) unpack(write func(name string, fill func(*os.File) error) error) error {
	digests := map[string]string{}
	for _, f := range b.Files {
		digests[f.Name] = f.SHA256
	}
	before := b.sum
	err := b.each(func(f File, r io.Reader) error {
		if f.Name == manifestName {
			return nil
		}
		return write(f.Name, func(to *os.File) error {
			h := sha256.New()
			_, err := io.Copy(io.MultiWriter(to, h), r)
			if err == nil && hex.EncodeToString(h.Sum(nil)) != digests[f.Name] {
				err = damaged(f.Name + " has changed since it was checked")
			}
			return err
		})
	})
	if err == nil && b.sum != before {
		err = damaged("it has changed since it was checked")
	}
	return err
}

// Try opens the state of a backup in a new directory in dir, and returns the number of its
// nodes of the API. A state that is damaged, or of a newer version, is an error.
func (b *Backup) Try(dir string) (nodes int, err error) {
	tmp, err := os.MkdirTemp(dir, trying+"*")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if err := b.unpack(func(name string, fill func(*os.File) error) error {
		f, err := os.OpenFile(filepath.Join(tmp, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		return errors.Join(fill(f), f.Close())
	}); err != nil {
		return 0, err
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
func (b *Backup) Stage(dir string) error { return b.copyTo(filepath.Join(dir, Pending)) }

// copyTo copies the file of the backup.
func (b *Backup) copyTo(path string) error {
	from, _, err := b.open()
	if err != nil {
		return err
	}
	defer from.Close()
	return atomicfile.Create(path, 0o600, func(to *os.File) error {
		h := sha256.New()
		_, err := io.Copy(io.MultiWriter(to, h), io.LimitReader(from, maxSize))
		if err == nil && hex.EncodeToString(h.Sum(nil)) != b.sum {
			err = damaged("it has changed since it was checked")
		}
		return err
	})
}
