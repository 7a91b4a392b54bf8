package loaders

import (
	"bytes"
	"crypto/sha256"
	"debug/pe"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"drover/internal/printable"
)

// maxSize bounds a loader, in bytes. GRUB with all its modules has 4 MB.
const maxSize = 64 << 20

// program is a loader with the facts from its headers. The version comes from the SBAT.
// Signed means only that a signature exists.
type program struct {
	Info
	machine uint16 // 0: not a PE file
	content []byte
}

// readProgram reads a whole loader, so that Install copies the content that it checked.
func readProgram(f *os.File) (*program, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	case info.Size() == 0:
		return nil, errors.New("it is empty")
	case info.Size() > maxSize:
		return nil, fmt.Errorf("it has %d bytes, no loader is so large", info.Size())
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSize))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	p := &program{Info: Info{Size: int64(len(b)), SHA256: hex.EncodeToString(sum[:])}, content: b}
	if bytes.HasPrefix(b, []byte("MZ")) {
		p.readPE()
	}
	return p, nil
}

// readPE reads the headers of a UEFI program. It ignores headers that are malformed.
func (p *program) readPE() {
	f, err := pe.NewFile(bytes.NewReader(p.content))
	if err != nil {
		return
	}
	defer f.Close()
	p.machine = f.Machine
	if h, ok := f.OptionalHeader.(*pe.OptionalHeader64); ok {
		p.Signed = h.NumberOfRvaAndSizes > pe.IMAGE_DIRECTORY_ENTRY_SECURITY &&
			h.DataDirectory[pe.IMAGE_DIRECTORY_ENTRY_SECURITY].Size > 0
	}
	if s := f.Section(".sbat"); s != nil && s.Size <= 64<<10 {
		if b, err := s.Data(); err == nil {
			p.Version = sbatVersion(b)
		}
	}
}

// sbatVersion returns the version in the last line of an SBAT, the line of the packager:
// component, generation, vendor, package, version, URL.
func sbatVersion(b []byte) (version string) {
	b, _, _ = bytes.Cut(b, []byte{0}) // sections are padded
	r := csv.NewReader(bytes.NewReader(b))
	r.FieldsPerRecord = -1
	for {
		fields, err := r.Read()
		if err != nil {
			return version
		}
		if len(fields) >= 5 && fields[0] != "sbat" {
			version = printable.Line(fields[4], 60)
		}
	}
}

// fits returns an error unless a program is for the machines of a loader.
func (l Loader) fits(p *program) error {
	switch {
	case l.machine == p.machine:
		return nil
	case p.machine == 0:
		return errors.New("it is no UEFI program")
	case l.machine == 0:
		return errors.New("it is a UEFI program, and a BIOS cannot run it")
	}
	return fmt.Errorf("it is a program for %s, want one for %s", machineName(p.machine), machineName(l.machine))
}

func machineName(m uint16) string {
	switch m {
	case pe.IMAGE_FILE_MACHINE_AMD64:
		return "x86-64"
	case pe.IMAGE_FILE_MACHINE_ARM64:
		return "arm64"
	case pe.IMAGE_FILE_MACHINE_I386:
		return "32-bit x86"
	}
	return fmt.Sprintf("machine %#x", m)
}
