package oci_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"drover/deploy/oci"
)

// layer returns what fills a layer with one file.
func layer(name, content string) func(*tar.Writer) error {
	return func(t *tar.Writer) error {
		if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err := io.WriteString(t, content)
		return err
	}
}

// layout writes two images that share a layer.
func layout(t *testing.T) string {
	t.Helper()
	l := oci.Layout{Dir: t.TempDir()}
	base, err := l.Layer(layer("bin/sh", "shell"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		top, err := l.Layer(layer(name, strings.Repeat(name, 1000)))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Add(oci.Image{Name: name + ":v1", Layers: []oci.Blob{base, top}, Entrypoint: []string{"/" + name}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Dir
}

// get asks the registry and returns the answer's body.
func get(t *testing.T, h http.Handler, method, path string, status int) (*http.Response, []byte) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, http.NoBody))
	if w.Code != status {
		t.Fatalf("%s %s: got %d %s, want %d", method, path, w.Code, w.Body, status)
	}
	return w.Result(), w.Body.Bytes()
}

// TestPull goes the way of a container engine.
func TestPull(t *testing.T) {
	h := oci.Registry(layout(t))
	get(t, h, "GET", "/v2/", http.StatusOK)
	for _, name := range []string{"one", "two"} {
		head, _ := get(t, h, "HEAD", "/v2/"+name+"/manifests/v1", http.StatusOK)
		answer, text := get(t, h, "GET", "/v2/"+name+"/manifests/v1", http.StatusOK)
		digest := fmt.Sprintf("sha256:%x", sha256.Sum256(text))
		for _, h := range []http.Header{head.Header, answer.Header} {
			if got := h.Get("Docker-Content-Digest"); got != digest {
				t.Errorf("%s: the manifest is said to be %q, want %q", name, got, digest)
			}
			if got, want := h.Get("Content-Type"), "application/vnd.oci.image.manifest.v1+json"; got != want {
				t.Errorf("%s: got type %q, want %q", name, got, want)
			}
		}
		if _, again := get(t, h, "GET", "/v2/"+name+"/manifests/"+digest, http.StatusOK); !bytes.Equal(again, text) {
			t.Errorf("%s: by digest it is another manifest", name)
		}
		var m struct {
			Config oci.Blob
			Layers []oci.Blob
		}
		decode(t, text, &m)
		if len(m.Layers) != 2 {
			t.Fatalf("%s: got %d layers, want 2", name, len(m.Layers))
		}
		for _, b := range append(m.Layers, m.Config) {
			if got := pull(t, h, name, b); int64(len(got)) != b.Size {
				t.Errorf("%s: blob %s has %d bytes, want %d", name, b.Digest, len(got), b.Size)
			}
		}
		checkConfig(t, name, pull(t, h, name, m.Config), m.Layers)
		r := tar.NewReader(bytes.NewReader(pull(t, h, name, m.Layers[1])))
		if file, err := r.Next(); err != nil || file.Name != name || file.Mode != 0o755 {
			t.Errorf("%s: the upper layer has %+v, %v", name, file, err)
		}
	}
}

func checkConfig(t *testing.T, name string, text []byte, layers []oci.Blob) {
	t.Helper()
	var c struct {
		OS     string
		Config struct{ Entrypoint []string }
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	decode(t, text, &c)
	want := []string{layers[0].Digest, layers[1].Digest}
	if fmt.Sprint(c.RootFS.DiffIDs) != fmt.Sprint(want) || c.OS != "linux" || fmt.Sprint(c.Config.Entrypoint) != "[/"+name+"]" {
		t.Errorf("%s: got config %s, want linux, /%s and the layers %v", name, text, name, want)
	}
}

// TestMirror: an image that a layout has under the name of its registry is found by
// containerd, which asks a mirror without that name, and says in ns what it has left out.
func TestMirror(t *testing.T) {
	l := oci.Layout{Dir: t.TempDir()}
	blob, err := l.Layer(layer("agent", "agent"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Add(oci.Image{Name: "registry.example/group/agent:v1", Layers: []oci.Blob{blob}}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	h := oci.Registry(layout(t), l.Dir)
	get(t, h, "GET", "/v2/group/agent/manifests/v1?ns=registry.example", http.StatusOK)
	get(t, h, "GET", "/v2/one/manifests/v1?ns=registry.example", http.StatusOK) // of no registry: of any
	get(t, h, "GET", "/v2/group/agent/manifests/v1?ns=other.example", http.StatusNotFound)
	get(t, h, "GET", "/v2/group/agent/manifests/v1", http.StatusNotFound)
	if got := pull(t, h, "group/agent", blob); int64(len(got)) != blob.Size {
		t.Errorf("the layer has %d bytes, want %d", len(got), blob.Size)
	}
}

// pull fetches a blob and checks it against its digest.
func pull(t *testing.T, h http.Handler, name string, b oci.Blob) []byte {
	t.Helper()
	_, content := get(t, h, "GET", "/v2/"+name+"/blobs/"+b.Digest, http.StatusOK)
	if got := fmt.Sprintf("sha256:%x", sha256.Sum256(content)); got != b.Digest {
		t.Errorf("%s: got blob %s, want %s", name, got, b.Digest)
	}
	return content
}

func TestRegistryRefuses(t *testing.T) {
	h := oci.Registry(layout(t))
	none := "sha256:" + strings.Repeat("0", 64)
	for path, code := range map[string]string{
		"/v2/three/manifests/v1":                         "MANIFEST_UNKNOWN",
		"/v2/one/manifests/v2":                           "MANIFEST_UNKNOWN",
		"/v2/one/manifests/" + none:                      "MANIFEST_UNKNOWN",
		"/v2/one/blobs/" + none:                          "BLOB_UNKNOWN",
		"/v2/one/blobs/sha256:..%2F..%2F..%2Findex.json": "DIGEST_INVALID",
		"/v2/one/blobs/index.json":                       "DIGEST_INVALID",
	} {
		_, body := get(t, h, "GET", path, http.StatusNotFound)
		var answer struct{ Errors []struct{ Code string } }
		decode(t, body, &answer)
		if len(answer.Errors) != 1 || answer.Errors[0].Code != code {
			t.Errorf("%s: got %s, want %s", path, body, code)
		}
	}
	get(t, h, "PUT", "/v2/one/manifests/v2", http.StatusMethodNotAllowed)
}

func TestLayerThatFailsLeavesNothing(t *testing.T) {
	l := oci.Layout{Dir: t.TempDir()}
	broken := errors.New("broken")
	if _, err := l.Layer(func(*tar.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	good, err := l.Layer(layer("x", "x"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := l.Layer(layer("x", "x"))
	if err != nil || again.Digest != good.Digest {
		t.Errorf("the same layer again: got %v, %v, want %v", again, err, good)
	}
	entries, err := os.ReadDir(l.Dir + "/blobs/sha256")
	if err != nil || len(entries) != 1 {
		t.Errorf("got blobs %v, %v, want one", entries, err)
	}
}

func decode(t *testing.T, text []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}
