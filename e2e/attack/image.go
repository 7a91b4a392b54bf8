package attack

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"drover/imagebuild"
)

// writeImage writes an image of zeros, as sparse files, and returns its ID.
func writeImage(dir string, root int64) (string, error) {
	m := imagebuild.Manifest{Name: Image, Platform: "linux/amd64", KernelVersion: "6.1", Files: map[string]imagebuild.File{}}
	for name, size := range map[string]int64{imagebuild.KernelFile: 1 << 20, imagebuild.InitrdFile: 1 << 20, imagebuild.SquashfsFile: root} {
		h := sha256.New()
		if _, err := io.CopyN(h, zeros{}, size); err != nil {
			return "", err
		}
		m.Files[name] = imagebuild.File{Size: size, SHA256: hex.EncodeToString(h.Sum(nil))}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	generation := filepath.Join(dir, m.Name, m.ID())
	err = errors.Join(os.MkdirAll(generation, 0o755), os.Symlink(m.ID(), filepath.Join(dir, m.Name, "current")),
		os.WriteFile(filepath.Join(generation, imagebuild.ManifestFile), text, 0o600))
	for name, f := range m.Files {
		path := filepath.Join(generation, name)
		err = errors.Join(err, os.WriteFile(path, nil, 0o600), os.Truncate(path, f.Size))
	}
	return m.ID(), err
}

// zeros reads as zeros without end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
