// Package manifest describes the contents of an image: [Manifest]. Its ID is a digest over
// all that a node uses, so that a node which knows the ID can trust a manifest from
// anybody: the digests of the files, and of the chunks of the root file system.
//
// The package knows nothing of directories and of how images are made.
package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// The files of an image.
const (
	Kernel   = "kernel"
	Initrd   = "initrd"
	Squashfs = "root.squashfs"
	Name     = "manifest.json" // of the manifest itself
)

// MaxSize bounds a manifest, in bytes: one for a squashfs of 32 GiB has 2.2 MB.
const MaxSize = 4 << 20

// ChunkSize is the size of the chunks of a squashfs, in bytes.
const ChunkSize = 1 << 20

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
	Chunks        *Chunks           `json:"chunks,omitempty"`    // of root.squashfs; nil: it is checked as a whole
}

// File is one file of an image.
type File struct {
	Size   int64  `json:"size"`   // bytes
	SHA256 string `json:"sha256"` // 64 hex digits
}

// Chunks are the digests of the pieces of a file.
type Chunks struct {
	Size   int64    `json:"size"`   // bytes of each, except the last
	SHA256 []string `json:"sha256"` // 64 hex digits each, in order
}

// ID returns the identity of the image: a SHA-256 in hex over the platform, the kernel's
// version, the files and the chunks, but not over name, time, source or tools. Equal
// contents have equal IDs.
func (m *Manifest) ID() string {
	h := sha256.New()
	fmt.Fprintf(h, "drover image 1\nplatform %q\nkernel %q\n", m.Platform, m.KernelVersion)
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		fmt.Fprintf(h, "file %q %d %q\n", name, m.Files[name].Size, m.Files[name].SHA256)
	}
	if m.Chunks != nil {
		fmt.Fprintf(h, "chunks %d\n", m.Chunks.Size)
		for _, sum := range m.Chunks.SHA256 {
			fmt.Fprintf(h, "chunk %q\n", sum)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Parse parses a manifest and checks that it is complete.
func Parse(b []byte) (*Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, err
	}
	for _, name := range Files() {
		f, ok := m.Files[name]
		if !ok {
			return nil, fmt.Errorf("lists no %s", name)
		}
		if f.Size < 0 || !IsDigest(f.SHA256) {
			return nil, fmt.Errorf("size or digest of %s is malformed", name)
		}
	}
	if m.Chunks != nil {
		if err := m.Chunks.check(m.Files[Squashfs].Size); err != nil {
			return nil, err
		}
	}
	return &m, nil
}

// check returns an error unless there is a digest for each chunk of a file.
func (c *Chunks) check(size int64) error {
	if c.Size != ChunkSize {
		return fmt.Errorf("chunks of %d bytes, want %d", c.Size, ChunkSize)
	}
	want := size / c.Size
	if size%c.Size > 0 {
		want++
	}
	if int64(len(c.SHA256)) != want {
		return fmt.Errorf("%d chunks, but %s has %d", len(c.SHA256), Squashfs, want)
	}
	for i, sum := range c.SHA256 {
		if !IsDigest(sum) {
			return fmt.Errorf("digest of chunk %d is malformed", i+1)
		}
	}
	return nil
}

// Files returns the names of the files that a manifest lists.
func Files() []string { return []string{Kernel, Initrd, Squashfs} }

// IsDigest reports whether s is a SHA-256 in lower-case hex, such as the name of a
// generation.
func IsDigest(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size && hex.EncodeToString(b) == s
}
