package httpboot_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/pem"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/httpboot"
	"drover/pools"
)

func nodeKey(t *testing.T, file string) *httpboot.TLS {
	t.Helper()
	cert, _, err := httpboot.NodeKey(file)
	if err != nil {
		t.Fatal(err)
	}
	return &httpboot.TLS{Addr: "127.0.0.1:0", Certificate: cert}
}

// listening is a server with both its listeners.
func listening(t *testing.T) (w *world, plain, secure net.Listener) {
	t.Helper()
	w = newWorld(t, func(w *world) { w.TLS = nodeKey(t, filepath.Join(t.TempDir(), "https.key")) })
	plain, err := w.Listen()
	if err != nil {
		t.Fatal(err)
	}
	secure, err = w.ListenTLS()
	if err != nil {
		t.Fatal(err)
	}
	return w, plain, secure
}

// A node gets its config by TLS from the server whose pin its script names, and
// nothing else that way.
func TestTLS(t *testing.T) {
	w, plain, secure := listening(t)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- w.Serve(ctx, plain, secure) }()
	n := w.boot(t, macBIOS, "127.0.0.1")
	_, script := get(t, "http://"+plain.Addr().String()+"/boot/"+macBIOS.Dashed())
	_, rest, _ := strings.Cut(string(script), "drover.https=https://10.28.0.2:8444 drover.pin=sha256:")
	pin := strings.Fields(rest + " ")[0]
	_, rest, _ = strings.Cut(string(script), "drover.nonce=")
	n.nonce = strings.Fields(rest + " ")[0]

	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	r, err := http.NewRequest("POST", "https://"+secure.Addr().String()+"/node/"+macBIOS.Dashed()+"/config", strings.NewReader(keyBody(n.key)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(pools.NonceHeader, n.nonce)
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	sum := sha256.Sum256(resp.TLS.PeerCertificates[0].RawSubjectPublicKeyInfo)
	if got := hex.EncodeToString(sum[:]); resp.StatusCode != 200 || got != pin {
		t.Errorf("got status %d from the owner of key %s, want 200 from %s", resp.StatusCode, got, pin)
	}
	for _, path := range []string{"/boot.ipxe", imagePath + "root.squashfs", "/boot/" + macBIOS.Dashed()} {
		resp, err := client.Get("https://" + secure.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 404 {
			t.Errorf("%s by TLS: got status %d, want 404", path, resp.StatusCode)
		}
	}
	stop()
	if err := wait(t, served, "the end of Serve"); err != nil {
		t.Error(err)
	}
}

// One listener that breaks ends both.
func TestTLSListenerBreaks(t *testing.T) {
	w, plain, secure := listening(t)
	served := make(chan error, 1)
	go func() { served <- w.Serve(context.Background(), plain, secure) }()
	secure.Close()
	if err := wait(t, served, "the end of Serve"); err == nil {
		t.Error("Serve ends without an error")
	}
}

// The key outlives the server, and so does its pin.
func TestNodeKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "https.key")
	one, err := nodeKey(t, file).Pin()
	if err != nil {
		t.Fatal(err)
	}
	two, err := nodeKey(t, file).Pin()
	if err != nil || one != two || len(one) != len("sha256:")+64 {
		t.Errorf("got pin %q, then %q, %v; want the same", one, two, err)
	}
	if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v; want 0600", fi.Mode(), err)
	}
	if files, _ := os.ReadDir(filepath.Dir(file)); len(files) != 1 {
		t.Errorf("got %d files, want the key alone", len(files))
	}
}

func TestNodeKeyMistakes(t *testing.T) {
	for name, tt := range map[string]struct {
		content []byte
		mode    os.FileMode
		want    string
	}{
		"readable by others": {nil, 0o644, "others can read it"},
		"empty":              {nil, 0o600, "holds no private key"},
		"another PEM":        {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), 0o600, "holds no private key"},
	} {
		file := filepath.Join(t.TempDir(), "https.key")
		if err := os.WriteFile(file, tt.content, tt.mode); err != nil {
			t.Fatal(err)
		}
		if _, _, err := httpboot.NodeKey(file); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
	_, isNew, err := httpboot.NodeKey(filepath.Join(t.TempDir(), "https.key"))
	if err != nil || !isNew {
		t.Errorf("no file: got new %v, %v; want a key", isNew, err)
	}
	if _, _, err := httpboot.NodeKey(filepath.Join(t.TempDir(), "none", "https.key")); err == nil {
		t.Error("no directory: got no error")
	}
}
