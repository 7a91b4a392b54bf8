package site

import (
	"context"
	"debug/pe"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"drover/e2e/buildcache"
	"drover/e2e/lab"
)

// Images of [BuildTiny]: a Debian kernel, and a root that holds one program
// (e2e/image/tiny). They take seconds to boot where a whole Debian takes minutes.
const (
	TinyAMD64    = "tiny-amd64"
	TinyARM64    = "tiny-arm64"
	TinyUnsigned = "tiny-unsigned" // for amd64; the kernel's signature is cut off
)

// BuildTiny makes drover, its loaders for every firmware, and the tiny images:
// all that machines take which boot, and join nothing. Loaders are put into a
// directory that the caller may add to.
func BuildTiny(ctx context.Context, log io.Writer, loaders string) (*Built, error) {
	b, err := newBuilt(log)
	if err != nil {
		return nil, err
	}
	b.Loaders = loaders
	if err := b.programs(ctx, runtime.GOARCH, "drover", "drover-init"); err != nil {
		return nil, err
	}
	if err := b.signedLoaders(ctx); err != nil {
		return nil, err
	}
	for _, t := range []tiny{{name: TinyAMD64, arch: "amd64"}, {name: TinyUnsigned, arch: "amd64", unsigned: true}, {name: TinyARM64, arch: "arm64"}} {
		if err := b.tiny(ctx, t); err != nil {
			return nil, fmt.Errorf("image %s: %w", t.name, err)
		}
	}
	return b, nil
}

// signedLoaders installs what this host has of iPXE, and shim and GRUB for each
// processor, in the way in which docs/loaders.md tells an operator to.
func (b *Built) signedLoaders(ctx context.Context) error {
	from := []string{"/"}
	for _, arch := range []string{"amd64", "arm64"} {
		dir, err := buildcache.Loaders(ctx, b.log, arch)
		if err != nil {
			return err
		}
		from = append(from, dir)
	}
	for _, dir := range from {
		cmd := exec.CommandContext(ctx, b.Drover, "loaders", "install", "--loaders", b.Loaders, "--from", dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("drover loaders install --from %s: %w\n%s", dir, err, out)
		}
	}
	return nil
}

// hostModules are the kernel modules that e2e/image/host loads.
var hostModules = []string{"9p", "9pnet_virtio", "veth", "bonding", "8021q"}

// BuildKernel makes Debian's kernel for amd64, with an initrd whose init runs tests of this
// host (e2e/image/host).
func BuildKernel(ctx context.Context, log io.Writer) (*lab.Kernel, error) {
	b, init, err := newHost(ctx, log)
	if err != nil {
		return nil, err
	}
	const name = "host-amd64"
	if err := b.tiny(ctx, tiny{name: name, arch: "amd64", init: init, modules: hostModules}); err != nil {
		return nil, fmt.Errorf("image %s: %w", name, err)
	}
	return b.hostKernel(name), nil
}

// KernelOf is [BuildKernel] with the kernel of a tree, and with more of its modules. It
// writes into a directory, and to the tree what an image of systemd's has.
func KernelOf(ctx context.Context, log io.Writer, dir, tree string, modules ...string) (*lab.Kernel, error) {
	b, init, err := newHost(ctx, log)
	if err != nil {
		return nil, err
	}
	b.Images = dir
	systemd := filepath.Join(tree, "usr/lib/systemd")
	if err := os.MkdirAll(systemd, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(systemd, "systemd"), []byte("stands in for systemd"), 0o755); err != nil {
		return nil, err
	}
	const name = "host-modules"
	flags := []string{"--exclude", "usr/lib/modules"}
	for _, module := range append(modules, hostModules...) {
		flags = append(flags, "--module", module)
	}
	if err := b.image(ctx, recipe{name: name, source: "dir:" + tree, init: init, flags: flags}); err != nil {
		return nil, fmt.Errorf("image %s: %w", name, err)
	}
	return b.hostKernel(name), nil
}

// newHost builds drover, and the init that runs tests of this host.
func newHost(ctx context.Context, log io.Writer) (b *Built, init string, err error) {
	if b, err = newBuilt(log); err != nil {
		return nil, "", err
	}
	if err := b.programs(ctx, runtime.GOARCH, "drover"); err != nil {
		return nil, "", err
	}
	init = b.program("amd64", "host")
	return b, init, b.compile(ctx, "amd64", init, "./e2e/image/host")
}

func (b *Built) hostKernel(image string) *lab.Kernel {
	files := filepath.Join(b.Images, image, "current")
	return &lab.Kernel{Image: filepath.Join(files, "kernel"), Initrd: filepath.Join(files, "initrd"), HostFiles: true}
}

