package imagebuild_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	ocilayout "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"drover/imagebuild/oci"
)

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// dockerArchive returns a tar as docker save writes it, for images by tag with layers.
// Edit changes its files before they are packed.
func dockerArchive(t *testing.T, images map[string][][]byte, edit func(files map[string][]byte)) string {
	t.Helper()
	files := map[string][]byte{}
	var manifest []map[string]any
	for _, tag := range []string{"localhost/node:v1", "localhost/node:v2"} {
		layers, ok := images[tag]
		if !ok {
			continue
		}
		var names, ids []string
		for _, l := range layers {
			names, ids = append(names, hexSum(l)+"/layer.tar"), append(ids, "sha256:"+hexSum(l))
			files[names[len(names)-1]] = l
		}
		config, err := json.Marshal(map[string]any{"os": "linux", "architecture": "amd64", "rootfs": map[string]any{"type": "layers", "diff_ids": ids}})
		if err != nil {
			t.Fatal(err)
		}
		files[hexSum(config)+".json"] = config
		manifest = append(manifest, map[string]any{"Config": hexSum(config) + ".json", "RepoTags": []string{tag}, "Layers": names})
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	files["manifest.json"] = text
	if edit != nil {
		edit(files)
	}
	var entries []tarEntry
	for name, content := range files {
		e := describe(name)
		e.content, e.Size = string(content), int64(len(content))
		entries = append(entries, e)
	}
	path := filepath.Join(t.TempDir(), "image.tar")
	write(t, path, tarOf(t, entries...))
	return path
}

func TestDockerArchive(t *testing.T) {
	base := layerOf(t, with(machine(), nil, "opt/gone=x")...)
	images := map[string][][]byte{"localhost/node:v1": {base, layerOf(t, "opt/v=1")}, "localhost/node:v2": {base, layerOf(t, "opt/v=2", "opt/.wh.gone")}}
	both := dockerArchive(t, images, nil)
	one := dockerArchive(t, map[string][][]byte{"localhost/node:v1": images["localhost/node:v1"]}, nil)
	// The contents of a layer count, and not how it is compressed.
	packed := dockerArchive(t, map[string][][]byte{"localhost/node:v1": images["localhost/node:v1"]}, func(files map[string][]byte) {
		name := hexSum(base) + "/layer.tar"
		files[name] = gzipped(t, files[name])
	})
	b := builder(t)
	for source, want := range map[string]string{one: "1", packed: "1", both + ":v2": "2", both + ":localhost/node:v1": "1"} {
		b.Source = "docker-archive:" + source
		image := build(t, b)
		if got := content(t, image, "opt/v"); got != want {
			t.Errorf("%s: opt/v is %q, want %q", source, got, want)
		}
		if strings.Contains(unsquash(t, image), "opt/gone") != (want == "1") {
			t.Errorf("%s: opt/gone is there, or is not", source)
		}
		if !strings.HasPrefix(image.SourceDigest, "sha256:") {
			t.Errorf("%s: source digest is %q", source, image.SourceDigest)
		}
	}
}

func TestDamagedDockerArchive(t *testing.T) {
	base := layerOf(t, machine()...)
	layerName := hexSum(base) + "/layer.tar"
	change := func(file string, edit func([]byte) []byte) func(map[string][]byte) {
		return func(files map[string][]byte) {
			for name := range files {
				if strings.HasSuffix(name, file) {
					files[name] = edit(bytes.Clone(files[name]))
				}
			}
		}
	}
	flip := func(b []byte) []byte {
		b[len(b)/2] ^= 1
		return b
	}
	for name, test := range map[string]struct {
		edit func(map[string][]byte)
		want string
	}{
		"flipped layer": {change("layer.tar", flip), "layer.tar is damaged"},
		"cut layer":     {change("layer.tar", func(b []byte) []byte { return b[:len(b)-5000] }), "layer 1 of 1"},
		"longer layer":  {change("layer.tar", func(b []byte) []byte { return append(b, 1) }), "layer.tar is damaged"},
		"no layer":      {func(f map[string][]byte) { delete(f, layerName) }, "file does not exist"},
		"config":        {change(".json", func(b []byte) []byte { return bytes.Replace(b, []byte("amd64"), []byte("amd64 "), 1) }), "config"},
		"no manifest":   {func(f map[string][]byte) { delete(f, "manifest.json") }, "not a tar of docker save"},
		"two":           {change("manifest.json", func([]byte) []byte { return []byte("[]") }), "lists no image"},
		"half":          {change("manifest.json", func(b []byte) []byte { return b[:len(b)/2] }), "manifest.json: unexpected end"},
		"escape":        {change("manifest.json", func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(layerName), []byte("../../etc/passwd")) }), "file does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			b := builder(t)
			b.Source = "docker-archive:" + dockerArchive(t, map[string][][]byte{"localhost/node:v1": {base}}, test.edit)
			if _, err := b.Build(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
			nothingVisible(t, b.Images)
		})
	}
}

