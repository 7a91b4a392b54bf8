package main

import (
	"bytes"
	"context"
	"debug/pe"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/e2e/fixture"
)

// efi makes a UEFI program for x86-64 with an SBAT, as shim and GRUB have one.
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
		{"who packaged it", debian, "16.1", true},
		{"nobody signed it", debian, "16.1", false},
		{"only the head", "sbat,1,SBAT Version,sbat,1,https://example.org\n", "", true},
		{"nothing", "", "", true},
		{"no CSV", "\"", "", true},
		{"for the terminal", "x,1,x,x,\x1b[2J,y\n", "?[2J", true},
		{"without end", "x,1,x,x," + strings.Repeat("1", 1000) + ",y\n", strings.Repeat("1", 60), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "shimx64.efi"), efi(tt.sbat, tt.signed), 0o644); err != nil {
				t.Fatal(err)
			}
			list, err := listLoaders(dir)
			if err != nil || len(list) != 1 {
				t.Fatalf("got %+v, %v", list, err)
			}
			if l := list[0]; l.Version != tt.version || l.Signed != tt.signed || l.firmwares() != "uefi-x64 with Secure Boot" {
				t.Errorf("got %+v, want version %q, signed %t", l, tt.version, tt.signed)
			}
		})
	}
}

// TestLoadersOfThisHost installs from the packages that the tests need anyway.
func TestLoadersOfThisHost(t *testing.T) {
	if _, err := os.Stat("/usr/lib/ipxe/undionly.kpxe"); err != nil {
		fixture.Missing(t, "needs the package ipxe")
	}
	dir := filepath.Join(t.TempDir(), "loaders")
	var out, errs strings.Builder
	if code := run(context.Background(), []string{"loaders", "install", "--loaders", dir}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs.String())
	}
	list, err := listLoaders(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, l := range list {
		found[l.File] = true
		if !strings.HasPrefix(l.Source, "package ") || l.Version == "" || len(l.Firmware) == 0 {
			t.Errorf("got %+v, want its package, version and firmware", l)
		}
	}
	if !found["undionly.kpxe"] || !found["snponly.efi"] {
		t.Errorf("got\n%s\nwant undionly.kpxe and snponly.efi", out.String())
	}
}

func FuzzLoader(f *testing.F) {
	f.Add(efi("x,1,x,x,1,y\n", true))
	f.Add([]byte("MZ"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := &program{content: b}
		p.readPE()
		if len(p.version) > 60 {
			t.Errorf("got a version of %d bytes", len(p.version))
		}
	})
}
