package auth_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/web/auth"
)

// TestDamage: one wrong byte in a file of secrets is an error with the file and the remedy, or
// changes nothing.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	one, many := filepath.Join(dir, "api.token"), filepath.Join(dir, "api-tokens.json")
	if _, isNew, err := auth.LoadToken(one); err != nil || !isNew {
		t.Fatal(err)
	}
	all := tokens(t, many)
	secret := create(t, all, "ci")
	for _, tt := range []struct {
		file string
		load func() error
	}{
		{one, func() error { _, _, err := auth.LoadToken(one); return err }},
		{many, func() error {
			all, err := auth.OpenTokens(many, time.Now)
			if err == nil && (!valid(all, secret) || all.List()[0].Name != "ci" || all.List()[0].Role != "viewer") {
				t.Error("another token, without a word")
			}
			return err
		}},
	} {
		good, err := os.ReadFile(tt.file)
		if err != nil {
			t.Fatal(err)
		}
		refused := 0
		for at := range good {
			for _, bits := range []byte{1, 2, 0x20, 0x80, 0xff} {
				bad := bytes.Clone(good)
				bad[at] ^= bits
				if err := os.WriteFile(tt.file, bad, 0o600); err != nil {
					t.Fatal(err)
				}
				err := tt.load()
				if err != nil && (!strings.Contains(err.Error(), tt.file) || !strings.Contains(err.Error(), "restore")) {
					t.Fatalf("byte %d as %q: %v", at, bad[at], err)
				}
				if err == nil && tt.file == one {
					t.Fatalf("byte %d as %q: no error", at, bad[at])
				}
				if err != nil {
					refused++
				}
			}
		}
		t.Logf("%s: %d of %d refused", tt.file, refused, 5*len(good))
	}
}

// TestOldToken: tokens of an operator's own, and of earlier versions, have no checksum.
func TestOldToken(t *testing.T) {
	one := filepath.Join(t.TempDir(), "api.token")
	for _, text := range []string{strings.Repeat("0f", 32), strings.Repeat("0f", 32) + "\n", "an-operators-own_token.of.32-characters"} {
		if err := os.WriteFile(one, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := auth.LoadToken(one); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := os.WriteFile(one, []byte(strings.Repeat("0f", 31)+"0X\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := auth.LoadToken(one); err == nil {
		t.Error("a damaged token of an earlier version: no error")
	}
}
