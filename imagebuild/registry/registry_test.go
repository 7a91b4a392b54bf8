package registry_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"drover/e2e/fixture"
	"drover/imagebuild/layer"
	"drover/imagebuild/oci"
	"drover/imagebuild/registry"
)

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	indexType    = "application/vnd.oci.image.index.v1+json"
)

var amd64 = oci.Platform{OS: "linux", Architecture: "amd64"}

// hub is a registry with one image of one layer, rack/node:7.
type hub struct {
	*httptest.Server
	manifest, index, layer string // digests

	mu    sync.Mutex
	blobs map[string][]byte           // by digest
	types map[string]string           // of manifests, by digest
	odd   map[string]http.HandlerFunc // by digest: what is answered instead
	tag   string                      // the digest of the manifest or index with the tag
	guard bool                        // without a password nothing is answered
	seen  []*http.Request
}

func newHub(t *testing.T) *hub {
	t.Helper()
	// No credentials of whoever runs the test.
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	h := &hub{blobs: map[string][]byte{}, types: map[string]string{}, odd: map[string]http.HandlerFunc{}}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	t.Cleanup(h.CloseClientConnections) // before Close: a hostile answer has no end
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Name: "a", Typeflag: tar.TypeReg, Mode: 0o644, Size: 1})
	if err == nil {
		_, err = w.Write([]byte("1"))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	h.layer = h.add("", b.Bytes())
	h.manifest = h.image(t, "amd64", int64(b.Len()))
	h.index = h.json(t, indexType, map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": []any{
		map[string]any{"mediaType": manifestType, "digest": h.manifest, "size": len(h.blobs[h.manifest]), "platform": amd64},
	}})
	h.tag = h.manifest
	return h
}

