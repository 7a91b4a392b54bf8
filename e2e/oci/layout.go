package oci

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// The media types of OCI's image specification 1.0, which every engine reads.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar"
)

// refName is the annotation that names an image of a layout.
const refName = "org.opencontainers.image.ref.name"

// Blob is a file of a layout, known by its content.
type Blob struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"` // "sha256:" and 64 hex digits
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Image is a container image. Its process is root: what the lab's own images do
// is the network of a node.
type Image struct {
	Name       string // with its tag, without a registry: "kube-proxy:v1.37.1"
	Layers     []Blob // of [Layout.Layer], the lowest first
	Entrypoint []string
}

// The documents of the image specification, as far as the lab's images need them.
type (
	index struct {
		SchemaVersion int    `json:"schemaVersion"`
		MediaType     string `json:"mediaType"`
		Manifests     []Blob `json:"manifests"`
	}
	manifest struct {
		SchemaVersion int    `json:"schemaVersion"`
		MediaType     string `json:"mediaType"`
		Config        Blob   `json:"config"`
		Layers        []Blob `json:"layers"`
	}
	config struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
		Config       runAs  `json:"config"`
		RootFS       rootFS `json:"rootfs"`
	}
	runAs struct {
		Env        []string
		Entrypoint []string
	}
	rootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
)

// Layout is a folder that images are written into.
type Layout struct {
	Dir string

	manifests []Blob
}

// Layer writes a layer: a tar, whose end Layer writes itself.
func (l *Layout) Layer(fill func(*tar.Writer) error) (Blob, error) {
	return l.write(typeLayer, func(w io.Writer) error {
		t := tar.NewWriter(w)
		if err := fill(t); err != nil {
			return err
		}
		return t.Close()
	})
}

// Add writes an image. Nobody finds it before [Layout.Close].
func (l *Layout) Add(img Image) error {
	c := config{Architecture: runtime.GOARCH, OS: "linux", RootFS: rootFS{Type: "layers"}}
	c.Config.Entrypoint = img.Entrypoint
	c.Config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, layer := range img.Layers {
		c.RootFS.DiffIDs = append(c.RootFS.DiffIDs, layer.Digest) // the same, as nothing is compressed
	}
	conf, err := l.writeJSON(typeConfig, c)
	if err != nil {
		return fmt.Errorf("image %q: %w", img.Name, err)
	}
	m, err := l.writeJSON(typeManifest, manifest{SchemaVersion: 2, MediaType: typeManifest, Config: conf, Layers: img.Layers})
	if err != nil {
		return fmt.Errorf("image %q: %w", img.Name, err)
	}
	m.Annotations = map[string]string{refName: img.Name}
	l.manifests = append(l.manifests, m)
	return nil
}

// Close writes the index, by which the images are found.
func (l *Layout) Close() error {
	if err := os.WriteFile(filepath.Join(l.Dir, "oci-layout"), []byte(`{"imageLayoutVersion": "1.0.0"}`), 0o644); err != nil {
		return err
	}
	text, err := json.Marshal(index{SchemaVersion: 2, MediaType: typeIndex, Manifests: l.manifests})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(l.Dir, "index.json"), text, 0o644)
}

func (l *Layout) writeJSON(mediaType string, v any) (Blob, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return Blob{}, err
	}
	return l.write(mediaType, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(text))
		return err
	})
}

// write writes a blob under the name that its content gives it.
func (l *Layout) write(mediaType string, fill func(io.Writer) error) (_ Blob, err error) {
	dir := filepath.Join(l.Dir, "blobs", "sha256")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Blob{}, err
	}
	f, err := os.CreateTemp(dir, ".new-")
	if err != nil {
		return Blob{}, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // what is wrong is said already
		}
	}()
	sum := sha256.New()
	err = fill(io.MultiWriter(f, sum))
	size, seekErr := f.Seek(0, io.SeekCurrent)
	for _, e := range []error{seekErr, f.Chmod(0o644), f.Close()} {
		if err == nil {
			err = e
		}
	}
	if err != nil {
		return Blob{}, err
	}
	digest := hex.EncodeToString(sum.Sum(nil))
	return Blob{MediaType: mediaType, Digest: "sha256:" + digest, Size: size}, os.Rename(f.Name(), filepath.Join(dir, digest))
}
