package imagebuild_test

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"path/filepath"
	"testing"

	"drover/imagebuild/initrd"
	"drover/imagebuild/layer"
	"drover/imagebuild/manifest"
	"drover/imagebuild/oci"
	"drover/imagebuild/rootfs"
)

// FuzzArchive: an archive that is broken in any way gives only an error.
func FuzzArchive(f *testing.F) {
	l := newLayout(f)
	var entries []tarEntry
	for _, d := range []string{"a=1", ".wh.b", "c>a"} {
		entries = append(entries, describe(d))
	}
	l.add("v1", l.image("amd64", "2020-01-01T00:00:00Z", tarOf(f, entries...), gzipped(f, tarOf(f, entries...)), zstandard(f, tarOf(f, entries...))))
	archive := l.archive()
	dir := f.TempDir()
	if err := readArchive(dir, archive); err != nil {
		f.Fatal(err)
	}
	f.Add(read(f, archive))
	f.Fuzz(func(t *testing.T, b []byte) {
		file := filepath.Join(dir, "fuzz.tar")
		write(t, file, b)
		_ = readArchive(dir, file)
	})
}

// FuzzELF: modules and the program for /init are ELF files from other sources.
func FuzzELF(f *testing.F) {
	f.Add(staticELF(f, elf.EM_X86_64, true))
	f.Add(moduleELF(f, "firmware=a.fw\x00"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		initrd.Firmware(b)
		_ = initrd.CheckProgram(bytes.NewReader(b), "amd64")
	})
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"name":"a","files":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := manifest.Parse(b)
		if err != nil {
			return
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := manifest.Parse(text)
		if err != nil || again.ID() != m.ID() {
			t.Errorf("%s: ID %s became %v, %v", b, m.ID(), again, err)
		}
	})
}

// readArchive reads an OCI archive and all of its layers.
func readArchive(dir, file string) error {
	src, err := oci.OpenArchive(file, oci.Platform{OS: "linux", Architecture: "amd64"})
	if err != nil {
		return err
	}
	defer src.Close()
	spool, err := layer.NewSpool(dir, 1<<24)
	if err != nil {
		return err
	}
	defer spool.Close()
	reader, tree := layer.Reader{Spool: spool}, rootfs.New()
	for _, l := range src.Layers {
		list, err := l.Read(context.Background(), &reader, func(int64) {})
		if err == nil {
			err = tree.Apply(list)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
