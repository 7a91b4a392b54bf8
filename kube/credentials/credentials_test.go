package credentials_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/kube/credentials"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// token makes a token with claims. Nobody checks its signature here.
func token(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("signature"))
}

// of makes a token of drover's ServiceAccount.
func of(end time.Time) string {
	return token(fmt.Sprintf(`{"sub":"system:serviceaccount:kube-system:drover","iat":%d,"exp":%d,"kubernetes.io":{"namespace":"kube-system"}}`, now.Unix(), end.Unix()))
}

func TestParse(t *testing.T) {
	const sub, times = `"sub":"system:serviceaccount:kube-system:drover"`, `"iat":1700000000,"exp":1700003600`
	good := token("{" + sub + "," + times + "}")
	for _, tt := range []struct {
		name, token string
		ok          bool
	}{
		{"good", good, true},
		{"nothing", "", false},
		{"a bootstrap token", "aaaaaa.0123456789abcdef", false},
		{"of a user", token(`{"sub":"alice",` + times + "}"), false},
		{"without a name", token(`{"sub":"system:serviceaccount:kube-system:",` + times + "}"), false},
		{"without an end", token("{" + sub + `,"iat":1700000000}`), false},
		{"without a begin", token("{" + sub + `,"exp":1700003600}`), false},
		{"ends before it begins", token("{" + sub + `,"iat":1700003600,"exp":1700000000}`), false},
		{"of a pod", token("{" + sub + "," + times + `,"kubernetes.io":{"pod":{"name":"p"}}}`), false},
		{"of a Secret", token("{" + sub + "," + times + `,"kubernetes.io":{"secret":{"name":"s"}}}`), false},
		{"of nothing else", token("{" + sub + "," + times + `,"kubernetes.io":{"serviceaccount":{"name":"drover"}}}`), true},
		{"with another line", good + "\nusers: []", false},
		{"huge", token("{" + sub + "," + times + `,"x":"` + strings.Repeat("x", 20<<10) + `"}`), false},
		{"not JSON", "aaaa.bbbb.cccc", false},
	} {
		c, ok := credentials.Parse(tt.token)
		if ok != tt.ok || ok && (c.Account != credentials.Drover || c.End.Sub(c.Begin) != time.Hour) {
			t.Errorf("%s: got %+v, %v", tt.name, c, ok)
		}
	}
}

func TestRenewAt(t *testing.T) {
	if got := credentials.RenewAt(now, now.Add(3*time.Hour)); !got.Equal(now.Add(2 * time.Hour)) {
		t.Errorf("got %s", got)
	}
}

// TestStore: a renewed token lasts across restarts, counts only for the token that it
// replaces, and is dropped when it has ended.
func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	clock := now
	open := func() *credentials.Store {
		t.Helper()
		s, err := credentials.Open(path, func() time.Time { return clock })
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	want := func(s *credentials.Store, cluster, given, want string) {
		t.Helper()
		if got := s.Token(cluster, given); got != want {
			t.Errorf("%s: got %q, want %q", cluster, got, want)
		}
	}
	a, b := of(now.Add(time.Hour)), of(now.Add(2*time.Hour))
	s := open()
	want(s, "a", "", "")
	if err := errors.Join(s.Set("a", "given", a), s.Set("b", "given", b)); err != nil {
		t.Fatal(err)
	}
	fixture.WantMode(t, path, 0o600)
	s = open()
	want(s, "a", "given", a)
	want(s, "b", "given", b)
	want(s, "a", "another", "")
	want(s, "c", "given", "")
	if text := fixture.ReadFile(t, path); strings.Contains(text, "given") {
		t.Errorf("it has the token of the kubeconfig: %s", text)
	}
	clock = now.Add(90 * time.Minute)
	if err := s.Set("c", "given", of(now.Add(3*time.Hour))); err != nil {
		t.Fatal(err)
	}
	s = open()
	want(s, "a", "given", "")
	want(s, "b", "given", b)
	for _, text := range []string{"{", "null", `["` + a + `"]`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := credentials.Open(path, time.Now)
		if text != "null" && err == nil || err != nil && strings.Contains(err.Error(), a) {
			t.Errorf("%s: %v", text, err)
		}
		want(s, "b", "given", "")
		if err := s.Set("b", "given", b); err != nil {
			t.Error(err)
		}
	}
}

// TestRewrite: only the token changes in a kubeconfig, which no other user can read
// afterwards; a link, and a file without the old token, stay as they are.
func TestRewrite(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	const text = "# mine\nusers: [{name: drover, user: {token: %s}}]\n"
	old, next := of(now.Add(time.Hour)), of(now.Add(2*time.Hour))
	put := func(name, text string, mode fs.FileMode) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path(name), []byte(text), mode), os.Chmod(path(name), mode)); err != nil {
			t.Fatal(err)
		}
	}
	put("file", fmt.Sprintf(text, old), 0o644)
	if err := credentials.Rewrite(path("file"), old, next); err != nil {
		t.Fatal(err)
	}
	if got := fixture.ReadFile(t, path("file")); got != fmt.Sprintf(text, next) {
		t.Errorf("got %s", got)
	}
	fixture.WantMode(t, path("file"), 0o640)

	put("target", fmt.Sprintf(text, old), 0o600)
	put("replaced", fmt.Sprintf(text, next), 0o600)
	put("twice", fmt.Sprintf(text, old)+fmt.Sprintf(text, old), 0o600)
	if err := os.Symlink("target", path("link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "replaced", "twice"} {
		before := fixture.ReadFile(t, path(name))
		if err := credentials.Rewrite(path(name), old, of(now.Add(3*time.Hour))); !errors.Is(err, credentials.ErrForeign) {
			t.Errorf("%s: got %v", name, err)
		}
		if got := fixture.ReadFile(t, path(name)); got != before {
			t.Errorf("%s: changed to %s", name, got)
		}
	}
	if err := credentials.Rewrite(path("missing"), old, next); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
