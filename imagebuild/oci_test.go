package imagebuild_test

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"drover/imagebuild"
	"drover/imagebuild/oci"
)

func TestOCILayersAndTags(t *testing.T) {
	l := newLayout(t)
	base := layerOf(t, machine()...)
	l.add("v1", l.image("amd64", "", base, gzipped(t, layerOf(t, "opt/v=1"))))
	l.add("v2", l.image("amd64", "", base, zstandard(t, layerOf(t, "opt/v=22"))))
	dir, archive := l.dir(), l.archive()
	b := builder(t)
	for source, want := range map[string]string{"oci:" + dir + ":v1": "1", "oci:" + dir + ":v2": "22", "oci-archive:" + archive + ":v2": "22"} {
		b.Source = source
		image := build(t, b)
		if got := content(t, image, "opt/v"); got != want {
			t.Errorf("%s: opt/v is %q, want %q", source, got, want)
		}
		if !strings.HasPrefix(image.SourceDigest, "sha256:") {
			t.Errorf("%s: source digest is %q", source, image.SourceDigest)
		}
	}
}

// TestLayersAtOnce: layers are read at the same time, and applied in their order. The image
// is the same on one processor and on many.
func TestLayersAtOnce(t *testing.T) {
	l := newLayout(t)
	layers := [][]byte{gzipped(t, layerOf(t, machine()...))}
	const n = 12
	for i := range n {
		files := []string{fmt.Sprintf("opt/v=%d", i), fmt.Sprintf("opt/%d=%s", i, strings.Repeat("x", 100_000*(n-i)))} // the first take longest
		if i > 0 {
			files = append(files, fmt.Sprintf("opt/.wh.%d=", i-1))
		}
		layers = append(layers, gzipped(t, layerOf(t, files...)))
	}
	l.add("v1", l.image("amd64", "", layers...))
	b := builder(t)
	b.Source = "oci:" + l.dir()
	var phases []string
	b.Progress = func(p imagebuild.Progress) {
		if !slices.Contains(phases, p.Phase) {
			phases = append(phases, p.Phase)
		}
	}
	ids := map[string]bool{}
	for _, processors := range []int{1, 2, 8} {
		before := runtime.GOMAXPROCS(processors)
		image := build(t, b)
		runtime.GOMAXPROCS(before)
		ids[image.ID] = true
		if got, want := content(t, image, "opt/v"), fmt.Sprint(n-1); got != want {
			t.Errorf("with %d processors opt/v is %q, want %q of the last layer", processors, got, want)
		}
		if list := unsquash(t, image); strings.Contains(list, "opt/0") || !strings.Contains(list, fmt.Sprintf("opt/%d", n-1)) {
			t.Errorf("with %d processors the files are\n%s", processors, list)
		}
	}
	if len(ids) != 1 {
		t.Errorf("the images are %v, want one", ids)
	}
	if want := []string{"reading 13 layers", "writing initrd", "writing root.squashfs"}; !slices.Equal(phases, want) {
		t.Errorf("phases are %q, want %q", phases, want)
	}
	b.MaxSize = 2_000_000 // less than all layers, more than any
	if _, err := b.Build(t.Context()); err == nil || !strings.Contains(err.Error(), "the image is larger than 2000000 bytes") {
		t.Errorf("got error %v, want one about the size of all layers", err)
	}
}

func TestOCIPlatforms(t *testing.T) {
	l := newLayout(t)
	platform := func(os, arch, variant string, d map[string]any) map[string]any {
		d["platform"] = map[string]string{"os": os, "architecture": arch, "variant": variant}
		return d
	}
	file := func(v string) []byte { return layerOf(t, with(machine(), nil, "opt/v="+v)...) }
	index := l.json("application/vnd.oci.image.index.v1+json", map[string]any{"schemaVersion": 2, "manifests": []any{
		platform("unknown", "unknown", "", l.image("amd64", "", file("attestation"))),
		platform("linux", "arm64", "v8", l.image("arm64", "", file("arm64"))),
		platform("linux", "amd64", "", l.image("amd64", "", file("amd64"))),
	}})
	l.add("multi", index)
	l.add("nested", l.json("application/vnd.oci.image.index.v1+json", map[string]any{"schemaVersion": 2, "manifests": []any{index}}))
	b := builder(t)
	b.Source = "oci:" + l.dir() + ":multi"
	if got, want := content(t, build(t, b), "opt/v"), "amd64"; got != want {
		t.Errorf("by default opt/v is %q, want %q", got, want)
	}
	b.Platform = oci.Platform{OS: "linux", Architecture: "arm64"}
	write(t, b.Init, staticELF(t, elf.EM_AARCH64, false))
	var image imagebuild.Image
	for _, tag := range []string{"nested", "multi"} { // the former has the index in an index
		b.Source = "oci:" + l.dir() + ":" + tag
		image = build(t, b)
		if got, want := content(t, image, "opt/v"), "arm64"; got != want {
			t.Errorf("%s: for arm64 opt/v is %q, want %q", tag, got, want)
		}
	}
	if got, want := image.Platform, "linux/arm64"; got != want {
		t.Errorf("platform is %q, want %q", got, want)
	}
	b.Platform.Architecture = "riscv64"
	write(t, b.Init, staticELF(t, elf.EM_RISCV, false))
	_, err := b.Build(t.Context())
	if want := "no variant for linux/riscv64, only for unknown/unknown, linux/arm64/v8, linux/amd64"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want one with %q", err, want)
	}
}

