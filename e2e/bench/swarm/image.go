package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"drover/imagebuild/manifest"
)

// The sizes of what a machine fetches, in bytes; -root has that of the root image.
const (
	imageName  = "swarm"
	loaderSize = 80 << 10
	kernelSize = 1 << 20
	initrdSize = 1 << 20
)

// writeImage writes an image of zeros, as sparse files, with the digests of its chunks.
func writeImage(dir string, root int64) error {
	m := manifest.Manifest{Name: imageName, Platform: "linux/amd64", KernelVersion: "6.1", Files: map[string]manifest.File{}}
	for name, size := range map[string]int64{manifest.Kernel: kernelSize, manifest.Initrd: initrdSize, manifest.Squashfs: root} {
		sum, err := zeroSum(size)
		if err != nil {
			return err
		}
		m.Files[name] = manifest.File{Size: size, SHA256: sum}
	}
	sum, err := zeroSum(manifest.ChunkSize)
	if err != nil {
		return err
	}
	m.Chunks = &manifest.Chunks{Size: manifest.ChunkSize}
	for range root / manifest.ChunkSize {
		m.Chunks.SHA256 = append(m.Chunks.SHA256, sum)
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	generation := filepath.Join(dir, m.Name, m.ID())
	err = errors.Join(os.MkdirAll(generation, 0o755), os.Symlink(m.ID(), filepath.Join(dir, m.Name, "current")),
		os.WriteFile(filepath.Join(generation, manifest.Name), text, 0o644))
	for name, f := range m.Files {
		path := filepath.Join(generation, name)
		err = errors.Join(err, os.WriteFile(path, nil, 0o644), os.Truncate(path, f.Size))
	}
	return err
}

// zeroSum returns the SHA-256 of so many zeros.
func zeroSum(size int64) (string, error) {
	h := sha256.New()
	_, err := io.CopyN(h, zeros{}, size)
	return hex.EncodeToString(h.Sum(nil)), err
}

// zeros reads as zeros without end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
