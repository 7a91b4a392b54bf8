package buildcache

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	// storeLimit is the maximum size of the layers of past builds, in bytes. Beyond it
	// they are removed, and the next build takes about a minute more.
	storeLimit = 6 << 30

	nodeName = "localhost/node:latest"

	// trustAll is the signature policy of a store that never pulls. Without it buildah
	// requires /etc/containers/policy.json, which Debian only recommends.
	trustAll = `{"default": [{"type": "insecureAcceptAnything"}]}`
)

// buildah is a container store below the cache, with the program buildah.
type buildah struct {
	dir    string
	driver string    // overlay, or vfs where an overlay cannot be mounted
	out    io.Writer // for the output of buildah
}

// budInput is the input of a build of the node image.
type budInput struct {
	root    string // of the source tree, the build context
	base    string // tar of the base image
	baseKey string
	bin     string // build context "k8sbin"
	out     string // folder of the OCI layout
	store   string // buildah's folder in the cache: builds in one store would remove each other's containers
}

// bud builds the node image and writes it to in.out. It writes the whole output to
// image.log in the cache, and the steps to log.
func bud(ctx context.Context, log io.Writer, in budInput) error {
	cache, err := CacheDir()
	if err != nil {
		return err
	}
	full, err := os.Create(filepath.Join(cache, "image.log"))
	if err != nil {
		return err
	}
	defer full.Close()
	steps := &stepWriter{log: log}
	b, err := openStore(ctx, filepath.Join(cache, in.store), io.MultiWriter(full, steps))
	if err != nil {
		return err
	}
	err = b.build(ctx, in)
	if err != nil {
		return fmt.Errorf("%w\n(everything it said is in %s)", err, full.Name())
	}
	return nil
}

func (b *buildah) build(ctx context.Context, in budInput) error {
	base := "localhost/base:" + in.baseKey
	if err := b.importBase(ctx, in.base, base); err != nil {
		return err
	}
	args := []string{
		"--target", "node",
		"--isolation", "chroot", // needs no runtime and no cgroups
		"--pull=never",
		"--timestamp", "0",
		"--build-arg", "BASE=" + base,
		"--build-arg", "K8S_SOURCE=local",
		"--build-context", "k8sbin=" + in.bin,
		"--tag", nodeName,
		"--file", filepath.Join(in.root, dockerfile),
	}
	if b.driver == "overlay" { // vfs would copy the whole tree for each layer
		args = append(args, "--layers")
	}
	if err := b.run(ctx, "bud", append(args, in.root)...); err != nil {
		return err
	}
	return b.run(ctx, "push", "--quiet", nodeName, "oci:"+in.out+":latest")
}

// importBase makes an image of the base tar, unless it exists.
func (b *buildah) importBase(ctx context.Context, tar, name string) error {
	if _, err := output(b.command(ctx, "inspect", "--type", "image", "--format", "{{.FromImageID}}", name)); err == nil {
		return nil
	}
	container, err := output(b.command(ctx, "from", "--signature-policy", b.policy(), "scratch"))
	if err != nil {
		return err
	}
	for _, args := range [][]string{
		{"add", "--quiet", container, tar, "/"},
		{"config", "--cmd", "/bin/bash", "--env", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", container},
		{"commit", "--signature-policy", b.policy(), "--quiet", "--timestamp", "0", "--rm", container, name},
	} {
		if err := b.run(ctx, args[0], args[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// openStore opens the store. It removes the leftovers of a killed build, and empties the
// store if it exceeds storeLimit.
func openStore(ctx context.Context, dir string, out io.Writer) (*buildah, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	b := &buildah{dir: dir, driver: "overlay", out: out}
	if err := os.WriteFile(b.policy(), []byte(trustAll), 0o644); err != nil {
		return nil, err
	}
	if _, err := output(b.command(ctx, "images", "--quiet")); err != nil {
		fmt.Fprintf(out, "buildah: no overlay store in %s (%v), using vfs\n", dir, err)
		b.driver = "vfs"
	}
	if _, err := output(b.command(ctx, "rm", "--all")); err != nil {
		return nil, err
	}
	size, err := diskUsage(dir)
	if err != nil || size < storeLimit {
		return b, err
	}
	_, err = output(b.command(ctx, "rmi", "--all", "--force"))
	return b, err
}

func (b *buildah) policy() string { return filepath.Join(b.dir, "policy.json") }

func (b *buildah) command(ctx context.Context, sub string, args ...string) *exec.Cmd {
	global := []string{
		"--root", filepath.Join(b.dir, b.driver), "--runroot", filepath.Join(b.dir, b.driver+"-run"),
		"--storage-driver", b.driver, sub,
	}
	return command(ctx, "buildah", append(global, args...)...)
}

func (b *buildah) run(ctx context.Context, sub string, args ...string) error {
	if sub == "bud" || sub == "push" {
		args = append([]string{"--signature-policy", b.policy()}, args...)
	}
	return run(b.command(ctx, sub, args...), b.out)
}

// diskUsage returns the bytes that all files below dir take on the disk.
func diskUsage(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			total += stat.Blocks * 512
		}
		return nil
	})
	return total, err
}

// stepWriter passes on the lines that start a step of a build:
//
//	[3/5] STEP 2/4: RUN apt-get update && ...
type stepWriter struct {
	log  io.Writer
	line []byte
}

func (s *stepWriter) Write(p []byte) (int, error) {
	s.line = append(s.line, p...)
	for {
		end, line, err := bufio.ScanLines(s.line, false)
		if err != nil || end == 0 {
			return len(p), err
		}
		s.pass(string(line))
		s.line = s.line[end:]
	}
}

func (s *stepWriter) pass(line string) {
	const width = 100
	if _, step, ok := strings.Cut(line, "STEP "); !ok || !strings.Contains(step, ": ") {
		return
	}
	line = strings.Join(strings.Fields(line), " ")
	if r := []rune(line); len(r) > width {
		line = string(r[:width-3]) + "..."
	}
	fmt.Fprintf(s.log, "image: %s\n", line)
}
