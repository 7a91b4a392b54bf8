package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"drover/e2e/buildcache"
	"drover/e2e/lab/site"
	"drover/imagebuild"
)

// layout is where a distribution's packages put kernel and modules.
type layout struct {
	kernel    string // %s is the version
	more      map[string]string
	ext       string // of modules
	osRelease string
}

// layouts are those of distributions whose packages are not available here: a kernel of
// Debian's stands in for theirs.
var layouts = map[string]layout{
	"ubuntu":   {kernel: "boot/vmlinuz-%s", ext: ".zst", osRelease: "ID=ubuntu\nID_LIKE=debian\n"},
	"fedora":   {kernel: "usr/lib/modules/%s/vmlinuz", ext: ".xz", osRelease: "ID=fedora\n"},
	"rocky":    {kernel: "usr/lib/modules/%s/vmlinuz", more: map[string]string{"boot/vmlinuz-0-rescue-0123456789abcdef": "rescue"}, ext: ".xz", osRelease: "ID=rocky\nID_LIKE=\"rhel centos fedora\"\n"},
	"opensuse": {kernel: "usr/lib/modules/%s/vmlinuz", ext: ".zst", osRelease: "ID=opensuse-leap\nID_LIKE=\"suse opensuse\"\n"},
	"arch":     {kernel: "usr/lib/modules/%s/vmlinuz", more: map[string]string{"boot/vmlinuz-linux": "a second name"}, ext: ".gz", osRelease: "ID=arch\n"},
}

// TestLayouts builds images of the layouts of distributions, and boots each until
// drover-init has an address.
func TestLayouts(t *testing.T) {
	able(t)
	b, err := site.BuildTiny(t.Context(), t.Output(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := buildcache.Kernel(t.Context(), t.Output(), "amd64")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(layouts)) {
		t.Run(name, func(t *testing.T) {
			root, images := t.TempDir(), t.TempDir()
			version := layouts[name].write(t, root, kernel)
			out, err := exec.CommandContext(t.Context(), b.Drover, "image", "build", "--images", images, "--name", name,
				"--init", filepath.Join(b.Root, "bin", "drover-init"), "dir:"+root).CombinedOutput()
			if err != nil {
				t.Fatalf("drover image build: %v\n%s", err, out)
			}
			image, err := imagebuild.Open(images).Lookup(name)
			if err != nil || image.KernelVersion != version {
				t.Fatalf("image is %+v, %v, want kernel %q", image, err, version)
			}
			connects(t, image)
		})
	}
}

// write makes a root file system of the layout with a kernel of buildcache's and the
// modules that QEMU's machine needs, and more, and returns the version.
func (l layout) write(t *testing.T, root, kernel string, modules ...string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(kernel, "boot", "vmlinuz-*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("kernels are %q, %v", found, err)
	}
	version := strings.TrimPrefix(filepath.Base(found[0]), "vmlinuz-")
	files := map[string][]byte{
		fmt.Sprintf(l.kernel, version): []byte(read(t, found[0])),
		"usr/lib/systemd/systemd":      []byte("stands in for systemd"),
		"etc/os-release":               []byte(l.osRelease),
	}
	for name, content := range l.more {
		files[name] = []byte(content)
	}
	from, to := filepath.Join(kernel, "usr/lib/modules", version), "usr/lib/modules/"+version+"/"
	for _, name := range []string{"modules.alias", "modules.builtin", "modules.softdep"} {
		files[to+name] = []byte(read(t, filepath.Join(from, name)))
	}
	deps := map[string][]string{}
	for line := range strings.Lines(read(t, filepath.Join(from, "modules.dep"))) {
		file, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		deps[file] = strings.Fields(rest)
	}
	var dep strings.Builder
	for _, file := range closure(deps, append(modules, "virtio_net", "virtio_pci", "squashfs", "overlay", "loop", "af_packet", "ahci")...) {
		content, err := os.ReadFile(filepath.Join(from, file))
		if err != nil {
			t.Fatal(err)
		}
		files[to+file+l.ext] = compressed(t, l.ext, content)
		dep.WriteString(file + l.ext + ":")
		for _, d := range deps[file] {
			dep.WriteString(" " + d + l.ext)
		}
		dep.WriteString("\n")
	}
	files[to+"modules.dep"] = []byte(dep.String())
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return version
}

// closure returns the files of modules and of everything that they depend on.
func closure(deps map[string][]string, names ...string) []string {
	chosen := map[string]bool{}
	for file, more := range deps {
		if slices.Contains(names, strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".ko"), "-", "_")) {
			chosen[file] = true
			for _, d := range more {
				chosen[d] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(chosen))
}

// compressed compresses a module as a distribution with this extension does.
func compressed(t *testing.T, ext string, content []byte) []byte {
	t.Helper()
	if ext == "" {
		return content
	}
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch ext {
	case ".gz":
		w = gzip.NewWriter(&b)
	case ".zst":
		w, err = zstd.NewWriter(&b)
	case ".xz":
		w, err = xz.WriterConfig{DictCap: 1 << 20, CheckSum: xz.CRC32}.NewWriter(&b)
	}
	if err == nil {
		_, err = w.Write(content)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// connects boots kernel and initrd of an image on a network of QEMU's own, which reaches
// nothing, until drover-init has an address.
func connects(t *testing.T, image imagebuild.Image) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", "-accel", "tcg", "-m", "512", "-nographic", "-no-reboot", "-monitor", "none", "-serial", "stdio",
		"-kernel", filepath.Join(image.Path, imagebuild.KernelFile), "-initrd", filepath.Join(image.Path, imagebuild.InitrdFile),
		"-append", "console=ttyS0 panic=1 drover.url=http://10.0.2.2:9 drover.mac=52-54-00-12-34-56 drover.nonce=0123456789abcdef "+
			"drover.image=sha256:"+image.Files[imagebuild.SquashfsFile].SHA256+" drover.root=/images/x/y/root.squashfs",
		"-nic", "user,restrict=on,model=virtio-net-pci,mac=52:54:00:12:34:56")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer cancel()
	want := regexp.MustCompile(`10\.0\.2\.15\S* from 10\.0\.2\.2`)
	var console bytes.Buffer
	for piece := make([]byte, 4096); ; {
		n, err := pipe.Read(piece)
		console.Write(piece[:n])
		if want.Match(console.Bytes()) {
			return
		}
		if err != nil {
			t.Fatalf("%v: the console has no %q:\n%s", err, want, console.String())
		}
	}
}
