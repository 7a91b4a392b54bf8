package site

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// signed makes what unsigned looks at of a UEFI program: its content, then a
// signature, and after that something else.
func signed(content, signature, after string) []byte {
	const header = 0x40
	b := make([]byte, header+4+20+112+16*8)
	binary.LittleEndian.PutUint32(b[0x3c:], header)
	b = append(b, content...)
	if signature != "" {
		at := header + 4 + 20 + 112 + 4*8 // entry 4, by hand
		binary.LittleEndian.PutUint32(b[at:], uint32(len(b)))
		binary.LittleEndian.PutUint32(b[at+4:], uint32(len(signature)))
	}
	return append(b, signature+after...)
}

func TestUnsigned(t *testing.T) {
	got, err := unsigned(signed("kernel", "by Debian", ""))
	if want := signed("kernel", "", ""); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %x, %v; want %x", got, err, want)
	}
	for name, b := range map[string][]byte{
		"not signed":       signed("kernel", "", ""),
		"not at its end":   signed("kernel", "by Debian", "more"),
		"no program":       []byte("MZ"),
		"a program of air": append(make([]byte, 0x3c), 0xff, 0xff, 0xff, 0xff),
	} {
		if _, err := unsigned(b); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestLinkKeepsTheOriginal cuts the signature off a kernel that is a link.
func TestLinkKeepsTheOriginal(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	kernel := filepath.Join("boot", "vmlinuz-1")
	if err := os.Mkdir(filepath.Join(from, "boot"), 0o755); err != nil {
		t.Fatal(err)
	}
	whole := signed("kernel", "by Debian", "")
	if err := os.WriteFile(filepath.Join(from, kernel), whole, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := link(to, from); err != nil {
		t.Fatal(err)
	}
	if err := unsignKernel(filepath.Join(to, "boot")); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string][]byte{from: whole, to: signed("kernel", "", "")} {
		if got, err := os.ReadFile(filepath.Join(dir, kernel)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: got %x, %v; want %x", dir, got, err, want)
		}
	}
}