// TestIndexListsPlatforms: index.json itself may list the variants of one image.
func TestIndexListsPlatforms(t *testing.T) {
	l := newLayout(t)
	for _, v := range []struct{ arch, variant string }{{"unknown", ""}, {"amd64", "v4"}, {"arm64", "v8"}, {"amd64", ""}} {
		d := l.image(v.arch, "", layerOf(t, with(machine(), nil, "opt/v="+v.arch+v.variant)...))
		d["platform"] = map[string]string{"os": "linux", "architecture": v.arch, "variant": v.variant}
		l.add("", d)
	}
	b := builder(t)
	b.Source = "oci:" + l.dir()
	for _, test := range []struct {
		platform oci.Platform
		want     string
	}{{oci.Platform{OS: "linux", Architecture: "amd64"}, "amd64"}, {oci.Platform{OS: "linux", Architecture: "amd64", Variant: "v4"}, "amd64v4"}} {
		b.Platform = test.platform
		if got := content(t, build(t, b), "opt/v"); got != test.want {
			t.Errorf("%s: opt/v is %q, want %q", test.platform, got, test.want)
		}
	}
	b.Platform = oci.Platform{OS: "linux", Architecture: "riscv64"}
	if _, err := b.Build(t.Context()); err == nil {
		t.Error("there is an image for riscv64")
	}
	l.add("", l.image("amd64", "", layerOf(t, machine()...)))
	b.Source, b.Platform = "oci:"+l.dir(), oci.Platform{}
	if _, err := b.Build(t.Context()); err == nil || !strings.Contains(err.Error(), "holds several images") {
		t.Errorf("with an image without platform: got %v", err)
	}
}

// TestRegistry: an image comes from a registry, also one of several platforms.
func TestRegistry(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	l := newLayout(t)
	desc := l.image("amd64", "", layerOf(t, with(machine(), nil, "opt/v=registry")...))
	desc["platform"] = map[string]string{"os": "linux", "architecture": "amd64"}
	index := l.json("application/vnd.oci.image.index.v1+json", map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []any{desc}})
	l.add("", index)
	path, err := ocilayout.FromPath(l.dir())
	if err != nil {
		t.Fatal(err)
	}
	all, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := all.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	inner, err := all.ImageIndex(manifests.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(host + "/rack/node:7")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(ref, inner); err != nil {
		t.Fatal(err)
	}
	b := builder(t)
	for _, source := range []string{"docker://" + host + "/rack/node:7", "docker://" + host + "/rack/node@" + manifests.Manifests[0].Digest.String()} {
		b.Source = source
		image := build(t, b)
		if got := content(t, image, "opt/v"); got != "registry" {
			t.Errorf("%s: opt/v is %q", source, got)
		}
		if got, want := image.SourceDigest, desc["digest"]; got != want {
			t.Errorf("%s: source digest is %q, want %q", source, got, want)
		}
	}
	for source, want := range map[string]string{
		"docker://" + host + "/rack/none": "NAME_UNKNOWN", "docker://" + host + "/Rack": "could not parse reference", "docker://127.0.0.1:1/x": "connection refused",
	} {
		b.Source = source
		if _, err := b.Build(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", source, err, want)
		}
	}
	nothing := builder(t)
	nothing.Source, nothing.Platform = "docker://"+host+"/rack/node:7", oci.Platform{OS: "linux", Architecture: "arm64"}
	if _, err := nothing.Build(t.Context()); err == nil {
		t.Error("there is an image for arm64")
	}
	nothingVisible(t, nothing.Images)
}
