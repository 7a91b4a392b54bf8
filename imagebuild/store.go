package imagebuild

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sync/errgroup"

	"drover/imagebuild/manifest"
	"drover/internal/atomicfile"
)

// buildPrefix begins the hidden names in the directory of an image: of what a build has
// not published yet, and of what is being removed.
const buildPrefix = ".build-"

// store writes one new generation of an image: first into a hidden directory beside the
// other generations, which one rename makes visible and another makes current.
type store struct {
	images, name string
	dir          string // of the image
	temp         string // hidden directory of this build; empty once it is visible
	lock         *os.File
}

// openStore begins a build.
func openStore(images, name string) (*store, error) {
	s := &store{images: images, name: name, dir: filepath.Join(images, name)}
	if err := makePublicDir(s.dir); err != nil {
		return nil, err
	}
	var err error
	if s.lock, err = lock(s.dir); err != nil {
		return nil, fmt.Errorf("image %q: %w", name, err)
	}
	if err := s.begin(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// ErrBusy is the error of a build or a removal while another process changes the same image.
var ErrBusy = errors.New("another build of it is running, or a removal of its generations")

// lock takes the lock of the image in a directory. One build or removal at a time holds it;
// readers need none. It ends with its process, or when the file is closed.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrBusy
		}
		return nil, fmt.Errorf("lock %q: %w", f.Name(), err)
	}
	return f, nil
}

// Modes of everything that is published. The server runs as another user than the one
// who builds images, whose umask must not matter.
const (
	publicDir  = 0o755
	publicFile = 0o644
)

// makePublicDir creates a directory, and its parents, that the server can read. It does
// not change the modes of directories that exist.
func makePublicDir(path string) error {
	err := os.Mkdir(path, publicDir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makePublicDir(filepath.Dir(path)); err != nil {
			return err
		}
		err = os.Mkdir(path, publicDir)
	}
	if errors.Is(err, fs.ErrExist) {
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%q is not a directory", path)
		}
		return err
	}
	if err != nil {
		return err
	}
	return os.Chmod(path, publicDir)
}

// begin removes what earlier builds have left and creates the hidden directory.
func (s *store) begin() error {
	if _, err := clean(s.dir); err != nil {
		return err
	}
	var err error
	if s.temp, err = os.MkdirTemp(s.dir, buildPrefix); err != nil {
		return err
	}
	return os.Chmod(s.temp, publicDir)
}

// close ends the build and removes its files unless they were published.
func (s *store) close() {
	if s.temp != "" {
		os.RemoveAll(s.temp)
	}
	s.lock.Close()
}

// write writes one file of the generation durably. It calls progress with the bytes of
// each write, and ends when ctx does.
func (s *store) write(ctx context.Context, name string, progress func(n int64), fill func(io.Writer) error) (File, error) {
	f, err := os.OpenFile(filepath.Join(s.temp, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, publicFile)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	if err := f.Chmod(publicFile); err != nil {
		return File{}, err
	}
	d := &digester{ctx: ctx, w: f, h: sha256.New(), progress: progress}
	w := bufio.NewWriterSize(d, 256<<10)
	if err := fill(w); err != nil {
		return File{}, err
	}
	if err := w.Flush(); err != nil {
		return File{}, err
	}
	return File{Size: d.n, SHA256: hex.EncodeToString(d.h.Sum(nil))}, errors.Join(f.Sync(), f.Close())
}

// publish makes the generation visible and, unless it is staged, current.
func (s *store) publish(ctx context.Context, m *Manifest, stage bool) (Image, error) {
	_, err := s.write(ctx, ManifestFile, func(int64) {}, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(m)
	})
	if err != nil {
		return Image{}, err
	}
	if err := atomicfile.SyncDir(s.temp); err != nil {
		return Image{}, err
	}
	id := m.ID()
	if err := s.show(id); err != nil {
		return Image{}, err
	}
	if !stage {
		if err := s.setCurrent(id); err != nil {
			return Image{}, err
		}
	}
	return Open(s.images).Lookup(s.name + "@sha256:" + id)
}

// show makes the finished directory visible under its ID. When a whole generation with
// that ID exists, it stays untouched: a server may be sending its files, and the
// contents are the same.
func (s *store) show(id string) error {
	final := filepath.Join(s.dir, id)
	old, err := Open(s.images).Lookup(s.name + "@sha256:" + id)
	if err == nil && old.Verify() == nil {
		return nil
	}
	// A generation with this ID is damaged. Move it away; the next build removes it.
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

// setCurrent changes the link to a generation, with one rename.
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

// digester is a writer that also computes the digest and the size.
type digester struct {
	ctx      context.Context
	w        io.Writer
	h        hash.Hash
	n        int64
	progress func(n int64)
}

func (d *digester) Write(b []byte) (int, error) {
	if err := d.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := d.w.Write(b)
	d.h.Write(b[:n])
	d.n += int64(n)
	d.progress(int64(n))
	return n, err
}

// digestFile returns the digest of a file that another program wrote, and those of its
// chunks, and makes it durable. It does all three at the same time, and reads the file twice
// for that: nothing waits for anything else.
func digestFile(path string) (File, *manifest.Chunks, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, nil, err
	}
	defer f.Close()
	var g errgroup.Group
	g.Go(f.Sync)
	var chunks *manifest.Chunks
	g.Go(func() (err error) {
		chunks, err = digestChunks(io.NewSectionReader(f, 0, math.MaxInt64))
		return err
	})
	whole := sha256.New()
	n, err := io.CopyBuffer(whole, io.NewSectionReader(f, 0, math.MaxInt64), make([]byte, manifest.ChunkSize))
	return File{Size: n, SHA256: hex.EncodeToString(whole.Sum(nil))}, chunks, errors.Join(err, g.Wait())
}

// digestChunks returns the digests of the chunks of a file.
func digestChunks(r io.Reader) (*manifest.Chunks, error) {
	chunks, chunk := &manifest.Chunks{Size: manifest.ChunkSize, SHA256: []string{}}, make([]byte, manifest.ChunkSize)
	for {
		n, err := io.ReadFull(r, chunk)
		if n > 0 {
			chunks.SHA256 = append(chunks.SHA256, fmt.Sprintf("%x", sha256.Sum256(chunk[:n])))
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return chunks, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
