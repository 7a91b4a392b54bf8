package imagebuild

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"drover/imagebuild/external"
	"drover/imagebuild/initrd"
	"drover/imagebuild/layer"
	"drover/imagebuild/manifest"
	"drover/imagebuild/oci"
	"drover/imagebuild/rootfs"
)

// defaultMaxSize bounds the contents of an image, in bytes. Nodes hold their image in
// RAM, so a larger image is a mistake or an attack.
const defaultMaxSize = 32 << 30

// Builder describes one build.
type Builder struct {
	Name   string // of the image
	Source string // one of [sourceForms]
	Origin string // of a source that was made for this build, for the manifest; empty is Source
	Images string // the directory of images; Build creates it
	Init   string // path of the program for /init of the initrd: static, for the image's processor

	Level         int          // of zstd in the squashfs, 1 to 22; 0 is [DefaultLevel]
	Platform      oci.Platform // the variant of a multi-platform image; zero is linux/amd64
	KernelVersion string       // the kernel, when the image has several
	Modules       []string     // more modules for the initrd, besides [initrd.DefaultModules]
	InitrdFiles   []string     // the operator's own files for the initrd, see [initrd.ReadOwn]
	Microcode     string       // for the initrd, see [initrd.ParseMicrocode]
	Excludes      []string     // more patterns of files to leave out, besides [rootfs.DefaultExcludes]
	KeepBoot      bool         // keep /boot
	Stage         bool         // leave the current generation as it is
	Epoch         time.Time    // no file is younger; zero is the image's own time, if it has one
	MaxSize       int64        // of all files, in bytes; 0 is [defaultMaxSize]
	Version       string       // of the program that calls Build, for the manifest

	Log      *slog.Logger     // nil: no log
	Progress func(Progress)   // called often, never twice at the same time; may be nil
	Now      func() time.Time // nil: time.Now
}

// Progress describes how far a build is.
type Progress struct {
	Phase string // "reading 4 layers", "writing root.squashfs"
	Done  int64  // bytes
	Total int64  // bytes; 0 when unknown
}

// Build builds the image and makes it the current generation of its name, unless it is staged.
// A generation with the same contents that exists already is used instead. After an error
// nothing is left but hidden files, which the next build of that name removes.
func (b Builder) Build(ctx context.Context) (Image, error) {
	if err := b.Check(); err != nil {
		return Image{}, err
	}
	b = b.withDefaults()
	program, version, err := external.Find(ctx, tar2sqfs)
	if err != nil {
		return Image{}, fmt.Errorf("%w: install squashfs-tools-ng", err)
	}
	early, err := b.initrd()
	if err != nil {
		return Image{}, err
	}
	st, err := openStore(b.Images, b.Name)
	if err != nil {
		return Image{}, err
	}
	defer st.close()
	src, err := openSource(ctx, b.Source, b.Platform, b.Images)
	if err != nil {
		return Image{}, err
	}
	defer func() { _ = src.Close() }() // it was only read

	sp, err := layer.NewSpool(st.temp, b.MaxSize)
	if err != nil {
		return Image{}, err
	}
	defer func() { _ = sp.Close() }() // it is unlinked
	r := run{Builder: b, store: st, spool: sp, initrd: early, tar2sqfs: program}
	r.manifest = Manifest{Name: b.Name, Created: b.Now().UTC().Truncate(time.Second), Source: cmp.Or(b.Origin, b.Source), SourceDigest: src.Digest,
		Platform: b.Platform.String(), Level: b.Level, Tools: map[string]string{tar2sqfs: version}}
	if b.Version != "" {
		r.manifest.Tools["drover"] = b.Version
	}
	if err := r.build(ctx, src); err != nil {
		return Image{}, fmt.Errorf("image %q: %w", b.Name, err)
	}
	return st.publish(ctx, &r.manifest, b.Stage)
}

// Check returns an error for a mistake in the fields of b. It reads no files.
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
	if _, err := initrd.ParseMicrocode(b.Microcode); err != nil {
		return err
	}
	_, err := rootfs.ParseExcludes(b.Excludes)
	return err
}

