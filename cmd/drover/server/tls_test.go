package server

import (
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drover/e2e/farmtest"
	"drover/e2e/fixture"
	"drover/httpboot"
	"drover/pools"
)

// The names in the config are names of the people-facing listener, besides those that it
// knows itself (low finding: DNS rebinding).
func TestHosts(t *testing.T) {
	_, live := farmtest.Open(t, testConfig)
	for api, want := range map[string][]string{
		"127.0.0.1:8443":      {"10.28.0.2", "127.0.0.1"},
		"Drover.example:8443": {"10.28.0.2", "drover.example"},
		":8443":               {"10.28.0.2"},
	} {
		if got := hosts(pools.Server{API: api}, live.Farm()); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", api, got, want)
		}
	}
}

// TestRenewedCertificate: a certificate that was renewed is in use without a restart. Files
// that do not fit together leave the one before in use, and are told.
func TestRenewedCertificate(t *testing.T) {
	dir, log := t.TempDir(), &fixture.Log{}
	k := &keyPair{cert: filepath.Join(dir, "api.crt"), key: filepath.Join(dir, "api.key"), log: slog.New(slog.NewTextHandler(log, nil))}
	// renew makes a key and its certificate, and returns the latter.
	renew := func(certFile string) string {
		t.Helper()
		if err := os.RemoveAll(k.key); err != nil {
			t.Fatal(err)
		}
		pair, _, err := httpboot.NodeKey(k.key)
		if err != nil {
			t.Fatal(err)
		}
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
		if err := os.WriteFile(certFile, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return string(pair.Certificate[0])
	}
	first := renew(k.cert)
	if err := k.load(); err != nil || string(k.current().Certificate[0]) != first {
		t.Fatalf("got %v", err)
	}
	second := renew(k.cert)
	fixture.Eventually(t, "the second one", func() bool { return string(k.current().Certificate[0]) == second })
	renew(filepath.Join(dir, "other.crt"))
	fixture.Eventually(t, "the error", func() bool {
		return string(k.current().Certificate[0]) == second && strings.Contains(log.String(), "the new files are refused")
	})
	third := renew(k.cert)
	fixture.Eventually(t, "the third one", func() bool { return string(k.current().Certificate[0]) == third })
	if err := os.Remove(k.key); err != nil {
		t.Fatal(err)
	}
	if string(k.current().Certificate[0]) != third {
		t.Error("without files there is no certificate")
	}
}
