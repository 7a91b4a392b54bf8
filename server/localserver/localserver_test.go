package localserver_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/server/certificate"
	"drover/server/localserver"
	"drover/tenants/pki"
)

// TestURL: the host of a server reaches it at the address of its listener, or at its loopback.
func TestURL(t *testing.T) {
	dir := t.TempDir()
	for listener, want := range map[string]string{
		"127.0.0.1:8443":   "http://127.0.0.1:8443",
		"0.0.0.0:8443":     "http://127.0.0.1:8443",
		"[::]:443":         "http://127.0.0.1:443",
		"10.28.0.2:8443":   "http://10.28.0.2:8443",
		"[fd00:28::2]:844": "http://[fd00:28::2]:844",
	} {
		addr, err := net.ResolveTCPAddr("tcp", listener)
		if err != nil {
			t.Fatal(err)
		}
		if err := localserver.Write(dir, addr, ""); err != nil {
			t.Fatal(err)
		}
		if s, pin, err := localserver.Read(dir); err != nil || s.URL != want || s.Certificate != "" || pin != "" {
			t.Errorf("%s: got %+v, %q, %v, want %s", listener, s, pin, err, want)
		}
	}
}

// TestRead: the pin is that of the certificate as it is now. A file that is not as Write makes it
// is named.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := localserver.Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before the first start: %v", err)
	}
	cert := filepath.Join(dir, "api.crt")
	if err := localserver.Write(dir, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, cert); err != nil {
		t.Fatal(err)
	}
	refused := func(what, want string) {
		t.Helper()
		if _, _, err := localserver.Read(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", what, err, want)
		}
	}
	refused("no certificate", cert)
	if err := os.WriteFile(cert, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("a broken certificate", cert)
	authority, err := pki.NewAuthority("drover", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	text := authority[pki.SigningCert]
	if err := os.WriteFile(cert, text, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := certificate.ParseCert(text)
	if err != nil {
		t.Fatal(err)
	}
	if s, pin, err := localserver.Read(dir); err != nil || s.URL != "https://127.0.0.1:1" || pin != certificate.Pin(c) {
		t.Errorf("got %+v, %s, %v", s, pin, err)
	}
	file := filepath.Join(dir, localserver.File)
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("a damaged file", file+" is damaged")
}
