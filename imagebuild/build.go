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

	"drover/imagebuild/initrd"
	"drover/imagebuild/layer"
	"drover/imagebuild/oci"
	"drover/imagebuild/rootfs"
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

	Level         int          // of zstd in the squashfs, 1 to 22; 0 is [DefaultLevel]
	Platform      oci.Platform // which variant of a multi-platform image; zero is linux/amd64
	KernelVersion string       // which kernel, when the image has several
	Modules       []string     // more modules for the initrd, besides [initrd.DefaultModules]
	Excludes      []string     // more patterns to leave out, besides [rootfs.DefaultExcludes]
	KeepBoot      bool         // keep /boot
	Epoch         time.Time    // no file is younger; zero: the image's own time, if it has one
	MaxSize       int64        // bytes in all files; 0 is [DefaultMaxSize]
	Version       string       // of the program that builds, for the manifest

	Log      *slog.Logger     // nil: silent
	Progress func(Progress)   // called often and from one goroutine; may be nil
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
	init, err := readProgram(b.Init, b.Platform.Arch)
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
	defer func() { _ = src.Close() }() // only read

	sp, err := layer.NewSpool(st.temp, b.MaxSize)
	if err != nil {
		return Image{}, err
	}
	defer func() { _ = sp.Close() }() // unlinked already
	r := run{Builder: b, store: st, spool: sp, init: init, tar2sqfs: program}
	r.manifest = Manifest{Name: b.Name, Created: b.Now().UTC().Truncate(time.Second), Source: b.Source, SourceDigest: src.Digest,
		Platform: b.Platform.String(), Level: b.Level, Files: map[string]File{}, Tools: map[string]string{tar2sqfs: version}}
	if b.Version != "" {
		r.manifest.Tools["drover"] = b.Version
	}
	if zstd, version := initrd.FindZstd(ctx); zstd != "" {
		r.zstd, r.manifest.Tools[initrd.ZstdProgram] = zstd, version
	}
	if err := r.build(ctx, src); err != nil {
		return Image{}, fmt.Errorf("image %q: %w", b.Name, err)
	}
	return st.publish(&r.manifest)
}

// Check returns an error for a mistake in the description. It reads nothing.
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
	_, err := rootfs.ParseExcludes(b.Excludes)
	return err
}

// withDefaults fills in what the zero values stand for.
func (b Builder) withDefaults() Builder {
	b.Level = cmp.Or(b.Level, DefaultLevel)
	b.MaxSize = cmp.Or(b.MaxSize, DefaultMaxSize)
	if b.Platform == (oci.Platform{}) {
		b.Platform = oci.Platform{OS: "linux", Arch: "amd64"}
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

// readProgram reads the program for /init.
func readProgram(path, arch string) ([]byte, error) {
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("program for the initrd's /init: %w", err)
	}
	if err := initrd.CheckProgram(bytes.NewReader(program), arch); err != nil {
		return nil, fmt.Errorf("program for the initrd's /init: %q: %w", path, err)
	}
	return program, nil
}

// run is a build under way.
type run struct {
	Builder
	store    *store
	spool    *layer.Spool
	init     []byte
	tar2sqfs string
	zstd     string // empty when there is none
	tree     *rootfs.Tree
	manifest Manifest
}

func (r *run) build(ctx context.Context, src *layer.Source) error {
	if err := r.flatten(ctx, src); err != nil {
		return err
	}
	version, kernel, err := r.tree.Kernel(r.KernelVersion)
	if err != nil {
		return err
	}
	r.manifest.KernelVersion = version
	for _, other := range r.tree.OtherModules(version) {
		r.Log.Warn("the image holds modules of a kernel that it does not boot", "directory", other, "kernel", version)
	}
	archive, err := initrd.New(r.tree, version, r.Modules, r.init)
	if err != nil {
		return err
	}
	err = r.file(ctx, KernelFile, kernel.Size, func(w io.Writer) error { return rootfs.CopyFile(w, kernel, func(int64) {}) })
	if err != nil {
		return err
	}
	err = r.file(ctx, InitrdFile, 0, func(w io.Writer) error { return archive.Write(ctx, r.zstd, w) })
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
func (r *run) flatten(ctx context.Context, src *layer.Source) error {
	r.tree = rootfs.New()
	reader := layer.Reader{Spool: r.spool}
	for _, l := range src.Layers {
		p := Progress{Phase: "reading " + l.Name, Total: l.Size}
		r.Progress(p)
		list, err := l.Read(ctx, &reader, func(n int64) {
			p.Done += n
			r.Progress(p)
		})
		if err == nil {
			err = r.tree.Apply(list)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
		r.Log.Debug("layer read", "layer", l.Name, "entries", len(list))
	}
	return r.spool.Finish()
}

// prepare makes the tree of the container image that of a machine.
func (r *run) prepare(src *layer.Source, version string) error {
	epoch := r.Epoch
	if epoch.IsZero() {
		epoch = src.Created
	}
	patterns := append(rootfs.DefaultExcludes(), r.Excludes...)
	if r.KeepBoot {
		patterns = append(rootfs.KeepBoot(rootfs.DefaultExcludes()), r.Excludes...)
	}
	x, err := rootfs.ParseExcludes(patterns)
	if err != nil {
		return err
	}
	r.tree.KeepKernelConfig(version)
	if err := r.tree.Prune(x); err != nil {
		return err
	}
	if epoch.IsZero() {
		r.tree.Adapt(0)
		return nil
	}
	r.tree.Adapt(rootfs.ClampTime(epoch.Unix()))
	return r.tree.Clamp(rootfs.ClampTime(epoch.Unix()))
}

// file writes one file of the image and notes its digest.
func (r *run) file(ctx context.Context, name string, total int64, write func(io.Writer) error) error {
	p := Progress{Phase: "writing " + name, Total: total}
	r.Progress(p)
	f, err := r.store.write(name, func(w io.Writer) error {
		return write(writeFunc(func(b []byte) (int, error) {
			n, err := w.Write(b)
			p.Done += int64(n)
			r.Progress(p)
			return n, errors.Join(err, ctx.Err())
		}))
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.manifest.Files[name] = f
	return nil
}

// writeFunc is an io.Writer.
type writeFunc func(b []byte) (int, error)

func (f writeFunc) Write(b []byte) (int, error) { return f(b) }

func (r *run) squashfs(ctx context.Context) error {
	p := Progress{Phase: "writing " + SquashfsFile, Total: r.tree.Size()}
	r.Progress(p)
	path := filepath.Join(r.store.temp, SquashfsFile)
	err := writeSquashfs(ctx, r.tree, r.tar2sqfs, path, r.Level, func(n int64) {
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
