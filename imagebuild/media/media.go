// Package media writes small UEFI boot media, for machines whose firmware cannot
// netboot: a FAT file system, a disk with it, or a CD.
//
// [New] takes shim and GRUB from the directory of loaders, with a config that names the
// server, and [Medium.Write] writes the file. The same loaders give the same medium, except
// for times and the GUIDs of a disk.
//
// A medium contains no secret and nothing of a node. The package does not know the farm.
package media

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/diskfs/go-diskfs/backend"
	raw "github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem"
	"github.com/diskfs/go-diskfs/filesystem/fat16"
	"github.com/diskfs/go-diskfs/filesystem/fat32"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	"github.com/diskfs/go-diskfs/partition/gpt"

	"drover/internal/atomicfile"
)

// Format is a kind of boot medium for UEFI.
type Format string

// The formats of [Medium].
const (
	// ESP is a FAT32 file system, an EFI System Partition, for a partition or a whole
	// USB stick.
	ESP Format = "esp"
	// ISO is a CD (ISO 9660, El Torito), for the virtual media of an iLO.
	ISO Format = "iso"
	// IMG is a disk with a GPT and an EFI System Partition, for a USB stick.
	IMG Format = "img"
)

// Formats are all formats of [Medium].
var Formats = []Format{ESP, ISO, IMG}

// Medium is a small boot medium: files, by their path on it ("EFI/BOOT/BOOTX64.EFI").
type Medium struct {
	Files map[string][]byte
	Label string // of the volume: at most 11 of A-Z, 0-9 and "_"
}

const (
	sectorSize = 512
	mib        = 1 << 20

	// Firmware recognizes FAT32 by its number of clusters, 65 525 or more (UEFI
	// specification, section 13.3), which needs 33 MiB. Most of the file is a hole.
	leastFAT32 = 40 * mib
	// FAT16 has 4085 clusters or more. The boot image of a CD is small, because old
	// firmware reads it over slow networks.
	leastFAT16 = 16 * mib

	// partitionStart is the first sector of the partition of a disk, at 1 MiB.
	partitionStart = mib / sectorSize
	// gptTail is the space for the second partition table at the end, in bytes, rounded up.
	gptTail = mib
)

// Write writes the medium to the file name, which is whole at every instant.
func (m Medium) Write(name string, format Format) error {
	if err := m.check(format); err != nil {
		return err
	}
	err := atomicfile.Create(name, 0o644, func(f *os.File) error {
		switch format {
		case IMG:
			return m.disk(f)
		case ISO:
			return m.iso(f)
		}
		return m.fat(f, 0, m.size(leastFAT32), false)
	})
	if err != nil {
		return fmt.Errorf("boot medium %s: %w", name, err)
	}
	return nil
}

func (m Medium) check(format Format) error {
	if !slices.Contains(Formats, format) {
		return fmt.Errorf("boot medium: no format %q (want one of %q)", format, Formats)
	}
	if len(m.Files) == 0 {
		return errors.New("boot medium: no files to put on it")
	}
	for name := range m.Files {
		if !fs.ValidPath(name) || name == "." {
			return fmt.Errorf("boot medium: %q is not a relative path", name)
		}
	}
	return nil
}

// size returns the size of a file system for the files, in bytes: whole MiB, at least
// least.
func (m Medium) size(least int64) int64 {
	total := int64(0)
	for _, content := range m.Files {
		total += int64(len(content)) + 4096
	}
	total += total / 16 // tables
	return max(least, (total+mib-1)/mib*mib)
}

// fat makes a FAT of size bytes at start in f.
func (m Medium) fat(f *os.File, start, size int64, small bool) error {
	if start == 0 {
		if err := f.Truncate(size); err != nil {
			return err
		}
	}
	var fsys filesystem.FileSystem
	var err error
	storage := raw.New(f, false)
	if small {
		fsys, err = fat16.Create(storage, size, start, sectorSize, m.Label, true)
	} else {
		fsys, err = fat32.Create(storage, size, start, sectorSize, m.Label, true)
	}
	if err != nil {
		return err
	}
	if err := m.fill(fsys); err != nil {
		return errors.Join(err, fsys.Close())
	}
	return fsys.Close()
}

// fill writes the files into a file system.
func (m Medium) fill(fsys filesystem.FileSystem) error {
	for _, name := range slices.Sorted(maps.Keys(m.Files)) { // sorted: the same files give the same medium
		if err := fsys.Mkdir("/" + path.Dir(name)); err != nil {
			return fmt.Errorf("%s: %w", path.Dir(name), err)
		}
		w, err := fsys.OpenFile("/"+name, os.O_CREATE|os.O_RDWR)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		_, err = w.Write(m.Files[name])
		if err := errors.Join(err, w.Close()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// disk makes a disk with a GPT and one partition.
func (m Medium) disk(f *os.File) error {
	size := m.size(leastFAT32)
	total := partitionStart*sectorSize + size + gptTail
	if err := f.Truncate(total); err != nil {
		return err
	}
	table := &gpt.Table{
		LogicalSectorSize: sectorSize, PhysicalSectorSize: sectorSize, ProtectiveMBR: true,
		Partitions: []*gpt.Partition{{
			Index: 1, Start: partitionStart, End: uint64(partitionStart + size/sectorSize - 1), Size: uint64(size),
			Type: gpt.EFISystemPartition, Name: "EFI System",
		}},
	}
	w, err := backend.Storage(raw.New(f, false)).Writable()
	if err != nil {
		return err
	}
	if err := table.Write(w, total); err != nil {
		return err
	}
	return m.fat(f, partitionStart*sectorSize, size, false)
}

// Paths on a CD. Firmware boots the image; GRUB reads its config from the CD.
const (
	bootImage   = "boot/efi.img"
	bootCatalog = "boot/boot.cat"
)

// iso makes a CD whose boot image is a FAT with all files. The CD has the files too, since
// GRUB reads its own from there.
func (m Medium) iso(f *os.File) error {
	work, err := os.MkdirTemp(filepath.Dir(f.Name()), ".media-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	image, err := m.image(filepath.Join(work, "efi.img"))
	if err != nil {
		return err
	}
	all := Medium{Files: maps.Clone(m.Files)}
	all.Files[bootImage] = image
	size := all.size(mib)
	if err := f.Truncate(size); err != nil {
		return err
	}
	tree := filepath.Join(work, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		return err
	}
	fsys, err := iso9660.Create(raw.New(f, false), size, 0, 2048, tree)
	if err != nil {
		return err
	}
	if err := all.fill(fsys); err != nil {
		return err
	}
	entry := &iso9660.ElToritoEntry{Platform: iso9660.EFI, Emulation: iso9660.NoEmulation, BootFile: bootImage}
	return fsys.Finalize(iso9660.FinalizeOptions{
		RockRidge: true, VolumeIdentifier: strings.ToUpper(m.Label),
		ElTorito: &iso9660.ElTorito{BootCatalog: bootCatalog, Entries: []*iso9660.ElToritoEntry{entry}},
	})
}

// image returns the boot image of a CD. The catalog stores its length in sectors in 16
// bits, so it is a FAT16.
func (m Medium) image(name string) ([]byte, error) {
	size := m.size(leastFAT16)
	if size/sectorSize > 0xffff {
		return nil, fmt.Errorf("the files take %d MiB, a CD can boot from 31", size/mib)
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := m.fat(f, 0, size, true); err != nil {
		return nil, err
	}
	return os.ReadFile(name)
}
