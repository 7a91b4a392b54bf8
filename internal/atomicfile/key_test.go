package atomicfile_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/internal/atomicfile"
)

// TestKey: each wrong byte of a key file is found, and files without a checksum are read.
func TestKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nodes.key")
	want := []byte(strings.Repeat("KEY2", 13))
	read := func(renew bool) ([]byte, error) {
		check := func([]byte) error { return nil }
		if !renew {
			check = nil
		}
		key, _, err := atomicfile.ReadOrMakeKey(path, check, func() ([]byte, error) { return want, nil })
		return key, err
	}
	write := func(data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if key, err := read(false); err != nil || !bytes.Equal(key, want) {
		t.Fatalf("a new one: %q, %v", key, err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := range good {
		for _, bits := range []byte{1, 0x20, 0x80, 0xff, good[at], good[at] ^ '\n', good[at] ^ ' '} {
			if bits == 0 {
				continue
			}
			bad := bytes.Clone(good)
			bad[at] ^= bits
			write(bad)
			if key, err := read(true); !errors.Is(err, atomicfile.ErrDamagedKey) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "restore") {
				t.Fatalf("byte %d as %q: got %q, %v", at, bad[at], key, err)
			}
		}
	}
	for _, old := range []string{string(want), strings.Repeat("\x01", 32), "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\n", strings.Repeat("0f", 32)} {
		write([]byte(old))
		if key, err := read(false); err != nil || string(key) != old {
			t.Errorf("of an earlier version: %q, %v", key, err)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != old {
			t.Errorf("the file changes to %q, %v", data, err)
		}
		if key, err := read(true); err != nil || string(key) != old {
			t.Errorf("of an earlier version: %q, %v", key, err)
		}
		data, err := os.ReadFile(path)
		if err != nil || len(data) <= len(old) {
			t.Errorf("the file stays %q, %v", data, err)
		}
		if key, err := read(false); err != nil || string(key) != old {
			t.Errorf("written again: %q, %v", key, err)
		}
	}
}

// TestKeyOfNobody: a file that is no key is left as it is.
func TestKeyOfNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nodes.key")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	wrong := errors.New("too short")
	_, _, err := atomicfile.ReadOrMakeKey(path, func([]byte) error { return wrong }, func() ([]byte, error) { return nil, nil })
	if !errors.Is(err, wrong) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "x" {
		t.Errorf("the file changes to %q, %v", data, err)
	}
}
