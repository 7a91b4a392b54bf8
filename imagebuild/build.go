package imagebuild

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// DefaultMaxSize bounds the contents of an image, in bytes. Nodes hold their
// image in RAM; what is larger is a mistake or an attack.
const DefaultMaxSize = 32 << 30

// Builder describes one build.
type Builder struct {
	Name   string // of the image
	Source string // one of [SourceForms]
	Images string // the directory of images; made when missing
	Init   string // the program that becomes /init of the initrd: static, for the image's processor

	Level         int       // of zstd in the squashfs, 1 to 22; 0 is [DefaultLevel]
	Platform      Platform  // which variant of a multi-platform image; zero is linux/amd64
	KernelVersion string    // which kernel, when the image has several
	Modules       []string  // more modules for the initrd, besides [InitrdModules]
	Excludes      []string  // more patterns to leave out, besides [DefaultExcludes]
	KeepBoot      bool      // keep /boot
	Epoch         time.Time // no file is younger; zero: the image's own time, if it has one
	MaxSize       int64     // bytes in all files; 0 is [DefaultMaxSize]
	Version       string    // of the program that builds, for the manifest

	Log      *slog.Logger     // nil: silent
	Progress func(Progress)   // called often and from one goroutine; nil: nobody looks
	Now      func() time.Time // nil: time.Now
}

// Progress is how far a build is.
type Progress struct {
	Phase string // "reading layer 2 of 4", "writing root.squashfs"
	Done  int64  // bytes
	Total int64  // bytes; 0 when unknown
}

// Build makes the image, or finds that the same one is there already, and
// makes it the current one of its name. Whatever goes wrong, nothing but
// hidden files is left, which the next build of that name removes.
func (b Builder) Build(ctx context.Context) (Image, error) {
	if err := b.Check(); err != nil {
		return Image{}, err
	}
	b = b.withDefaults()
	program, version, err := findTar2sqfs(ctx)
	if err != nil {
		return Image{}, err
	}
	init, err := b.readInit()
	if err != nil {
		return Image{}, err
	}
	st, err := openStore(b.Images, b.Name)
	if err != nil {
		return Image{}, err
	}
	defer st.close()
	src, err := openSource(b.Source, b.Platform)
	if err != nil {
		return Image{}, err
	}
	defer func() { _ = src.close() }() // only read

	sp, err := newSpool(st.temp, b.MaxSize)
	if err != nil {
		return Image{}, err
	}
	defer func() { _ = sp.close() }() // unlinked already
	r := run{Builder: b, store: st, spool: sp, init: init, tar2sqfs: program}
	r.manifest = Manifest{Name: b.Name, Created: b.Now().UTC().Truncate(time.Second), Source: b.Source, SourceDigest: src.digest,
		Platform: b.Platform.String(), Level: b.Level, Files: map[string]File{}, Tools: map[string]string{tar2sqfs: version}}
	if b.Version != "" {
		r.manifest.Tools["drover"] = b.Version
	}
	if zstd, version := findZstd(ctx); zstd != "" {
		r.zstd, r.manifest.Tools[zstdProgram] = zstd, version
	}
	if err := r.build(ctx, src); err != nil {
		return Image{}, fmt.Errorf("image %q: %w", b.Name, err)
	}
	return st.publish(&r.manifest)
}

// Check tells what is wrong with the description, or nil. It reads nothing.
func (b Builder) Check() error {
	if err := checkName(b.Name); err != nil {
		return err
	}
	if _, _, err := cutSource(b.Source); err != nil {
		return err
	}
	if b.Images == "" {
		return errors.New("no directory for images was given")
	}
	if b.Init == "" {
		return errors.New("no program for the initrd's /init was given")
	}
	if b.Level < 0 || b.Level > maxLevel {
		return fmt.Errorf("level %d is not between 1 and %d", b.Level, maxLevel)
	}
	_, err := newExcludes(b.Excludes)
	return err
}

// withDefaults fills in what the zero values stand for.
func (b Builder) withDefaults() Builder {
	b.Level = cmp.Or(b.Level, DefaultLevel)
	b.MaxSize = cmp.Or(b.MaxSize, DefaultMaxSize)
	if b.Platform == (Platform{}) {
		b.Platform = Platform{OS: "linux", Arch: "amd64"}
	}
	if b.Log == nil {
		b.Log = slog.New(slog.DiscardHandler)
	}
	if b.Progress == nil {
		b.Progress = func(Progress) {}
	}
	if b.Now == nil {
		b.Now = time.Now
	}
	return b
}

// readInit reads the program for /init.
func (b *Builder) readInit() ([]byte, error) {
	init, err := readBounded(b.Init, maxModule)
	if err != nil {
		return nil, fmt.Errorf("program for the initrd's /init: %w", err)
	}
	if err := checkInit(bytes.NewReader(init), b.Platform.Arch); err != nil {
		return nil, fmt.Errorf("program for the initrd's /init: %q: %w", b.Init, err)
	}
	return init, nil
}