func TestOCIRefuses(t *testing.T) {
	good := layerOf(t, machine()...)
	manifest := func(l *layout, edit func(m map[string]any)) {
		config := l.json("config", map[string]any{"os": "linux", "architecture": "amd64", "rootfs": map[string]any{"diff_ids": []string{"x"}}})
		m := map[string]any{"config": config, "layers": []any{l.blob("layer", good)}}
		edit(m)
		l.add("", l.json("manifest", m))
	}
	firstLayer := func(m map[string]any) map[string]any { return m["layers"].([]any)[0].(map[string]any) }
	damage := func(l *layout, contains string) {
		for name, b := range l.files {
			if strings.HasPrefix(name, "blobs/") && bytes.Contains(b, []byte(contains)) {
				b = bytes.Clone(b)
				b[bytes.Index(b, []byte(contains))] ^= 1
				l.files[name] = b
			}
		}
	}
	tests := []struct {
		name  string
		setup func(l *layout)
		want  string
	}{
		{"empty index", func(*layout) {}, "index.json lists no image"},
		{"several images", func(l *layout) {
			l.add("b", l.image("amd64", "", good))
			l.add("a", l.image("amd64", "", good, good))
		}, "holds several images; add one of these as :TAG: a, b"},
		{"one layer many times (M11)", func(l *layout) { l.add("", l.image("amd64", "", slices.Repeat([][]byte{good}, 1000)...)) }, "the image has 1000 layers, more than 512"},
		{"wrong platform", func(l *layout) { l.add("", l.image("arm64", "", good)) }, "the image is for linux/arm64, not for linux/amd64"},
		{"layer damaged", func(l *layout) { l.add("", l.image("amd64", "", good)); damage(l, "the kernel") }, "is damaged: its content has sha256:"},
		{"header of a layer damaged", func(l *layout) { l.add("", l.image("amd64", "", good)); damage(l, "vmlinuz") }, "is damaged: its content has sha256:"},
		{"compressed layer damaged", func(l *layout) {
			l.add("", l.image("amd64", "", gzipped(t, good)))
			damage(l, "\x1f\x8b")
		}, "is damaged: its content has sha256:"},
		{"manifest damaged", func(l *layout) { l.add("", l.image("amd64", "", good)); damage(l, "layers") }, "is damaged: its content has sha256:"},
		{"digest is a path", func(l *layout) {
			manifest(l, func(m map[string]any) { firstLayer(m)["digest"] = "sha256:../../../../etc/passwd" })
		}, "is malformed"},
		{"digest in capitals", func(l *layout) {
			manifest(l, func(m map[string]any) {
				d := firstLayer(m)
				d["digest"] = "sha256:" + strings.ToUpper(d["digest"].(string)[7:])
			})
		}, "is malformed"},
		{"weak digest", func(l *layout) {
			manifest(l, func(m map[string]any) { firstLayer(m)["digest"] = "md5:0123" })
		}, "is neither sha256 nor sha512"},
		{"size", func(l *layout) { manifest(l, func(m map[string]any) { firstLayer(m)["size"] = 5 }) }, "instead of 5"},
		{"encrypted", func(l *layout) {
			manifest(l, func(m map[string]any) { firstLayer(m)["mediaType"] = "tar+gzip+encrypted" })
		}, "is encrypted"},
		{"layer that config does not know", func(l *layout) {
			manifest(l, func(m map[string]any) { m["layers"] = append(m["layers"].([]any), l.blob("layer", good)) })
		}, "the manifest has 2 layers, the image config 1"},
		{"blob missing", func(l *layout) {
			manifest(l, func(m map[string]any) { firstLayer(m)["digest"] = "sha256:" + strings.Repeat("0", 64) })
		}, strings.Repeat("0", 64)},
		{"no manifest", func(l *layout) { l.add("", l.json("x", map[string]any{})) }, "neither an image index nor an image manifest"},
		{"huge manifest", func(l *layout) {
			d := l.json("x", map[string]any{})
			d["size"] = 5 << 20
			l.add("", d)
		}, "is not a sensible size"},
		{"index in index in index", func(l *layout) {
			d := l.image("amd64", "", good)
			for range 5 {
				d = l.json("index", map[string]any{"manifests": []any{d}})
			}
			l.add("", d)
		}, "image indexes inside each other"},
		{"bad layer", func(l *layout) { l.add("", l.image("amd64", "", good, layerOf(t, "../x"))) }, `layer 2 of 2: entry "../x": name holds ".."`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := newLayout(t)
			test.setup(l)
			b := builder(t)
			for _, source := range []string{"oci:" + l.dir(), "oci-archive:" + l.archive()} {
				b.Source = source
				_, err := b.Build(t.Context())
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s: got error %v, want one with %q", source, err, test.want)
				}
				nothingVisible(t, b.Images)
			}
		})
	}
}

func TestOCINotALayout(t *testing.T) {
	b := builder(t)
	empty := t.TempDir()
	write(t, filepath.Join(empty, "bad", "index.json"), []byte("{"))
	outside := newLayout(t)
	outside.add("", outside.image("amd64", "", layerOf(t, machine()...)))
	if err := os.Symlink(filepath.Join(outside.dir(), "index.json"), filepath.Join(empty, "index.json")); err != nil {
		t.Fatal(err)
	}
	compressed := filepath.Join(empty, "image.tar.gz")
	write(t, compressed, gzipped(t, layerOf(t, "a")))
	for source, want := range map[string]string{
		"oci:" + empty:                       "escapes from parent",
		"oci:" + empty + "/bad":              "not an OCI image layout",
		"oci:" + empty + "/missing":          "no such file",
		"oci-archive:" + compressed:          "must be unpacked first",
		"oci-archive:" + compressed + ":tag": "must be unpacked first",
		"oci:":                               "is not one of",
	} {
		b.Source = source
		if _, err := b.Build(context.Background()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", source, err, want)
		}
	}
}
