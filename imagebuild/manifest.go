package imagebuild

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"time"
)

// The files of an image.
const (
	KernelFile   = "kernel"
	InitrdFile   = "initrd"
	SquashfsFile = "root.squashfs"
	ManifestFile = "manifest.json"
)

// Manifest describes the contents of an image and their source.
type Manifest struct {
	Name          string            `json:"name"`
	Created       time.Time         `json:"created"`                // when it was built
	Source        string            `json:"source"`                 // as the operator wrote it
	SourceDigest  string            `json:"sourceDigest,omitempty"` // of the OCI image manifest
	KernelVersion string            `json:"kernelVersion"`
	Platform      string            `json:"platform"`            // linux/amd64
	Level         int               `json:"level"`               // of zstd in the squashfs
	InitrdKey     string            `json:"initrdKey,omitempty"` // of the initrd's contents: equal keys, equal initrds
	Files         map[string]File   `json:"files"`               // kernel, initrd and root.squashfs
	Tools         map[string]string `json:"tools"`               // the programs that built it, name → version
}

// File is one file of an image.
type File struct {
	Size   int64  `json:"size"`   // bytes
	SHA256 string `json:"sha256"` // 64 hex digits
}

// ID returns the identity of the image: a SHA-256 in hex over the platform, the kernel's
// version and the files, but not over name, time, source or tools. Equal contents have
// equal IDs.
func (m *Manifest) ID() string {
	h := sha256.New()
	fmt.Fprintf(h, "drover image 1\nplatform %q\nkernel %q\n", m.Platform, m.KernelVersion)
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		fmt.Fprintf(h, "file %q %d %q\n", name, m.Files[name].Size, m.Files[name].SHA256)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// readManifest reads a manifest file.
func readManifest(path string) (*Manifest, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxManifest {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxManifest)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := parseManifest(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ManifestFile, err)
	}
	return m, nil
}

// parseManifest parses a manifest and checks that it is complete.
func parseManifest(b []byte) (*Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, err
	}
	for _, name := range imageFiles() {
		f, ok := m.Files[name]
		if !ok {
			return nil, fmt.Errorf("lists no %s", name)
		}
		if f.Size < 0 || !isID(f.SHA256) {
			return nil, fmt.Errorf("size or digest of %s is malformed", name)
		}
	}
	return &m, nil
}

// imageFiles returns the names of the files that a manifest lists.
func imageFiles() []string { return []string{KernelFile, InitrdFile, SquashfsFile} }

// isID reports whether s is a SHA-256 in lower-case hex, the name of a generation.
func isID(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size && hex.EncodeToString(b) == s
}

// checkName returns an error unless name is valid for an image. Names are parts of paths
// and URLs.
func checkName(name string) error {
	if len(name) > 128 || !regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`).MatchString(name) {
		return fmt.Errorf("image name %.140q: want lower-case letters, digits, '.', '_' and '-', a letter or digit first, 128 at most", name)
	}
	return nil
}