// run is a build under way.
type run struct {
	Builder
	store    *store
	spool    *spool
	init     []byte
	tar2sqfs string
	zstd     string // empty when there is none
	tree     *tree
	manifest Manifest
}

func (r *run) build(ctx context.Context, src *source) error {
	if err := r.flatten(ctx, src); err != nil {
		return err
	}
	version, kernel, err := r.tree.kernel(r.KernelVersion)
	if err != nil {
		return err
	}
	r.manifest.KernelVersion = version
	for _, other := range r.tree.otherModules(version) {
		r.Log.Warn("the image holds modules of a kernel that it does not boot", "directory", other, "kernel", version)
	}
	modules, err := newModuleSet(r.tree, version)
	if err != nil {
		return err
	}
	if err := modules.choose(InitrdModules(), append(essentialModules(), r.Modules...)); err != nil {
		return err
	}
	err = r.file(ctx, KernelFile, kernel.size, func(w io.Writer) error { return copyFile(w, kernel, func(int64) {}) })
	if err != nil {
		return err
	}
	initrd := initrd{tree: r.tree, modules: modules, init: r.init}
	err = r.file(ctx, InitrdFile, 0, func(w io.Writer) error { return compressInitrd(ctx, r.zstd, w, initrd.write) })
	if err != nil {
		return err
	}
	// From here on the tree is the node's: what the initrd took may be excluded.
	if err := r.prepare(src, version); err != nil {
		return err
	}
	return r.squashfs(ctx)
}

// flatten reads all layers and puts them on top of each other.
func (r *run) flatten(ctx context.Context, src *source) error {
	r.tree = newTree()
	reader := layerReader{spool: r.spool}
	for _, l := range src.layers {
		p := Progress{Phase: "reading " + l.name, Total: l.size}
		r.Progress(p)
		list, err := l.read(ctx, &reader, func(n int64) {
			p.Done += n
			r.Progress(p)
		})
		if err == nil {
			err = r.tree.apply(list)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		r.Log.Debug("layer read", "layer", l.name, "entries", len(list))
	}
	return r.spool.finish()
}

// prepare makes the tree of the container image that of a machine.
func (r *run) prepare(src *source, version string) error {
	epoch := r.Epoch
	if epoch.IsZero() {
		epoch = src.created
	}
	patterns := append(DefaultExcludes(), r.Excludes...)
	if r.KeepBoot {
		patterns = append(keepBoot(DefaultExcludes()), r.Excludes...)
	}
	x, err := newExcludes(patterns)
	if err != nil {
		return err
	}
	r.tree.keepKernelConfig(version)
	if err := r.tree.prune(x); err != nil {
		return err
	}
	if epoch.IsZero() {
		r.tree.adapt(0)
		return nil
	}
	r.tree.adapt(clampTime(epoch.Unix()))
	return r.tree.clamp(clampTime(epoch.Unix()))
}

// file writes one file of the image and notes its digest.
func (r *run) file(ctx context.Context, name string, total int64, write func(io.Writer) error) error {
	p := Progress{Phase: "writing " + name, Total: total}
	r.Progress(p)
	f, err := r.store.write(name, func(w io.Writer) error {
		return write(&writeMeter{ctx: ctx, w: w, progress: func(n int64) {
			p.Done += n
			r.Progress(p)
		}})
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.manifest.Files[name] = f
	return nil
}

// writeMeter is a meter for writing.
type writeMeter struct {
	ctx      context.Context
	w        io.Writer
	progress func(n int64)
}

func (m *writeMeter) Write(b []byte) (int, error) {
	if err := m.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := m.w.Write(b)
	m.progress(int64(n))
	return n, err
}

func (r *run) squashfs(ctx context.Context) error {
	p := Progress{Phase: "writing " + SquashfsFile, Total: r.tree.size()}
	r.Progress(p)
	path := filepath.Join(r.store.temp, SquashfsFile)
	err := r.tree.writeSquashfs(ctx, r.tar2sqfs, path, r.Level, func(n int64) {
		p.Done += n
		r.Progress(p)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", SquashfsFile, err)
	}
	f, err := digestFile(path)
	if err != nil {
		return err
	}
	r.manifest.Files[SquashfsFile] = f
	return nil
}

// size is how many bytes all files of the tree hold.
func (t *tree) size() (n int64) {
	seen := map[*file]bool{}
	_ = t.walk(func(_ string, e *node) error {
		if !seen[e.file] {
			seen[e.file] = true
			n += e.size
		}
		return nil
	})
	return n
}

// digestFile reads a file that another program wrote, and makes it durable.
func digestFile(path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	d := newDigester(io.Discard)
	if _, err := io.Copy(d, f); err != nil {
		return File{}, err
	}
	return d.file(), f.Sync()
}
