package layer_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"drover/imagebuild/layer"
	"drover/imagebuild/rootfs"
)

// TestSpoolLimit: the limit is one for all layers, and a file that only claims to be large takes
// no space and no time.
func TestSpoolLimit(t *testing.T) {
	claim := func(size int64) []byte {
		var b bytes.Buffer
		if err := tar.NewWriter(&b).WriteHeader(&tar.Header{Name: "huge", Typeflag: tar.TypeReg, Size: size}); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	kilobyte := "a=" + strings.Repeat("x", 1000)
	for _, tt := range []struct {
		name   string
		layers [][]byte
		want   string // in the error of the last layer
	}{
		{"all of it", [][]byte{archive(t, kilobyte), archive(t, kilobyte)}, ""},
		{"a byte more", [][]byte{archive(t, kilobyte), archive(t, kilobyte, "b=x")}, "the image is larger than 2000 bytes"},
		{"in the third layer", [][]byte{archive(t, kilobyte), archive(t, kilobyte), archive(t, "b=x")}, "the image is larger than 2000 bytes"},
		{"a claim of 8 TiB", [][]byte{claim(8 << 40)}, "the image is larger than 2000 bytes"},
		{"a claim that overflows", [][]byte{archive(t, kilobyte), claim(1<<63 - 1)}, "the image is larger than 2000 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reader := layer.Reader{Spool: newSpool(t, 2000), Whiteouts: true}
			for i, l := range tt.layers {
				_, err := reader.Stream(t.Context(), bytes.NewReader(l), ignore)
				if last := i == len(tt.layers)-1; !last || tt.want == "" {
					if err != nil {
						t.Fatalf("layer %d: %v", i, err)
					}
				} else if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got error %v, want one with %q", err, tt.want)
				}
			}
		})
	}
}

// TestSpoolShared: readers that share a spool do not mix their contents, and holes stay zeros,
// also at its end.
func TestSpoolShared(t *testing.T) {
	dir := t.TempDir()
	spool, err := layer.NewSpool(dir, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	defer spool.Close()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("the spool has a name: %v, %v", left, err)
	}
	const readers = 4
	var want [readers]string
	var lists [readers][]rootfs.Entry
	var running sync.WaitGroup
	for i := range readers {
		text := strings.Repeat(fmt.Sprint(i), 300_000)
		want[i] = "a=" + text + " hole=" + strings.Repeat("\x00", 600_000) + " b=" + text + " end=" + strings.Repeat("\x00", 300_000)
		l := archive(t, strings.Split(want[i], " ")...)
		running.Go(func() {
			reader := layer.Reader{Spool: spool, Whiteouts: true}
			list, err := reader.Stream(t.Context(), bytes.NewReader(l), ignore)
			if err != nil {
				t.Error(err)
			}
			lists[i] = list
		})
	}
	running.Wait()
	if err := spool.Finish(); err != nil { // once: nobody writes any more
		t.Error(err)
	}
	for i := range readers {
		if got := shown(t, lists[i]); got != want[i] {
			t.Errorf("reader %d has %d bytes, want %d, or other ones", i, len(got), len(want[i]))
		}
	}
}

// TestSpoolMeta: attributes take memory too (finding M11).
func TestSpoolMeta(t *testing.T) {
	r, w := io.Pipe()
	go func() {
		tw := tar.NewWriter(w)
		value := strings.Repeat("x", 512<<10)
		for i := range 1000 {
			h := &tar.Header{Name: fmt.Sprint(i), Typeflag: tar.TypeReg, PAXRecords: map[string]string{"SCHILY.xattr.user.a": value}}
			if tw.WriteHeader(h) != nil {
				return
			}
		}
		w.CloseWithError(tw.Close())
	}()
	_, err := (&layer.Reader{Spool: newSpool(t, 1<<20)}).Stream(t.Context(), r, ignore)
	r.Close()
	if want := "names and attributes"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want one with %q", err, want)
	}
}
