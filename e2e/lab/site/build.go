package site

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"drover/e2e/buildcache"
)

// Built has the paths of all parts of a site.
type Built struct {
	Root       string // top of the source tree
	Drover     string // the program
	Kubernetes string // folder with the programs of a control plane, and kubectl
	Images     string // drover's image directory, with the image named Image
	Loaders    string // drover's loader directory

	log io.Writer
}

// Image is the name of the node image in [Built].Images, and Image13 that of Debian 13, which
// [Built.AddDebian13] makes.
const (
	Image   = "debian-12"
	Image13 = "debian-13"
)

// Build makes drover from the source tree that the working directory is in, and
// what a site needs beside it, as far as it is not there from an earlier time.
// Cold, that takes a quarter of an hour on two cores.
func Build(ctx context.Context, log io.Writer) (*Built, error) {
	b, steps, err := Start(log)
	if err != nil {
		return nil, err
	}
	for _, s := range steps {
		b.say("%s", s.What)
		if err := s.Do(ctx); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Step is a part of what [Build] does, for programs that show their progress.
type Step struct {
	What string // with the time that it takes
	Do   func(context.Context) error
}

// Start returns what [Build] does, as steps. [Built] is complete after the last one.
func Start(log io.Writer) (*Built, []Step, error) {
	b, err := newBuilt(log)
	if err != nil {
		return nil, nil, err
	}
	return b, b.steps(), nil
}

// steps are those of [Build]. The times are of two cores.
func (b *Built) steps() []Step {
	return []Step{
		{"build drover (some 2 minutes the first time)", func(ctx context.Context) error {
			return errors.Join(b.programs(ctx, runtime.GOARCH, "drover", "drover-init"), b.loaders())
		}},
		{"build Kubernetes (some 14 minutes the first time, then kept)", func(ctx context.Context) (err error) {
			b.Kubernetes, err = buildcache.Kubernetes(ctx, b.log)
			return err
		}},
		{"build the node image (some 6 minutes the first time, then kept)", func(ctx context.Context) error {
			return b.nodeImage(ctx, Image, buildcache.NodeImage)
		}},
	}
}

// AddDebian13 makes the node image of Debian 13, as far as it is not there. After that of
// Debian 12 it takes minutes the first time.
func (b *Built) AddDebian13(ctx context.Context) error {
	return b.nodeImage(ctx, Image13, buildcache.NodeImage13)
}

func (b *Built) nodeImage(ctx context.Context, name string, find func(context.Context, io.Writer) (string, error)) error {
	source, err := find(ctx, b.log)
	if err != nil {
		return err
	}
	return b.image(ctx, recipe{name: name, source: "oci:" + source, inputs: []string{filepath.Base(source)}, init: b.program(runtime.GOARCH, "drover-init")})
}

// GatewayImage is the name of the image that [Built.Gateway] makes.
const GatewayImage = Image + "-gateway"

// Gateway makes the image of machines with role gateway: that of a node, with flanneld and
// kube-proxy.
func (b *Built) Gateway(ctx context.Context) error {
	source, err := buildcache.GatewayImage(ctx, b.log)
	if err != nil {
		return err
	}
	return b.image(ctx, recipe{name: GatewayImage, source: "oci:" + source, inputs: []string{filepath.Base(source)}, init: b.program(runtime.GOARCH, "drover-init")})
}

// PreloadedImage is the name of the image that [Built.Preload] makes.
const PreloadedImage = Image + "-preloaded"

// Preload makes the image of a node that has the container images of hosted tenants, see
// [buildcache.PreloadedImage].
func (b *Built) Preload(ctx context.Context) error {
	return b.nodeImage(ctx, PreloadedImage, buildcache.PreloadedImage)
}

func (b *Built) say(format string, args ...any) { fmt.Fprintf(b.log, format+"\n", args...) }

// newBuilt returns what is known of a site before anything is built.
func newBuilt(log io.Writer) (*Built, error) {
	root, err := buildcache.SourceRoot()
	if err != nil {
		return nil, err
	}
	cache, err := buildcache.CacheDir()
	if err != nil {
		return nil, err
	}
	b := &Built{Root: root, Images: filepath.Join(cache, "images"), Loaders: filepath.Join(cache, "loaders"), log: log}
	b.Drover = b.program(runtime.GOARCH, "drover")
	return b, nil
}

// program is where a program of ours is built to: bin/, or below that for a
// processor that is not this host's.
func (b *Built) program(arch, name string) string {
	if arch == runtime.GOARCH {
		return filepath.Join(b.Root, "bin", name)
	}
	return filepath.Join(b.Root, "bin", arch, name)
}

// programs builds programs of ours.
func (b *Built) programs(ctx context.Context, arch string, names ...string) error {
	for _, name := range names {
		b.say("building %s for %s", name, arch)
		if err := b.compile(ctx, arch, b.program(arch, name), "./cmd/"+name); err != nil {
			return err
		}
	}
	return nil
}

// compile builds a program of ours, static, into a file.
func (b *Built) compile(ctx context.Context, arch, file, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file, pkg)
	cmd.Dir = b.Root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s for %s: %w\n%s", pkg, arch, err, out)
	}
	return nil
}

