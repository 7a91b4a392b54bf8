package initrd_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"drover/e2e/fixture"
	"drover/imagebuild/external"
	"drover/imagebuild/initrd"
)

// zstds returns the two compressors of an initrd by name: the path of the program, and
// the empty path for the library.
func zstds(t *testing.T) map[string]string {
	program, version, err := external.Find(t.Context(), initrd.ZstdProgram)
	if errors.Is(err, exec.ErrNotFound) {
		fixture.Missing(t, err)
	}
	if err != nil || !strings.Contains(version, ".") {
		t.Fatalf("program %q, version %q, %v", program, version, err)
	}
	return map[string]string{"program": program, "library": ""}
}

func TestCompressInitrd(t *testing.T) {
	content := []byte(strings.Repeat("a module, and another that is much like it; ", 1<<16))
	compress := func(program string) []byte {
		var b bytes.Buffer
		err := initrd.Compress(t.Context(), program, &b, func(w io.Writer) error {
			for part := content; len(part) > 0; part = part[min(len(part), 10001):] {
				if _, err := w.Write(part[:min(len(part), 10001)]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for name, program := range zstds(t) {
		t.Run(name, func(t *testing.T) {
			once := compress(program)
			if !bytes.Equal(once, compress(program)) {
				t.Error("the same input gives different output")
			}
			d, err := zstd.NewReader(nil)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if got, err := d.DecodeAll(once, nil); err != nil || !bytes.Equal(got, content) {
				t.Errorf("got %d bytes back, %v, want %d", len(got), err, len(content))
			}
			var h zstd.Header
			if err := h.Decode(once); err != nil || h.SingleSegment || h.WindowSize > 4<<20 {
				t.Errorf("frame is %+v, %v, want a window of at most 4 MiB", h, err)
			}
		})
	}
}

// TestCompressInitrdFails: incomplete output is an error, which has its cause.
func TestCompressInitrdFails(t *testing.T) {
	odd := errors.New("odd module")
	cancelled, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	bad := filepath.Join(t.TempDir(), "zstd")
	if err := os.WriteFile(bad, []byte("#!/bin/sh\necho no memory >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	much := func(w io.Writer) error {
		_, err := io.CopyN(w, zeros{}, 1<<22)
		return err
	}
	for name, program := range zstds(t) {
		err := initrd.Compress(t.Context(), program, io.Discard, func(io.Writer) error { return odd })
		if !errors.Is(err, odd) {
			t.Errorf("%s: got %v, want the error of the archive", name, err)
		}
		if program == "" {
			continue // the writer of the image ends it
		}
		err = initrd.Compress(cancelled, program, io.Discard, func(w io.Writer) error {
			cancel(errors.New("no more"))
			return much(w)
		})
		if err == nil || !strings.Contains(err.Error(), "no more") {
			t.Errorf("got %v, want the cause of the cancellation", err)
		}
	}
	if err := initrd.Compress(t.Context(), bad, io.Discard, much); err == nil || !strings.Contains(err.Error(), "no memory") {
		t.Errorf("got %v, want the program's own message", err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
