package auth_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/internal/atomicfile"
	"drover/pools"
	"drover/web/auth"
)

func tokens(t *testing.T, path string) *auth.Tokens {
	t.Helper()
	all, err := auth.OpenTokens(path, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(all.Close)
	return all
}

func create(t *testing.T, all *auth.Tokens, name string) string {
	t.Helper()
	made, err := all.Create(pools.APITokenRequest{Name: name, Role: pools.RoleViewer}, "the test")
	if err != nil {
		t.Fatal(err)
	}
	return made.Token
}

// valid reports whether a secret is one.
func valid(all *auth.Tokens, secret string) bool {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+secret)
	_, ok := auth.New(auth.Token{}, all, false, time.Now).Client(r)
	return ok
}

func names(all *auth.Tokens) (list []string) {
	for _, n := range all.List() {
		list = append(list, n.Name)
	}
	return list
}

// TestHungDisk: what a disk that hangs does not take ends all the same, and others need not wait.
func TestHungDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	all := tokens(t, path)
	frozen := make(chan struct{})
	revoked, rotated, kept := create(t, all, "revoked"), create(t, all, "rotated"), create(t, all, "kept")
	all.Close()
	all = tokens(t, path)
	all.SetDisk(time.Second, func(path string, data []byte, mode os.FileMode) error {
		<-frozen
		return atomicfile.Write(path, data, mode)
	})
	if err := all.Revoke("revoked"); !errors.Is(err, pools.ErrNotStored) || !strings.Contains(err.Error(), "is revoked") || !strings.Contains(err.Error(), "the disk hangs") {
		t.Errorf("revoke: got %v", err)
	}
	if _, err := all.Rotate("rotated"); !errors.Is(err, pools.ErrNotStored) || !strings.Contains(err.Error(), "rotate again") {
		t.Errorf("rotate: got %v", err)
	}
	if _, err := all.Create(pools.APITokenRequest{Name: "new", Role: pools.RoleViewer}, "the test"); !errors.Is(err, atomicfile.ErrHangs) {
		t.Errorf("create: got %v", err)
	}
	if valid(all, revoked) || valid(all, rotated) || !valid(all, kept) {
		t.Errorf("valid: revoked %t, rotated %t, kept %t", valid(all, revoked), valid(all, rotated), valid(all, kept))
	}
	if got := names(all); !slices.Equal(got, []string{"kept", "rotated"}) {
		t.Errorf("tokens: %q", got)
	}
	close(frozen)
	made, err := all.Rotate("rotated")
	if err != nil {
		t.Fatal(err)
	}
	again := tokens(t, path)
	if got := names(again); !slices.Equal(got, []string{"kept", "rotated"}) || !valid(again, made.Token) || !valid(again, kept) || valid(again, rotated) {
		t.Errorf("after a restart: %q", got)
	}
}

// TestFullDisk: what has ended does not return with a restart.
func TestFullDisk(t *testing.T) {
	if !fixture.OwnMounts(t) {
		return
	}
	dir := t.TempDir()
	fixture.SmallDisk(t, dir)
	path := filepath.Join(dir, "tokens")
	all := tokens(t, path)
	revoked, rotated, kept := create(t, all, "revoked"), create(t, all, "rotated"), create(t, all, "kept")
	fixture.FillDisk(t, filepath.Join(dir, "filler"))
	if err := all.Revoke("revoked"); err != nil {
		t.Errorf("revoke: %v", err)
	}
	if _, err := all.Rotate("rotated"); !errors.Is(err, pools.ErrNotStored) {
		t.Errorf("rotate: got %v", err)
	}
	again := tokens(t, path)
	if valid(again, revoked) || valid(again, rotated) || !valid(again, kept) {
		t.Errorf("after a restart: revoked %t, rotated %t, kept %t", valid(again, revoked), valid(again, rotated), valid(again, kept))
	}
	if err := os.Remove(filepath.Join(dir, "filler")); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the rest to be stored", func() bool {
		return slices.Equal(names(tokens(t, path)), []string{"kept", "rotated"})
	})
}
