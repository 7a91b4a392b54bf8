package imagebuild

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"drover/pools/atomicfile"
)

// buildPrefix begins the names of directories of builds that have not ended.
const buildPrefix = ".build-"

// store writes one new generation of an image. All of it happens in a hidden
// directory beside the generations; the last steps are two renames.
type store struct {
	images, name string
	dir          string // of the image
	temp         string // of this build
	lock         *os.File
}

// openStore begins a build. One build of a name runs at a time; the lock goes
// with the process, so what it finds of earlier builds is dead and removed.
func openStore(images, name string) (*store, error) {
	s := &store{images: images, name: name, dir: filepath.Join(images, name)}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, err
	}
	var err error
	if s.lock, err = os.OpenFile(filepath.Join(s.dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		s.lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("image %q: another build of it is running", name)
		}
		return nil, fmt.Errorf("lock %q: %w", s.lock.Name(), err)
	}
	if err := s.begin(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *store) begin() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), buildPrefix) {
			if err := os.RemoveAll(filepath.Join(s.dir, e.Name())); err != nil {
				return err
			}
		}
	}
	s.temp, err = os.MkdirTemp(s.dir, buildPrefix)
	if err != nil {
		return err
	}
	return os.Chmod(s.temp, 0o755)
}

// close ends the build, and removes what it has not published.
func (s *store) close() {
	if s.temp != "" {
		os.RemoveAll(s.temp)
	}
	s.lock.Close()
}

// write makes one file of the generation, durable.
func (s *store) write(name string, fill func(io.Writer) error) (File, error) {
	f, err := os.OpenFile(filepath.Join(s.temp, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	d := newDigester(f)
	w := bufio.NewWriterSize(d, 256<<10)
	if err := fill(w); err != nil {
		return File{}, err
	}
	if err := w.Flush(); err != nil {
		return File{}, err
	}
	if err := f.Sync(); err != nil {
		return File{}, err
	}
	return d.file(), f.Close()
}

// publish makes the generation visible and current.
func (s *store) publish(m *Manifest) (Image, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return Image{}, err
	}
	_, err = s.write(ManifestFile, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
	if err != nil {
		return Image{}, err
	}
	if err := atomicfile.SyncDir(s.temp); err != nil {
		return Image{}, err
	}
	id := m.ID()
	if err := s.place(id); err != nil {
		return Image{}, err
	}
	if err := s.setCurrent(id); err != nil {
		return Image{}, err
	}
	return Open(s.images).Lookup(s.name + "@sha256:" + id)
}

// place renames the finished directory to its ID. A whole generation of that
// ID holds the same and stays as it is: it may be being served.
func (s *store) place(id string) error {
	final := filepath.Join(s.dir, id)
	old, err := Open(s.images).Lookup(s.name + "@sha256:" + id)
	if err == nil && old.Verify() == nil {
		return nil
	}
	// What has this name is damaged: make room. The next build removes it.
	err = os.Rename(final, filepath.Join(s.dir, buildPrefix+"damaged"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(s.temp, final); err != nil {
		return err
	}
	s.temp = ""
	return atomicfile.SyncDir(s.dir)
}

// setCurrent points the link at a generation, with one rename.
func (s *store) setCurrent(id string) error {
	link := filepath.Join(s.dir, currentLink)
	if have, err := os.Readlink(link); err == nil && have == id {
		return nil
	}
	next := filepath.Join(s.dir, buildPrefix+currentLink)
	if err := os.Symlink(id, next); err != nil {
		return err
	}
	if err := os.Rename(next, link); err != nil {
		return err
	}
	return atomicfile.SyncDir(s.dir)
}

// digester passes bytes on and computes their digest.
type digester struct {
	w io.Writer
	h hash.Hash
	n int64
}

func newDigester(w io.Writer) *digester { return &digester{w: w, h: sha256.New()} }

func (d *digester) Write(b []byte) (int, error) {
	n, err := d.w.Write(b)
	d.h.Write(b[:n])
	d.n += int64(n)
	return n, err
}

func (d *digester) file() File { return File{Size: d.n, SHA256: hex.EncodeToString(d.h.Sum(nil))} }
