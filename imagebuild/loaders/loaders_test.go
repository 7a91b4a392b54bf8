package loaders_test

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/imagebuild/loaders"
)

// efi returns a UEFI program for x86-64 with an SBAT, such as shim and GRUB have.
func efi(sbat string, signed bool) []byte {
	optional := pe.OptionalHeader64{Magic: 0x20b, NumberOfRvaAndSizes: 16}
	if signed {
		optional.DataDirectory[pe.IMAGE_DIRECTORY_ENTRY_SECURITY] = pe.DataDirectory{VirtualAddress: 4096, Size: 8}
	}
	section := pe.SectionHeader32{Name: [8]uint8{'.', 's', 'b', 'a', 't'}, SizeOfRawData: uint32(len(sbat) + 8), PointerToRawData: 1024}
	header := pe.FileHeader{
		Machine: pe.IMAGE_FILE_MACHINE_AMD64, NumberOfSections: 1, SizeOfOptionalHeader: uint16(binary.Size(optional)),
	}
	b := bytes.NewBuffer(append([]byte("MZ"), make([]byte, 58)...))
	for _, part := range []any{uint32(64), []byte("PE\x00\x00"), header, optional, section} {
		_ = binary.Write(b, binary.LittleEndian, part)
	}
	b.Write(make([]byte, 1024-b.Len()))
	b.WriteString(sbat)
	b.Write(make([]byte, 8)) // sections are padded
	return b.Bytes()
}

func TestLoaderVersions(t *testing.T) {
	const debian = "sbat,1,SBAT Version,sbat,1,https://example.org\nshim,4,UEFI shim,shim,1,https://example.org\nshim.debian,1,Debian,shim,16.1,https://example.org\n"
	for _, tt := range []struct {
		name, sbat, version string
		signed              bool
	}{
		{"version of the packager", debian, "16.1", true},
		{"not signed", debian, "16.1", false},
		{"only the head", "sbat,1,SBAT Version,sbat,1,https://example.org\n", "", true},
		{"nothing", "", "", true},
		{"no CSV", "\"", "", true},
		{"for the terminal", "x,1,x,x,\x1b[2J,y\n", "?[2J", true},
		{"without end", "x,1,x,x," + strings.Repeat("1", 1000) + ",y\n", strings.Repeat("1", 57) + "…", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "shimx64.efi"), efi(tt.sbat, tt.signed), 0o644); err != nil {
				t.Fatal(err)
			}
			list, err := loaders.List(dir)
			if err != nil || len(list) != 1 {
				t.Fatalf("got %+v, %v", list, err)
			}
			if l := list[0]; l.Version != tt.version || l.Signed != tt.signed || strings.Join(l.Firmware, ", ") != "uefi-x64 with Secure Boot" {
				t.Errorf("got %+v, want version %q, signed %t", l, tt.version, tt.signed)
			}
		})
	}
}

func FuzzLoader(f *testing.F) {
	f.Add(efi("x,1,x,x,1,y\n", true))
	f.Add([]byte("MZ"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if v := loaders.VersionOf(b); len(v) > 60 {
			t.Errorf("got a version of %d bytes", len(v))
		}
	})
}
