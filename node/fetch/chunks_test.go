package fetch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/imagebuild/manifest"
	"drover/node/client"
)

// chunked gives a fetcher the digests of the chunks of its file.
func (f *fetchTest) chunked() {
	f.Chunks = Chunks{Total: int64(len(f.server.content)), Size: manifest.ChunkSize}
	for b := f.server.content; len(b) > 0; b = b[min(len(b), manifest.ChunkSize):] {
		f.Chunks.SHA256 = append(f.Chunks.SHA256, sha256.Sum256(b[:min(len(b), manifest.ChunkSize)]))
	}
}

// flipped answers with the file, in which one bit is wrong.
func (f *fetchTest) flipped(at int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		bad := bytes.Clone(f.server.content)
		bad[at] ^= 1
		f.server.serve(w, r, bad, f.server.etag)
	}
}

// TestFetchChunk: only the chunk that was wrong comes again, and what follows it.
func TestFetchChunk(t *testing.T) {
	const mb = manifest.ChunkSize
	for name, test := range map[string]struct {
		at     int
		ranges []string
		said   string
	}{
		"the first byte":        {0, []string{"", ""}, "chunk 1 of 3, bytes 0 to 1048575, came with sha256 "},
		"the last of a chunk":   {mb - 1, []string{"", ""}, "chunk 1 of 3, bytes 0 to 1048575, came with sha256 "},
		"the first of the next": {mb, []string{"", "bytes=1048576-"}, "chunk 2 of 3, bytes 1048576 to 2097151, came with sha256 "},
		"the last byte":         {imageSize - 1, []string{"", "bytes=2097152-"}, "chunk 3 of 3, bytes 2097152 to 3145727, came with sha256 "},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFetchTest(t)
			f.chunked()
			f.server.odd = map[int]http.HandlerFunc{1: f.flipped(test.at)}
			f.good(t, test.ranges...)
			fixture.WantText(t, "errors", f.said.String(), test.said, "fetching it anew")
		})
	}
}

// TestFetchShortChunk: the last chunk may be shorter, and a cut connection in the middle
// of a chunk resumes there.
func TestFetchShortChunk(t *testing.T) {
	f := newFetchTest(t)
	f.server.content = f.server.content[:2*manifest.ChunkSize+1000]
	f.chunked()
	f.server.odd = map[int]http.HandlerFunc{1: f.server.part(manifest.ChunkSize+10, false), 2: f.flipped(len(f.server.content) - 1)}
	n, err := f.Fetch(t.Context(), f.path)
	if err != nil || n != int64(len(f.server.content)) || fixture.ReadFile(t, f.path) != string(f.server.content) {
		t.Fatalf("got %d bytes, %v", n, err)
	}
	if got, want := fmt.Sprint(f.server.ranges), "[ bytes=1048586- bytes=2097152-]"; got != want {
		t.Errorf("ranges asked for: got %s, want %s", got, want)
	}
	fixture.WantText(t, "errors", f.said.String(), "chunk 3 of 3, bytes 2097152 to 2098151, came")
}

// TestFetchChunkAgainAndAgain: a chunk that stays wrong is asked for with longer waits.
func TestFetchChunkAgainAndAgain(t *testing.T) {
	f := newFetchTest(t)
	f.chunked()
	f.Retry.Backoff.Rand = func() float64 { return 0 }
	f.server.odd = map[int]http.HandlerFunc{}
	for i := range 4 {
		f.server.odd[i+1] = f.flipped(manifest.ChunkSize)
	}
	again := "bytes=1048576-"
	f.good(t, "", again, again, again, again)
	if f.waits[3] <= f.waits[1] {
		t.Errorf("waits are %v, want them to grow", f.waits)
	}
}

// TestFetchOtherSize: chunks say how large the file is.
func TestFetchOtherSize(t *testing.T) {
	for name, content := range map[string][]byte{"larger": make([]byte, imageSize+5<<20), "smaller": make([]byte, 10), "empty": {}} {
		t.Run(name, func(t *testing.T) {
			f := newFetchTest(t)
			f.chunked()
			f.server.odd = map[int]http.HandlerFunc{1: func(w http.ResponseWriter, r *http.Request) { f.server.serve(w, r, content, `"v0"`) }}
			f.good(t, "", "")
			fixture.WantText(t, "errors", f.said.String(), fmt.Sprintf("server sends a file of %d bytes, want %d", len(content), imageSize))
		})
	}
}