// tiny is one of the tiny images.
type tiny struct {
	name, arch string
	unsigned   bool
	init       string   // the program for /init of the initrd; default: drover-init
	modules    []string // for the initrd, beside the usual ones
}

// TinyRoot makes the root file system of [TinyAMD64], for a test that builds the image
// itself. The caller removes the directory.
func TinyRoot(ctx context.Context, log io.Writer) (dir string, err error) {
	b, err := newBuilt(log)
	if err != nil {
		return "", err
	}
	dir, _, err = b.tinyRoot(ctx, tiny{name: TinyAMD64, arch: "amd64"})
	return dir, err
}

// tinyRoot makes the root file system of a tiny image, and returns what it was made
// from.
func (b *Built) tinyRoot(ctx context.Context, t tiny) (root string, inputs []string, err error) {
	kernel, err := buildcache.Kernel(ctx, b.log, t.arch)
	if err != nil {
		return "", nil, err
	}
	program := b.program(t.arch, "tiny")
	if err := b.compile(ctx, t.arch, program, "./e2e/image/tiny"); err != nil {
		return "", nil, err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return "", nil, err
	}
	// Beside the kernel, whose files are linked.
	if root, err = os.MkdirTemp(filepath.Dir(kernel), ".tiny-"); err != nil {
		return "", nil, err
	}
	err = link(root, kernel)
	if err == nil && t.unsigned {
		err = unsignKernel(filepath.Join(root, "boot"))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "init"), content, 0o755)
	}
	// Nodes have systemd; the tiny system stands in for it.
	for path, target := range map[string]string{"sbin/init": "../init", "usr/lib/systemd/systemd": "../../../init"} {
		if err == nil {
			err = os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755)
		}
		if err == nil {
			err = os.Symlink(target, filepath.Join(root, path))
		}
	}
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(root))
	}
	return root, []string{filepath.Base(kernel), string(content), fmt.Sprint(t.unsigned)}, nil
}

// tiny makes a tiny image.
func (b *Built) tiny(ctx context.Context, t tiny) error {
	if t.init == "" {
		t.init = b.program(t.arch, "drover-init")
		if err := b.programs(ctx, t.arch, "drover-init"); err != nil {
			return err
		}
	}
	root, inputs, err := b.tinyRoot(ctx, t)
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	flags := []string{"--platform", "linux/" + t.arch, "--exclude", "usr/lib/modules"}
	for _, name := range t.modules {
		flags = append(flags, "--module", name)
	}
	return b.image(ctx, recipe{name: t.name, source: "dir:" + root, init: t.init, inputs: inputs, flags: flags})
}

// link makes a tree of links to the files of another.
func link(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case rel == ".":
			return nil
		case d.IsDir():
			return os.Mkdir(target, 0o755)
		}
		return os.Link(path, target)
	})
}

// unsignKernel cuts off the signature of the one kernel in a directory.
func unsignKernel(dir string) error {
	found, err := filepath.Glob(filepath.Join(dir, "vmlinuz-*"))
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return fmt.Errorf("%s: %d kernels, want one", dir, len(found))
	}
	b, err := os.ReadFile(found[0])
	if err != nil {
		return err
	}
	if b, err = unsigned(b); err != nil {
		return fmt.Errorf("%s: %w", found[0], err)
	}
	if err := os.Remove(found[0]); err != nil { // it is a link
		return err
	}
	return os.WriteFile(found[0], b, 0o644)
}

// unsigned returns a UEFI program without its signature. That is at the end of
// the file, where entry 4 of the data directories says.
func unsigned(b []byte) ([]byte, error) {
	if len(b) < 0x40 {
		return nil, errors.New("it is no UEFI program")
	}
	// COFF's header has 4+20 bytes, the fields of PE32+ before the directories 112.
	at := int64(binary.LittleEndian.Uint32(b[0x3c:])) + 4 + 20 + 112 + 8*pe.IMAGE_DIRECTORY_ENTRY_SECURITY
	if at+8 > int64(len(b)) {
		return nil, errors.New("it is no UEFI program")
	}
	start, size := int64(binary.LittleEndian.Uint32(b[at:])), int64(binary.LittleEndian.Uint32(b[at+4:]))
	if size == 0 || start+size != int64(len(b)) {
		return nil, fmt.Errorf("%d bytes of signature at %d of %d: it is not signed at its end", size, start, len(b))
	}
	clear(b[at : at+8])
	return b[:start], nil
}
