package gpt_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/node/gpt"
)

const size = 64 << 20

// file returns an empty disk of 64 MB.
func file(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	return f
}

var wanted = []gpt.Want{{Name: "drover:data/swap", Type: gpt.Swap, Size: 8 << 20}, {Name: "drover:data/ä", Type: gpt.Linux}}

func TestTable(t *testing.T) {
	for _, sector := range []int64{512, 4096} {
		f := file(t)
		if _, err := gpt.Read(f, size, sector); !errors.Is(err, gpt.ErrNone) {
			t.Errorf("empty disk: got %v", err)
		}
		want, err := gpt.New(size, sector, wanted)
		if err != nil {
			t.Fatal(err)
		}
		if err := want.Write(f, size, sector); err != nil {
			t.Fatal(err)
		}
		got, err := gpt.Read(f, size, sector)
		if err != nil || got.Disk != want.Disk || !slices.Equal(got.Partitions, want.Partitions) {
			t.Errorf("sectors of %d: got %+v, %v, want %+v", sector, got, err, want)
		}
		if p := got.Partitions; p[0].First*sector != 1<<20 || p[1].First != p[0].Last+1 || (p[1].Last+1)*sector > size-(1<<14)-sector {
			t.Errorf("sectors of %d: got %+v", sector, p)
		}
		// The copy at the end replaces a damaged table, but not a damaged pair.
		for _, at := range []int64{sector, size - sector} {
			if _, err := f.WriteAt([]byte("damaged"), at+40); err != nil {
				t.Fatal(err)
			}
			_, err := gpt.Read(f, size, sector)
			if whole := at == sector; whole != (err == nil) {
				t.Errorf("sectors of %d, damaged at %d: got %v", sector, at, err)
			}
		}
	}
}

func TestNewDoesNotFit(t *testing.T) {
	for _, want := range [][]gpt.Want{
		{{Size: size}},
		{{Size: 62 << 20}, {}},
		{{Size: 1}},
		{{}, {}},
	} {
		if got, err := gpt.New(size, 512, want); err == nil || !strings.Contains(err.Error(), "does not fit") {
			t.Errorf("%+v: got %+v, %v", want, got, err)
		}
	}
}

// TestOtherPrograms lets partx of util-linux read a table.
func TestOtherPrograms(t *testing.T) {
	partx, err := exec.LookPath("partx")
	if err != nil {
		fixture.Missing(t, "partx (package util-linux)")
	}
	f := file(t)
	table, err := gpt.New(size, 512, wanted)
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Write(f, size, 512); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(partx, "--raw", "--noheadings", "-o", "NR,START,END,TYPE,NAME", f.Name()).CombinedOutput()
	want := "1 2048 18431 0657fd6d-a4ab-43c4-84e5-0933c84b4f4f drover:data/swap\n2 18432 129023 0fc63daf-8483-4772-8e79-3d69d8477de4 drover:data/"
	if err != nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("got %v\n%s\nwant\n%s", err, out, want)
	}
}

// first keeps what is written to the begin of a disk.
type first []byte

func (f *first) WriteAt(b []byte, at int64) (int, error) {
	if at == 0 {
		*f = slices.Clone(b)
	}
	return len(b), nil
}

// TestProtectiveMBR: the partition that old programs see has as many sectors as the disk, or the
// most that its field can say (UEFI, table 5-4).
func TestProtectiveMBR(t *testing.T) {
	for disk, want := range map[int64]uint32{size: size/512 - 1, 2 << 40: 0xffffffff, 3 << 40: 0xffffffff} {
		table, err := gpt.New(disk, 512, wanted)
		if err != nil {
			t.Fatal(err)
		}
		var front first
		if err := table.Write(&front, disk, 512); err != nil {
			t.Fatal(err)
		}
		if got := binary.LittleEndian.Uint32(front[446+12:]); got != want {
			t.Errorf("disk of %d bytes: %#x sectors, want %#x", disk, got, want)
		}
	}
}

// TestForged: a header with a right sum makes nobody read more than a table has.
func TestForged(t *testing.T) {
	for _, counts := range [][2]uint32{{1 << 31, 1 << 31}, {1 << 24, 128}, {128, 0}} {
		b := make([]byte, 1<<20)
		h := b[512:]
		copy(h, "EFI PART\x00\x00\x01\x00\x5c")
		h[24], h[72] = 1, 2
		binary.LittleEndian.PutUint32(h[80:], counts[0])
		binary.LittleEndian.PutUint32(h[84:], counts[1])
		binary.LittleEndian.PutUint32(h[16:], crc32.ChecksumIEEE(h[:92]))
		if got, err := gpt.Read(bytes.NewReader(b), int64(len(b)), 512); !errors.Is(err, gpt.ErrNone) {
			t.Errorf("%d entries of %d bytes: got %+v, %v", counts[0], counts[1], got, err)
		}
	}
}

// FuzzRead: a table comes from a disk that anyone may have written.
func FuzzRead(f *testing.F) {
	f.Add([]byte("EFI PART"))
	f.Fuzz(func(t *testing.T, header []byte) {
		b := make([]byte, 1<<16)
		copy(b[512:], header)
		_, _ = gpt.Read(strings.NewReader(string(b)), int64(len(b)), 512) // must not panic
	})
}
