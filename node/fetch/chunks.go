package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"drover/imagebuild/manifest"
	"drover/node/client"
)

// Chunks are the digests of the pieces of a file. The zero Chunks has none: the file is
// checked as a whole.
type Chunks struct {
	Total  int64 // size of the file, in bytes
	Size   int64 // of each chunk, except the last
	SHA256 [][sha256.Size]byte
}

// chunksLimit is how long [ReadChunks] waits. The digest of the whole file does without it.
const chunksLimit = 5 * time.Second

// FindChunks sets the digests of the chunks, from the first server that has them.
func (f *Fetcher) FindChunks(ctx context.Context) (err error) {
	for at := range 1 + len(f.Also) {
		var failed error
		if f.Chunks, failed = ReadChunks(ctx, f.Client, f.url(at), f.Digest); failed == nil {
			return nil
		}
		err = errors.Join(err, failed)
	}
	return err
}

// ReadChunks reads the digests of the chunks of a squashfs from the manifest beside it.
// The manifest needs no trust: the URL, NAME/ID/root.squashfs, has its digest, and is of
// the kernel command line, as the squashfs' own digest is. Other servers have none: the error
// says so.
func ReadChunks(ctx context.Context, web *http.Client, url string, digest [sha256.Size]byte) (Chunks, error) {
	ctx, cancel := context.WithTimeout(ctx, chunksLimit)
	defer cancel()
	dir, _ := path.Split(url)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, dir+manifest.Name, nil)
	if err != nil {
		return Chunks{}, err
	}
	resp, err := web.Do(req)
	if err != nil {
		return Chunks{}, client.WithoutURL(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return Chunks{}, client.StatusError(resp)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, manifest.MaxSize+1))
	if err != nil {
		return Chunks{}, err
	}
	if len(b) > manifest.MaxSize {
		return Chunks{}, fmt.Errorf("%s has more than %d bytes", manifest.Name, manifest.MaxSize)
	}
	return parseChunks(b, path.Base(strings.TrimSuffix(dir, "/")), digest)
}

// parseChunks returns the chunks of a manifest with an ID, if its squashfs has a digest.
func parseChunks(b []byte, id string, digest [sha256.Size]byte) (Chunks, error) {
	m, err := manifest.Parse(b)
	if err != nil {
		return Chunks{}, fmt.Errorf("%s: %w", manifest.Name, err)
	}
	if got := m.ID(); got != id {
		return Chunks{}, fmt.Errorf("%s describes image %s, want %.64q", manifest.Name, got, id)
	}
	squashfs := m.Files[manifest.Squashfs]
	if squashfs.SHA256 != hex.EncodeToString(digest[:]) {
		return Chunks{}, fmt.Errorf("%s has %s with sha256 %s, want %x", manifest.Name, manifest.Squashfs, squashfs.SHA256, digest)
	}
	if m.Chunks == nil {
		return Chunks{}, fmt.Errorf("%s has no digests of chunks", manifest.Name)
	}
	c := Chunks{Total: squashfs.Size, Size: m.Chunks.Size, SHA256: make([][sha256.Size]byte, len(m.Chunks.SHA256))}
	for i, sum := range m.Chunks.SHA256 {
		if _, err := hex.Decode(c.SHA256[i][:], []byte(sum)); err != nil {
			return Chunks{}, err
		}
	}
	return c, nil
}