// TestFetchChunkByTFTP: TFTP cannot resume, but a wrong chunk ends it at once.
func TestFetchChunkByTFTP(t *testing.T) {
	f, s := newFetchTest(t), &tftpServer{}
	f.chunked()
	blocked(t, f)
	damaged := bytes.Clone(f.server.content)
	damaged[manifest.ChunkSize] ^= 1
	s.bad = map[int][]byte{2: damaged} // the first request only finds out that the server answers
	f.TFTP, f.Name = s.serve(t, f.server.content), "images/x/root.squashfs"
	f.check(t)
	fixture.WantText(t, "errors", f.said.String(), "by TFTP: chunk 2 of 3, bytes 1048576 to 2097151, came with sha256 ")
}

// image returns a manifest of a fetcher's file, and the ID of its image.
func (f *fetchTest) image() (m *manifest.Manifest, id string) {
	f.chunked()
	file := manifest.File{Size: int64(len(f.server.content)), SHA256: hex.EncodeToString(f.Digest[:])}
	m = &manifest.Manifest{Name: "x", Platform: "linux/amd64", KernelVersion: "6.1",
		Files:  map[string]manifest.File{manifest.Kernel: file, manifest.Initrd: file, manifest.Squashfs: file},
		Chunks: &manifest.Chunks{Size: manifest.ChunkSize}}
	for _, sum := range f.Chunks.SHA256 {
		m.Chunks.SHA256 = append(m.Chunks.SHA256, hex.EncodeToString(sum[:]))
	}
	return m, m.ID()
}

func TestReadChunks(t *testing.T) {
	for name, test := range map[string]struct {
		change func(m *manifest.Manifest)
		want   string // error
	}{
		"good":              {func(*manifest.Manifest) {}, ""},
		"another name":      {func(m *manifest.Manifest) { m.Name = "y" }, ""},
		"another chunk":     {func(m *manifest.Manifest) { m.Chunks.SHA256[1] = m.Chunks.SHA256[0] }, "manifest.json describes image "},
		"chunks taken away": {func(m *manifest.Manifest) { m.Chunks = nil }, "manifest.json describes image "},
		"a chunk too few":   {func(m *manifest.Manifest) { m.Chunks.SHA256 = m.Chunks.SHA256[1:] }, "2 chunks, but root.squashfs has 3"},
		"large":             {func(m *manifest.Manifest) { m.Source = strings.Repeat("x", manifest.MaxSize) }, "manifest.json has more than 4194304 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFetchTest(t)
			m, id := f.image()
			test.change(m)
			b, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			got, err := readChunks(t, f, id, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(b) })
			switch {
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got error %v, want %q", err, test.want)
			case test.want == "" && (err != nil || fmt.Sprint(got) != fmt.Sprint(f.Chunks)):
				t.Errorf("got %v, %v, want %v", got, err, f.Chunks)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		f := newFetchTest(t)
		_, id := f.image()
		if _, err := readChunks(t, f, id, http.NotFound); err == nil || !strings.Contains(err.Error(), "404") {
			t.Errorf("got error %v, want 404", err)
		}
	})
	t.Run("without digests", func(t *testing.T) {
		f := newFetchTest(t)
		m, _ := f.image()
		m.Chunks = nil
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = readChunks(t, f, m.ID(), func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(b) })
		if err == nil || err.Error() != "manifest.json has no digests of chunks" {
			t.Errorf("got error %v", err)
		}
	})
	t.Run("of another squashfs", func(t *testing.T) {
		f := newFetchTest(t)
		m, id := f.image()
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		f.Digest[0] ^= 1
		_, err = readChunks(t, f, id, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(b) })
		if err == nil || !strings.Contains(err.Error(), "has root.squashfs with sha256") {
			t.Errorf("got error %v", err)
		}
	})
}

// readChunks reads the chunks of an image from a server whose manifest is answer.
func readChunks(t *testing.T, f *fetchTest, id string, answer http.HandlerFunc) (Chunks, error) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /images/x/"+id+"/manifest.json", answer)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	web := client.NewHTTP(nil)
	t.Cleanup(web.CloseIdleConnections)
	return ReadChunks(t.Context(), web, s.URL+"/images/x/"+id+"/root.squashfs", f.Digest)
}

// FuzzParseChunks: a manifest from the network gives chunks of its image, or an error.
func FuzzParseChunks(f *testing.F) {
	digest := sha256.Sum256([]byte("root"))
	id := strings.Repeat("0", 64)
	f.Add([]byte(`{"files":{},"chunks":{"size":1048576,"sha256":[]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := parseChunks(b, id, digest); err == nil {
			t.Errorf("%q: got %v for an image that nobody made", b, c)
		}
	})
}