// withDefaults returns b with the defaults of its zero fields.
func (b Builder) withDefaults() Builder {
	b.Level = cmp.Or(b.Level, DefaultLevel)
	b.MaxSize = cmp.Or(b.MaxSize, defaultMaxSize)
	if b.Platform.OS == "" {
		b.Platform = oci.Platform{OS: "linux", Architecture: "amd64"}
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

// initrd reads the files that are named for the initrd.
func (b Builder) initrd() (c initrd.Config, err error) {
	c.Arch, c.Modules = b.Platform.Architecture, b.Modules
	if c.Init, err = readProgram(b.Init, b.Platform.Architecture); err != nil {
		return c, err
	}
	if c.Own, err = initrd.ReadOwn(b.InitrdFiles); err != nil {
		return c, err
	}
	c.Microcode, err = initrd.ParseMicrocode(b.Microcode)
	return c, err
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

// run is the state of one build.
type run struct {
	Builder
	store    *store
	spool    *layer.Spool
	initrd   initrd.Config
	tar2sqfs string // path
	tree     *rootfs.Tree
	manifest Manifest
}

// build writes the files of the image.
func (r *run) build(ctx context.Context, src *layer.Source) error {
	if err := r.flatten(ctx, src); err != nil {
		return err
	}
	if err := r.tree.CheckSystem(); err != nil {
		return err
	}
	version, kernel, err := r.tree.Kernel(r.KernelVersion)
	if err != nil {
		return err
	}
	if err := r.tree.CheckArchitecture(r.Platform.Architecture, kernel); err != nil {
		return err
	}
	r.manifest.KernelVersion = version
	for _, l := range r.tree.Lacks(r.Platform.Architecture, kernel) {
		r.Log.Warn("the image lacks what nodes need", "what", l.What, "remedy", l.Remedy)
	}
	for _, other := range r.tree.OtherModules(version) {
		r.Log.Warn("the image contains modules of a kernel that it does not boot", "directory", other, "kernel", version)
	}
	archive, err := initrd.New(r.tree, version, r.initrd)
	if err != nil {
		return err
	}
	// The initrd may contain files that the root file system excludes: it reads them first.
	contents, err := r.contents(ctx, archive)
	if err != nil {
		return fmt.Errorf("%s: %w", InitrdFile, err)
	}
	defer contents.file.Close()
	if err := r.prepare(src, version); err != nil {
		return err
	}
	r.warn(archive)
	return r.write(ctx, kernel, archive, contents)
}

// write writes kernel, initrd and squashfs at the same time.
func (r *run) write(ctx context.Context, kernel *rootfs.File, archive *initrd.Archive, contents *contents) error {
	var boot, early, root File
	var chunks *manifest.Chunks
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		if boot, err = r.store.write(ctx, KernelFile, func(int64) {}, kernel.WriteContent); err != nil {
			err = fmt.Errorf("%s: %w", KernelFile, err)
		}
		return err
	})
	g.Go(func() (err error) {
		early, err = r.writeInitrd(ctx, archive, contents)
		return err
	})
	g.Go(func() (err error) {
		root, chunks, err = r.squashfs(ctx)
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	r.manifest.InitrdKey = contents.key
	r.manifest.Files = map[string]File{KernelFile: boot, InitrdFile: early, SquashfsFile: root}
	r.manifest.Chunks = chunks
	return nil
}

// maxReaders bounds the layers that are read at the same time: a decoder of zstd may take
// 128 MiB.
const maxReaders = 4

// flatten reads all layers, several at a time, into one tree.
func (r *run) flatten(ctx context.Context, src *layer.Source) error {
	lists, readers := make([][]rootfs.Entry, len(src.Layers)), make([]layer.Reader, len(src.Layers))
	progress := r.reading(src.Layers)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(min(maxReaders, runtime.GOMAXPROCS(0)))
	for i, l := range src.Layers {
		g.Go(func() (err error) {
			readers[i].Spool = r.spool
			if lists[i], err = l.Read(ctx, &readers[i], progress); err != nil {
				return fmt.Errorf("%s: %w", l.Name, err)
			}
			r.Log.Debug("layer read", "layer", l.Name, "entries", len(lists[i]))
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	r.tree = rootfs.New()
	var sockets []string
	for i, l := range src.Layers {
		if err := r.tree.Apply(lists[i]); err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
		lists[i], sockets = nil, append(sockets, readers[i].Sockets...)
	}
	if len(sockets) > 0 {
		r.Log.Warn("left out: squashfs cannot store sockets", "files", len(sockets), "first", sockets[0])
	}
	return r.spool.Finish()
}

// reading reports the begin of reading layers. The returned function may be called by
// several goroutines.
func (r *run) reading(layers []layer.Layer) func(n int64) {
	phase, total := fmt.Sprintf("reading %d layers", len(layers)), int64(0)
	if len(layers) == 1 {
		phase = "reading " + layers[0].Name
	}
	for _, l := range layers {
		total += l.Size
	}
	progress := r.begin(phase, total)
	var mu sync.Mutex
	return func(n int64) {
		mu.Lock()
		defer mu.Unlock()
		progress(n)
	}
}

// begin reports the begin of a phase of total bytes. The returned function reports that
// n more bytes are done.
func (r *run) begin(phase string, total int64) func(n int64) {
	p := Progress{Phase: phase, Total: total}
	r.Progress(p)
	return func(n int64) {
		p.Done += n
		r.Progress(p)
	}
}

// prepare turns the root of a container into the root of a machine.
func (r *run) prepare(src *layer.Source, version string) error {
	x, err := rootfs.ParseExcludes(append(rootfs.DefaultExcludes(r.KeepBoot), r.Excludes...))
	if err != nil {
		return err
	}
	epoch := r.Epoch
	if epoch.IsZero() {
		epoch = src.Created
	}
	r.tree.KeepKernelConfig(version)
	r.tree.Prune(x)
	r.tree.Adapt(epoch)
	return nil
}

// squashfs writes the root image.
func (r *run) squashfs(ctx context.Context) (File, *manifest.Chunks, error) {
	path := filepath.Join(r.store.temp, SquashfsFile)
	f, chunks, err := writeSquashfs(ctx, r.tree, r.tar2sqfs, path, r.Level, r.begin("writing "+SquashfsFile, r.tree.Size()))
	if err != nil {
		return File{}, nil, fmt.Errorf("%s: %w", SquashfsFile, err)
	}
	return f, chunks, nil
}
