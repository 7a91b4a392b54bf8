package initrd_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"drover/imagebuild/initrd"
)

func TestCompressInitrd(t *testing.T) {
	content := []byte(strings.Repeat("a module, and another that is much like it; ", 1<<16))
	compress := func(r io.Reader) []byte {
		var b bytes.Buffer
		if err := initrd.Compress(&b, r); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	once := compress(bytes.NewReader(content))
	if !bytes.Equal(once, compress(iotest.HalfReader(bytes.NewReader(content)))) {
		t.Error("the same input, in other pieces, gives different output")
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
	if err := h.Decode(once); err != nil || h.SingleSegment || h.WindowSize > 8<<20 {
		t.Errorf("frame is %+v, %v, want a window of at most 8 MiB", h, err)
	}
}

// TestCompressInitrdFails: incomplete output is an error, which has its cause.
func TestCompressInitrdFails(t *testing.T) {
	odd := errors.New("odd module")
	if err := initrd.Compress(io.Discard, iotest.ErrReader(odd)); !errors.Is(err, odd) {
		t.Errorf("got %v, want the error of the archive", err)
	}
}

// TestCompressor: an initrd is used again for equal contents, if the compressor is the
// same. It changes with the version of the library.
func TestCompressor(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	module := strings.Join(strings.Fields(initrd.Compressor)[:2], " ")
	if !strings.Contains(string(mod), "\t"+module+"\n") {
		t.Errorf("go.mod does not have %q: change compressor", module)
	}
}