// loaders copies the loaders from Debian's package ipxe.
func (b *Built) loaders() error {
	if err := os.MkdirAll(b.Loaders, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"undionly.kpxe", "snponly.efi"} {
		content, err := os.ReadFile(filepath.Join("/usr/lib/ipxe", name))
		if err != nil {
			return err
		}
		file := filepath.Join(b.Loaders, name)
		if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, content) {
			continue // a machine of another test may be reading it
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// recipe is what an image is made of.
type recipe struct {
	name   string
	source string   // as drover image build takes it
	inputs []string // all that the source was made from, as far as its content goes
	init   string   // drover-init
	flags  []string // of drover image build
}

// image runs "drover image build", unless the image there was made from the
// same source by the same code.
func (b *Built) image(ctx context.Context, r recipe) error {
	if err := os.MkdirAll(b.Images, 0o755); err != nil {
		return err
	}
	// Two runs at once must not build into the same directory.
	lock, err := os.OpenFile(filepath.Join(b.Images, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	key, err := b.imageKey(r)
	if err != nil {
		return err
	}
	stamp := filepath.Join(b.Images, "."+r.name+".source")
	if old, err := os.ReadFile(stamp); err == nil && string(old) == key {
		if err := exec.CommandContext(ctx, b.Drover, "image", "show", "--images", b.Images, r.name).Run(); err == nil {
			b.say("image %s is there", r.name)
			return nil
		}
	}
	start := time.Now()
	args := append([]string{"image", "build", "--images", b.Images, "--name", r.name, "--init", r.init}, r.flags...)
	args = append(args, r.source)
	b.say("drover %s", strings.Join(args, " "))
	if out, err := exec.CommandContext(ctx, b.Drover, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("drover image build: %w\n%s", err, out)
	}
	b.say("image %s built in %.0f s", r.name, time.Since(start).Seconds())
	return errors.Join(os.WriteFile(stamp, []byte(key), 0o600), b.prune(r.name))
}

// prune removes all but the newest generations of the image: each has 200 MB,
// and every change of drover-init makes one. The next newest may still be in
// use by a site that was opened earlier.
func (b *Built) prune(name string) error {
	const keep = 2 // beside the current one
	dir := filepath.Join(b.Images, name)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	current, err := os.Readlink(filepath.Join(dir, "current"))
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !e.IsDir() || e.Name() == filepath.Base(current) })
	age := func(e fs.DirEntry) time.Time {
		info, err := e.Info()
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	slices.SortFunc(entries, func(x, y fs.DirEntry) int { return age(y).Compare(age(x)) })
	var errs []error
	for _, e := range entries[min(keep, len(entries)):] {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return errors.Join(errs...)
}

// imageKey returns a hash of the inputs of an image: the source, drover-init, and the code
// that combines them.
func (b *Built) imageKey(r recipe) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n", r.inputs, r.flags)
	files := []string{r.init}
	for _, glob := range []string{"imagebuild/*.go", "imagebuild/*/*.go", "cmd/drover/image*.go"} {
		found, err := filepath.Glob(filepath.Join(b.Root, glob))
		if err != nil {
			return "", err
		}
		files = append(files, found...)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %x\n", strings.TrimPrefix(name, b.Root), sha256.Sum256(content))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