// image adds a manifest of the layer, with the size that it announces.
func (h *hub) image(t *testing.T, arch string, size int64) string {
	t.Helper()
	config := h.json(t, "", map[string]any{"os": "linux", "architecture": arch, "rootfs": map[string]any{"type": "layers", "diff_ids": []string{h.layer}}})
	return h.json(t, manifestType, map[string]any{"schemaVersion": 2, "mediaType": manifestType,
		"config": map[string]any{"mediaType": "application/vnd.oci.image.config.v1+json", "digest": config, "size": len(h.blobs[config])},
		"layers": []any{map[string]any{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": h.layer, "size": size}},
	})
}

func (h *hub) json(t *testing.T, mediaType string, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return h.add(mediaType, b)
}

// add adds a blob, or a manifest if it has a type, and returns its digest.
func (h *hub) add(mediaType string, content []byte) string {
	sum := sha256.Sum256(content)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	h.blobs[digest], h.types[digest] = content, mediaType
	return digest
}

// node returns the reference of the image with a suffix: ":7", or "@" and a digest.
func (h *hub) node(suffix string) string {
	return strings.TrimPrefix(h.URL, "http://") + "/rack/node" + suffix
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, r)
	if _, _, ok := r.BasicAuth(); h.guard && !ok {
		w.Header().Set("WWW-Authenticate", `Basic realm="rack"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	kind, digest := "", ""
	if rest, ok := strings.CutPrefix(r.URL.Path, "/v2/rack/node/"); ok {
		kind, digest, _ = strings.Cut(rest, "/")
	}
	if digest == "7" {
		digest = h.tag
	}
	content, ok := h.blobs[digest]
	switch {
	case r.URL.Path == "/v2/":
	case !ok || (kind == "manifests") != (h.types[digest] != ""):
		http.NotFound(w, r)
	default:
		if kind == "manifests" {
			w.Header().Set("Content-Type", h.types[digest])
			w.Header().Set("Docker-Content-Digest", digest)
		}
		if odd := h.odd[digest]; odd != nil {
			odd(w, r)
			return
		}
		_, _ = w.Write(content)
	}
}

// requests returns those since the last call.
func (h *hub) requests() []*http.Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer func() { h.seen = nil }()
	return h.seen
}

// text answers with a text.
func text(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) }
}

// endless answers with a beginning that is followed by spaces until the client goes.
func endless(begin []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write(begin)
		for spaces := bytes.Repeat([]byte(" "), 64<<10); err == nil; {
			_, err = w.Write(spaces)
		}
	}
}

// read opens an image and reads its layers. It returns the names in them.
func read(ctx context.Context, t *testing.T, ref string) (names []string, err error) {
	t.Helper()
	source, err := registry.Open(ctx, ref, amd64)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	spool, err := layer.NewSpool(t.TempDir(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer spool.Close()
	for _, l := range source.Layers {
		list, err := l.Read(ctx, &layer.Reader{Spool: spool}, func(int64) {})
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			names = append(names, strings.Join(e.Path, "/"))
		}
	}
	return names, nil
}

// TestOpen: an image is found by tag and by digest, directly and in an index, and the registry
// is only read.
func TestOpen(t *testing.T) {
	h := newHub(t)
	for _, tagged := range []string{h.manifest, h.index} {
		h.tag = tagged
		for _, suffix := range []string{":7", "@" + h.manifest, "@" + h.index} {
			if names, err := read(t.Context(), t, h.node(suffix)); err != nil || strings.Join(names, " ") != "a" {
				t.Errorf("%s: got files %q, %v, want a", suffix, names, err)
			}
		}
		source, err := registry.Open(t.Context(), h.node(":7"), amd64)
		if err != nil || source.Digest != h.manifest {
			t.Errorf("got %+v, %v, want digest %s", source, err, h.manifest)
		}
	}
	for _, r := range h.requests() {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			t.Errorf("%s %s: it writes to the registry", r.Method, r.URL)
		}
	}
}

// TestRefused: whatever a registry answers, it cannot pass on another image than the one that
// was asked for, and an answer without end has an end.
func TestRefused(t *testing.T) {
	other := `{"schemaVersion":2,"mediaType":"` + manifestType + `","config":{},"layers":[]}`
	for name, tt := range map[string]struct {
		suffix string
		change func(t *testing.T, h *hub)
		want   string
	}{
		"another manifest for the digest": {"@MANIFEST", func(_ *testing.T, h *hub) { h.odd[h.manifest] = text(other) }, "digest"},
		"another manifest in the index":   {"@INDEX", func(_ *testing.T, h *hub) { h.odd[h.manifest] = text(other) }, "digest"},
		"no JSON":                         {":7", func(_ *testing.T, h *hub) { h.tag = h.add(manifestType, []byte("{")) }, "unexpected end of JSON"},
		"an empty manifest":               {":7", func(_ *testing.T, h *hub) { h.tag = h.add(manifestType, []byte("{}")) }, "neither an image index nor an image manifest"},
		"a manifest without end":          {":7", func(_ *testing.T, h *hub) { h.odd[h.manifest] = endless(h.blobs[h.manifest]) }, ""},
		"a huge manifest": {":7", func(_ *testing.T, h *hub) {
			h.odd[h.manifest] = func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "5000000000") }
		}, "the registry's manifest has 5000000000 bytes, more than 4194304"},
		"another layer":               {":7", func(_ *testing.T, h *hub) { h.odd[h.layer] = text(strings.Repeat("x", len(h.blobs[h.layer]))) }, "sha256"},
		"half of the layer":           {":7", func(_ *testing.T, h *hub) { h.odd[h.layer] = text(string(h.blobs[h.layer][:600])) }, "sha256"},
		"a layer and more":            {":7", func(_ *testing.T, h *hub) { h.odd[h.layer] = text(string(h.blobs[h.layer]) + " ") }, "sha256"},
		"a layer without end":         {":7", func(_ *testing.T, h *hub) { h.odd[h.layer] = endless(h.blobs[h.layer]) }, "sha256"},
		"a layer larger than it says": {":7", func(t *testing.T, h *hub) { h.tag = h.image(t, "amd64", 600) }, "sha256"},
		"a layer of negative size":    {":7", func(t *testing.T, h *hub) { h.tag = h.image(t, "amd64", -1) }, ""},
		"no such layer":               {":7", func(_ *testing.T, h *hub) { delete(h.blobs, h.layer) }, "404"},
		"another architecture":        {":7", func(t *testing.T, h *hub) { h.tag = h.image(t, "arm64", 1) }, "the image is for linux/arm64"},
		"no such tag":                 {":8", func(*testing.T, *hub) {}, "404"},
		"no name":                     {":", func(*testing.T, *hub) {}, "could not parse reference"},
		"a path as a digest":          {"@sha256:../../../etc", func(*testing.T, *hub) {}, "could not parse reference"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			tt.change(t, h)
			suffix := strings.NewReplacer("MANIFEST", h.manifest, "INDEX", h.index).Replace(tt.suffix)
			names, err := read(t.Context(), t, h.node(suffix))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got files %q and error %v, want one with %q", names, err, tt.want)
			}
		})
	}
}

// TestCredentials: a password goes to the registry that it is for, and to no other.
func TestCredentials(t *testing.T) {
	h := newHub(t)
	h.guard = true
	secret := base64.StdEncoding.EncodeToString([]byte("user:secret"))
	for host, ours := range map[string]bool{strings.TrimPrefix(h.URL, "http://"): true, "registry.example.com": false} {
		config := fixture.Tree(t, map[string]string{"config.json": `{"auths":{"` + host + `":{"auth":"` + secret + `"}}}`})
		t.Setenv("DOCKER_CONFIG", config)
		names, err := read(t.Context(), t, h.node(":7"))
		if (err == nil) != ours {
			t.Errorf("password of %s: got files %q, %v", host, names, err)
		}
		for _, r := range h.requests() {
			if user, password, ok := r.BasicAuth(); ok && (!ours || user != "user" || password != "secret") {
				t.Errorf("password of %s: the registry got %q and %q", host, user, password)
			}
		}
	}
}

// TestCancelled: a registry that never answers holds nothing longer than its context.
func TestCancelled(t *testing.T) {
	h := newHub(t)
	ctx, cancel := context.WithCancel(t.Context())
	h.odd[h.layer] = func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(h.blobs[h.layer][:100])
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	}
	if names, err := read(ctx, t, h.node(":7")); !errors.Is(err, context.Canceled) {
		t.Errorf("got files %q and error %v, want %v", names, err, context.Canceled)
	}
}
