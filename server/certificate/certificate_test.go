package certificate_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/internal/atomicfile"
	"drover/server/certificate"
	"drover/tenants/pki"
)

// day is a clock that a test moves.
type day struct{ now time.Time }

// open returns an authority in a directory, with names and a clock.
func open(t *testing.T, dir string, names *[]string, clock *day) *certificate.Own {
	t.Helper()
	o := &certificate.Own{Dir: dir, Names: func() []string { return *names }, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return clock.now }}
	if err := o.Open(); err != nil {
		t.Fatal(err)
	}
	return o
}

// verify reports why a client that trusts the certificate in a file of dir refuses one for a
// name.
func verify(t *testing.T, dir string, c *tls.Certificate, name string, now time.Time) error {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, certificate.OwnCert))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		t.Fatalf("no certificate: %s", text)
	}
	_, err = c.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: pool, CurrentTime: now})
	return err
}

// TestOwn: an authority is made once, for its owner alone. Its certificates follow the names of
// the server and are renewed before their end; the pin stays.
func TestOwn(t *testing.T) {
	dir, names, clock := t.TempDir(), []string{"10.28.0.2", "Drover.example.org"}, &day{time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)}
	o := open(t, dir, &names, clock)
	first := o.Current()
	for _, name := range names {
		if err := verify(t, dir, first, name, clock.now); err != nil {
			t.Error(err)
		}
	}
	if err := verify(t, dir, first, "10.28.0.3", clock.now); err == nil {
		t.Error("a name that the server does not have is in its certificate")
	}
	for file, want := range map[string]os.FileMode{certificate.OwnKey: 0o600, certificate.OwnCert: 0o644} {
		if info, err := os.Stat(filepath.Join(dir, file)); err != nil || info.Mode() != want {
			t.Errorf("%s: got %v, %v", file, info, err)
		}
	}
	pin := certificate.Pin(o.Pinned())
	if got := certificate.Pin(open(t, dir, &names, clock).Pinned()); got != pin {
		t.Errorf("after a restart the pin is %s, and was %s", got, pin)
	}

	clock.now = clock.now.Add(time.Hour)
	if o.Current() != first {
		t.Error("issued anew without a reason")
	}
	names = append(names, "10.28.0.3")
	clock.now = clock.now.Add(time.Second)
	second := o.Current()
	if err := verify(t, dir, second, "10.28.0.3", clock.now); err != nil {
		t.Error(err)
	}
	for range 100 { // a year, in which the server never restarts
		clock.now = clock.now.Add(4 * 24 * time.Hour)
		c := o.Current()
		if err := verify(t, dir, c, "10.28.0.2", clock.now); err != nil {
			t.Fatalf("%s: %v", clock.now, err)
		}
		if left := c.Leaf.NotAfter.Sub(clock.now); left < 29*24*time.Hour {
			t.Fatalf("%s: %s are left", clock.now, left)
		}
	}
	if got := certificate.Pin(o.Pinned()); got != pin || o.Current() == second {
		t.Errorf("got the pin %s, want %s; renewed: %v", got, pin, o.Current() != second)
	}
}

// TestOwnBroken: a file that is not that of an authority is named, never replaced, and not
// quoted.
func TestOwnBroken(t *testing.T) {
	good := t.TempDir()
	open(t, good, &[]string{"a"}, &day{time.Now()})
	text, err := os.ReadFile(filepath.Join(good, certificate.OwnKey))
	if err != nil {
		t.Fatal(err)
	}
	key, cert, _ := strings.Cut(string(text), "-----BEGIN CERTIFICATE")
	for _, broken := range []string{"", "secret", key, "-----BEGIN CERTIFICATE" + cert, cert + key} {
		dir := t.TempDir()
		file := filepath.Join(dir, certificate.OwnKey)
		if err := os.WriteFile(file, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		o := &certificate.Own{Dir: dir, Names: func() []string { return nil }, Log: slog.New(slog.DiscardHandler), Now: time.Now}
		err := o.Open()
		if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "from a backup") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v", broken, err)
		}
		if now, err := os.ReadFile(file); err != nil || string(now) != broken {
			t.Errorf("the file was changed: %q, %v", now, err)
		}
	}
	if _, err := certificate.ParseCert([]byte("x")); err == nil {
		t.Error("no error")
	}
	if entries, err := os.ReadDir(good); err != nil || !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == certificate.OwnCert }) {
		t.Errorf("got %v, %v", entries, err)
	}
}

// TestRenewedCertificate: a certificate that was renewed is in use without a restart. Files
// that do not fit together leave the one before in use, and are told.
func TestRenewedCertificate(t *testing.T) {
	dir, log := t.TempDir(), &fixture.Log{}
	k := &certificate.Files{Cert: filepath.Join(dir, "api.crt"), Key: filepath.Join(dir, "api.key"), Log: slog.New(slog.NewTextHandler(log, nil))}
	// renew makes a key and its certificate, and returns the latter.
	renew := func(certFile string) string {
		t.Helper()
		data, err := pki.NewAuthority("drover", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string][]byte{k.Key: data[pki.SigningKey], certFile: data[pki.SigningCert]} {
			if err := atomicfile.Write(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		block, _ := pem.Decode(data[pki.SigningCert])
		return string(block.Bytes)
	}
	first := renew(k.Cert)
	if err := k.Load(); err != nil || string(k.Current().Certificate[0]) != first {
		t.Fatalf("got %v", err)
	}
	second := renew(k.Cert)
	fixture.Eventually(t, "the second one", func() bool { return string(k.Current().Certificate[0]) == second })
	renew(filepath.Join(dir, "other.crt"))
	fixture.Eventually(t, "the error", func() bool {
		return string(k.Current().Certificate[0]) == second && strings.Contains(log.String(), "the new files are refused")
	})
	third := renew(k.Cert)
	fixture.Eventually(t, "the third one", func() bool { return string(k.Current().Certificate[0]) == third })
	if err := os.Remove(k.Key); err != nil {
		t.Fatal(err)
	}
	if string(k.Current().Certificate[0]) != third {
		t.Error("without files there is no certificate")
	}
}
