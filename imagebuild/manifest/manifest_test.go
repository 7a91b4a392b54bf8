package manifest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"drover/imagebuild/manifest"
)

// good returns a manifest of an image whose squashfs has three chunks.
func good() manifest.Manifest {
	digest := strings.Repeat("0123456789abcdef", 4)
	file := manifest.File{Size: 2*manifest.ChunkSize + 1, SHA256: digest}
	return manifest.Manifest{
		Name: "debian-12", Platform: "linux/amd64", KernelVersion: "6.1",
		Files:  map[string]manifest.File{manifest.Kernel: file, manifest.Initrd: file, manifest.Squashfs: file},
		Chunks: &manifest.Chunks{Size: manifest.ChunkSize, SHA256: []string{digest, digest, digest}},
	}
}

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*manifest.Manifest)
		want   string // error
	}{
		"good":               {func(*manifest.Manifest) {}, ""},
		"without chunks":     {func(m *manifest.Manifest) { m.Chunks = nil }, ""},
		"too few chunks":     {func(m *manifest.Manifest) { m.Chunks.SHA256 = m.Chunks.SHA256[:2] }, "2 chunks, but root.squashfs has 3"},
		"too many chunks":    {func(m *manifest.Manifest) { m.Chunks.SHA256 = append(m.Chunks.SHA256, "") }, "4 chunks, but root.squashfs has 3"},
		"small chunks":       {func(m *manifest.Manifest) { m.Chunks.Size = 1 }, "chunks of 1 bytes, want 1048576"},
		"no size of a chunk": {func(m *manifest.Manifest) { m.Chunks.Size = 0 }, "chunks of 0 bytes"},
		"no digest":          {func(m *manifest.Manifest) { m.Chunks.SHA256[1] = "12" }, "digest of chunk 2 is malformed"},
		"no squashfs":        {func(m *manifest.Manifest) { delete(m.Files, manifest.Squashfs) }, "lists no root.squashfs"},
		"negative size":      {func(m *manifest.Manifest) { m.Files[manifest.Kernel] = manifest.File{Size: -1} }, "size or digest of kernel is malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			m := good()
			test.change(&m)
			b, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			got, err := manifest.Parse(b)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got error %v", err)
			case test.want == "" && got.ID() != m.ID():
				t.Errorf("ID is %s, want %s", got.ID(), m.ID())
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}

// TestIDHasChunks: a node that knows the ID can trust the digests of the chunks.
func TestIDHasChunks(t *testing.T) {
	m := good()
	ids := map[string]bool{m.ID(): true}
	other := strings.Repeat("f", 64)
	m.Chunks.SHA256[2] = other
	ids[m.ID()] = true
	m.Chunks.SHA256[1], m.Chunks.SHA256[2] = other, m.Chunks.SHA256[1]
	ids[m.ID()] = true
	m.Chunks = nil
	ids[m.ID()] = true
	if len(ids) != 4 {
		t.Errorf("four manifests have %d IDs", len(ids))
	}
}
