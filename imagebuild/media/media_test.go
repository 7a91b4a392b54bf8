package media_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs"
	"github.com/diskfs/go-diskfs/filesystem"
	"github.com/diskfs/go-diskfs/partition/gpt"

	"drover/imagebuild/media"
)

// loaderFiles returns files like those of a medium: large ones, and names in both cases.
func loaderFiles() map[string][]byte {
	return map[string][]byte{
		"EFI/BOOT/BOOTX64.EFI": bytes.Repeat([]byte("shim"), 250_000),
		"EFI/BOOT/grubx64.efi": bytes.Repeat([]byte("grub!"), 500_001),
		"grub/grub.cfg":        []byte("echo hello\n"),
	}
}

func TestMedia(t *testing.T) {
	for _, tt := range []struct {
		format media.Format
		part   int // of the disk
		kind   filesystem.Type
	}{
		{media.ESP, 0, filesystem.TypeFat32},
		{media.IMG, 1, filesystem.TypeFat32},
		{media.ISO, 0, filesystem.TypeISO9660},
	} {
		t.Run(string(tt.format), func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "medium")
			m := media.Medium{Files: loaderFiles(), Label: "DROVER"}
			for range 2 { // the second replaces the first
				if err := m.Write(name, tt.format); err != nil {
					t.Fatal(err)
				}
			}
			d, err := diskfs.Open(name, diskfs.WithOpenMode(diskfs.ReadOnly))
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if tt.format == media.IMG {
				table, err := d.GetPartitionTable()
				if err != nil {
					t.Fatal(err)
				}
				if p := table.(*gpt.Table).Partitions; len(p) == 0 || p[0].Type != gpt.EFISystemPartition {
					t.Errorf("partitions: got %v, want an EFI System Partition", p)
				}
			}
			fsys, err := d.GetFilesystem(tt.part)
			if err != nil {
				t.Fatal(err)
			}
			if fsys.Type() != tt.kind || strings.Trim(fsys.Label(), " \x00") != "DROVER" {
				t.Errorf("got file system %v %q, want %v", fsys.Type(), fsys.Label(), tt.kind)
			}
			for path, want := range m.Files {
				f, err := fsys.OpenFile("/"+path, os.O_RDONLY)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(f)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s: got %d bytes, %v, want %d", path, len(got), err, len(want))
				}
			}
			left, err := os.ReadDir(filepath.Dir(name))
			if err != nil || len(left) != 1 {
				t.Errorf("left beside the medium: %v, %v", left, err)
			}
		})
	}
}

func TestMediaRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		name   string
		medium media.Medium
		format media.Format
		want   string
	}{
		{"format", media.Medium{Files: loaderFiles()}, "floppy", `no format "floppy"`},
		{"nothing", media.Medium{}, media.ESP, "no files"},
		{"a path that leads out", media.Medium{Files: map[string][]byte{"../x": nil}}, media.ISO, `"../x" is not a relative path`},
		{"too much for a CD", media.Medium{Files: map[string][]byte{"x": make([]byte, 40<<20)}}, media.ISO, "a CD can boot from 31"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(dir, "medium")
			err := tt.medium.Write(file, tt.format)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a medium is there: %v", err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}
