package oci

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// The media types of OCI's image specification 1.0, which every engine reads.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar"
)

// The annotations that name an image of a layout. containerd reads its own first, and
// takes a name in the other one for a tag.
const (
	refName        = "org.opencontainers.image.ref.name"
	containerdName = "io.containerd.image.name"
)

// Blob is a file of a layout, known by its content.
type Blob struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"` // "sha256:" and 64 hex digits
	Size        int64             `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// platform is what an image of an index runs on.
type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// Image is a container image.
type Image struct {
	// Name has the tag. Without a registry it is for [Registry]: "kube-proxy:v1.37.1";
	// with one it is the name under which an [Archive] is imported: "localhost/etcd:lab".
	Name       string
	Layers     []Blob // of [Layout.Layer], the lowest first
	Entrypoint []string
	Cmd        []string // arguments of the entrypoint, unless others are given
	User       string   // "65532:65532"; default root
	Arch       string   // default this host's
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
		User       string `json:",omitempty"`
		Env        []string
		Entrypoint []string
		Cmd        []string `json:",omitempty"`
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
	m, err := l.manifest(img)
	if err == nil {
		l.name(img.Name, m)
	}
	return err
}

// AddIndex writes an image for several architectures. The names of the images are not
// used.
func (l *Layout) AddIndex(name string, images ...Image) error {
	all := index{SchemaVersion: 2, MediaType: typeIndex}
	for _, img := range images {
		m, err := l.manifest(img)
		if err != nil {
			return err
		}
		m.Platform = &platform{Architecture: img.arch(), OS: "linux"}
		all.Manifests = append(all.Manifests, m)
	}
	m, err := l.writeJSON(typeIndex, all)
	if err != nil {
		return fmt.Errorf("image %q: %w", name, err)
	}
	l.name(name, m)
	return nil
}

// AddAbove writes an image of more layers above those of the only image of another layout,
// whose files it links.
func (l *Layout) AddAbove(name, base string, layers ...Blob) error {
	var (
		found index
		m     manifest
		c     config
	)
	err := readJSON(filepath.Join(base, "index.json"), &found)
	if err == nil && len(found.Manifests) != 1 {
		err = fmt.Errorf("%s: %d images, want one", base, len(found.Manifests))
	}
	if err == nil {
		err = readJSON(blobPath(base, found.Manifests[0]), &m)
	}
	if err == nil {
		err = readJSON(blobPath(base, m.Config), &c)
	}
	if err != nil {
		return fmt.Errorf("image %q: %w", name, err)
	}
	for _, layer := range m.Layers {
		if err := os.Link(blobPath(base, layer), blobPath(l.Dir, layer)); err != nil {
			return fmt.Errorf("image %q: %w", name, err)
		}
	}
	for _, layer := range layers {
		m.Layers, c.RootFS.DiffIDs = append(m.Layers, layer), append(c.RootFS.DiffIDs, layer.Digest)
	}
	if m.Config, err = l.writeJSON(typeConfig, c); err != nil {
		return fmt.Errorf("image %q: %w", name, err)
	}
	made, err := l.writeJSON(typeManifest, manifest{SchemaVersion: 2, MediaType: typeManifest, Config: m.Config, Layers: m.Layers})
	if err != nil {
		return fmt.Errorf("image %q: %w", name, err)
	}
	l.name(name, made)
	return nil
}

// blobPath returns the file of a blob in the layout of a folder.
func blobPath(dir string, b Blob) string {
	return filepath.Join(dir, "blobs", "sha256", strings.TrimPrefix(b.Digest, "sha256:"))
}

func readJSON(file string, v any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// name adds a manifest, or an index, to the layout.
func (l *Layout) name(name string, m Blob) {
	m.Annotations = map[string]string{refName: name}
	if strings.Contains(name, "/") {
		m.Annotations[containerdName] = name
	}
	l.manifests = append(l.manifests, m)
}

func (img Image) arch() string { return cmp.Or(img.Arch, runtime.GOARCH) }

// manifest writes the manifest and the config of an image.
func (l *Layout) manifest(img Image) (Blob, error) {
	c := config{Architecture: img.arch(), OS: "linux", RootFS: rootFS{Type: "layers"}}
	c.Config.User, c.Config.Entrypoint, c.Config.Cmd = img.User, img.Entrypoint, img.Cmd
	c.Config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, layer := range img.Layers {
		c.RootFS.DiffIDs = append(c.RootFS.DiffIDs, layer.Digest) // the same, as nothing is compressed
	}
	conf, err := l.writeJSON(typeConfig, c)
	if err != nil {
		return Blob{}, fmt.Errorf("image %q: %w", img.Name, err)
	}
	m, err := l.writeJSON(typeManifest, manifest{SchemaVersion: 2, MediaType: typeManifest, Config: conf, Layers: img.Layers})
	if err != nil {
		return Blob{}, fmt.Errorf("image %q: %w", img.Name, err)
	}
	return m, nil
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
