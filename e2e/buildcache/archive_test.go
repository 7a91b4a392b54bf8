package buildcache

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestArchive(t *testing.T) {
	pause := image{name: "localhost/pause:1", program: []byte("first program")}
	hello := image{name: "localhost/hello:1", program: []byte("second program")}
	tests := []struct {
		name   string
		images []image
	}{
		{"one image", []image{pause}},
		{"two images", []image{pause, hello}},
		{"a program longer than a tar block", []image{{name: "localhost/big:1", program: bytes.Repeat([]byte("x"), 1500)}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := writeArchive(&b, tt.images...); err != nil {
				t.Fatal(err)
			}
			files := untar(t, b.Bytes())
			var manifest []struct {
				Config           string
				RepoTags, Layers []string
			}
			decode(t, files["manifest.json"], &manifest)
			if got, want := len(manifest), len(tt.images); got != want {
				t.Fatalf("got %d images, want %d", got, want)
			}
			for i, img := range tt.images {
				m := manifest[i]
				if got, want := m.RepoTags, []string{img.name}; !slices.Equal(got, want) {
					t.Errorf("tags: got %q, want %q", got, want)
				}
				checkImage(t, img, m.Config, m.Layers, files)
			}
		})
	}
}

// checkImage checks what a container engine checks when it loads an image: that
// files have the digests that they are named after, and that the config has
// those of the layers.
func checkImage(t *testing.T, img image, config string, layers []string, files map[string]file) {
	t.Helper()
	if got, want := config, digest(files[config])+".json"; got != want {
		t.Errorf("config: got %q, want %q", got, want)
	}
	var c struct {
		OS     string `json:"os"`
		Config struct {
			User       string
			Entrypoint []string
		} `json:"config"`
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		} `json:"rootfs"`
	}
	decode(t, files[config], &c)
	if len(layers) != 1 {
		t.Fatalf("layers: got %q, want one", layers)
	}
	if got, want := c.RootFS.DiffIDs, []string{"sha256:" + digest(files[layers[0]])}; !slices.Equal(got, want) {
		t.Errorf("diff_ids: got %q, want %q", got, want)
	}
	if c.OS != "linux" || c.Config.User != "65534:65534" || len(c.Config.Entrypoint) != 1 {
		t.Fatalf("config: got %+v, want linux, user 65534:65534 and one word to run", c)
	}
	root := untar(t, files[layers[0]].content)
	program := root[strings.TrimPrefix(c.Config.Entrypoint[0], "/")]
	if !bytes.Equal(program.content, img.program) {
		t.Errorf("entry point %q: got %q, want %q", c.Config.Entrypoint, program.content, img.program)
	}
	if program.mode != 0o755 {
		t.Errorf("entry point %q: got mode %o, want 755", c.Config.Entrypoint, program.mode)
	}
}

func TestArchiveIsReproducible(t *testing.T) {
	var a, b bytes.Buffer
	for _, w := range []io.Writer{&a, &b} {
		if err := writeArchive(w, image{name: "localhost/x:1", program: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("two archives of the same program differ")
	}
}

func TestArchiveReportsWriteErrors(t *testing.T) {
	var whole bytes.Buffer
	img := image{name: "localhost/x:1", program: []byte("x")}
	if err := writeArchive(&whole, img); err != nil {
		t.Fatal(err)
	}
	for room := 0; room < whole.Len(); room += 512 {
		if err := writeArchive(&fullDisk{room: room}, img); !errors.Is(err, errFull) {
			t.Errorf("disk full after %d bytes: got %v, want %v", room, err, errFull)
		}
	}
}

var errFull = errors.New("disk full")

type fullDisk struct{ room int }

func (f *fullDisk) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

type file struct {
	mode    int64
	content []byte
}

func untar(t *testing.T, archive []byte) map[string]file {
	t.Helper()
	files := map[string]file{}
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = file{h.Mode, content}
	}
}

func decode(t *testing.T, f file, v any) {
	t.Helper()
	if err := json.Unmarshal(f.content, v); err != nil {
		t.Fatalf("%q: %v", f.content, err)
	}
}

func digest(f file) string { return fmt.Sprintf("%x", sha256.Sum256(f.content)) }
