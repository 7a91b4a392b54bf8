package buildcache

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
)

// image is a container image of one static program.
type image struct {
	name    string // "localhost/pause:1", tag included
	program []byte // the file that it runs
}

// unprivileged is the user that the programs run as: "nobody", by number,
// because the images have no /etc/passwd.
const unprivileged = "65534:65534"

// The parts of a docker archive, as "docker save" writes it and containerd,
// buildah and skopeo read it: layers as tars, a config for each image that names
// its layers by digest, and manifest.json that names the configs.
type (
	archiveManifest struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	archiveConfig struct {
		Architecture string          `json:"architecture"`
		OS           string          `json:"os"`
		Created      string          `json:"created"`
		Config       archiveRunAs    `json:"config"`
		RootFS       archiveRootFS   `json:"rootfs"`
		History      []archiveChange `json:"history"`
	}
	archiveRunAs struct {
		User       string
		Entrypoint []string
	}
	archiveRootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
	archiveChange struct {
		Created string `json:"created"`
	}
)

// epoch stands for all times, so that equal programs give equal archives.
const epoch = "1970-01-01T00:00:00Z"

// writeArchive writes a docker archive of one or more images.
func writeArchive(w io.Writer, images ...image) error {
	t := tar.NewWriter(w)
	var manifest []archiveManifest
	for _, img := range images {
		m, err := writeImage(t, img)
		if err != nil {
			return fmt.Errorf("image %q: %w", img.name, err)
		}
		manifest = append(manifest, m)
	}
	content, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	if err := writeFile(t, "manifest.json", 0o644, content); err != nil {
		return err
	}
	return t.Close()
}

// writeImage writes the layer and the config of one image.
func writeImage(t *tar.Writer, img image) (archiveManifest, error) {
	const program = "app"
	var layer bytes.Buffer
	l := tar.NewWriter(&layer)
	if err := writeFile(l, program, 0o755, img.program); err != nil {
		return archiveManifest{}, err
	}
	if err := l.Close(); err != nil {
		return archiveManifest{}, err
	}
	digest := hexDigest(layer.Bytes())
	config, err := json.Marshal(archiveConfig{
		Architecture: runtime.GOARCH,
		OS:           "linux",
		Created:      epoch,
		Config:       archiveRunAs{User: unprivileged, Entrypoint: []string{"/" + program}},
		RootFS:       archiveRootFS{Type: "layers", DiffIDs: []string{"sha256:" + digest}},
		History:      []archiveChange{{Created: epoch}},
	})
	if err != nil {
		return archiveManifest{}, err
	}
	m := archiveManifest{
		Config:   hexDigest(config) + ".json",
		RepoTags: []string{img.name},
		Layers:   []string{digest + "/layer.tar"},
	}
	if err := writeFile(t, m.Config, 0o644, config); err != nil {
		return archiveManifest{}, err
	}
	return m, writeFile(t, m.Layers[0], 0o644, layer.Bytes())
}

func writeFile(t *tar.Writer, name string, mode int64, content []byte) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), Format: tar.FormatUSTAR}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err := t.Write(content)
	return err
}

func hexDigest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
