package pools_test

import (
	"bytes"
	"testing"

	"drover/pools"
)

func TestSeal(t *testing.T) {
	key, err := pools.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	m, secret := mac(t, "525400abcdef"), []byte("a token secret")
	sealed, err := pools.Seal(key.PublicKey().Bytes(), m, "join", secret)
	if err != nil || bytes.Contains(sealed, secret) {
		t.Fatalf("got %q, %v", sealed, err)
	}
	if got, err := pools.Open(key, m, "join", sealed); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("got %q, %v; want %q", got, err, secret)
	}
	saved, err := key.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	again, err := pools.LoadKey(saved)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := pools.Open(again, m, "join", sealed); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("with the key read back: got %q, %v; want %q", got, err, secret)
	}
	other, err := pools.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pools.Open(other, m, "join", sealed); err == nil {
		t.Error("another key opened the answer")
	}
	if _, err := pools.Open(key, m, "config", sealed); err == nil {
		t.Error("a join answer was opened as a config answer")
	}
	if _, err := pools.Seal([]byte("short"), m, "join", secret); err == nil {
		t.Error("a broken public key was accepted")
	}
}
