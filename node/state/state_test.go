package state

import (
	"crypto/sha256"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/boots"
)

const testNonce = "00112233445566778899aabbccddeeff"

var testMAC = pools.MAC{0x52, 0x54, 0, 0x77, 0, 1}

func testState() Boot {
	return Boot{URL: "http://10.77.0.1:80", MAC: testMAC, Node: "cart01", Pool: "compute", Address: netip.MustParseAddr("10.77.0.11")}
}

func TestState(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	s := testState()
	s.Nonce, s.Key = testNonce, []byte("not a key")
	if err := s.Save(dir); err != nil {
		t.Fatal(err)
	}
	fixture.WantMode(t, dir, 0o700|os.ModeDir)
	fixture.WantMode(t, filepath.Join(dir, "boot.json"), 0o600)
	got, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got.Node != s.Node || got.Address != s.Address || got.Nonce != s.Nonce {
		t.Errorf("got %+v, want %+v", got, s)
	}
	if _, _, err := got.Server(); err == nil || err.Error() != "the boot's key is damaged" {
		t.Errorf("damaged key: got %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "boot.json"), []byte(`{"nonce": "`+testNonce), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil || strings.Contains(err.Error(), testNonce) {
		t.Errorf("damaged file: got %v, want an error without the nonce", err)
	}
}

func TestCopySelf(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := CopySelf(dir); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "drover-init")
	fixture.WantMode(t, copied, 0o755)
	if fixture.ReadFile(t, copied) != fixture.ReadFile(t, self) {
		t.Error("the copy differs")
	}
}

// The agent does as drover-init was told: events go by TLS, to the pinned key only, and are
// signed with the key of the boot.
func TestServer(t *testing.T) {
	var got []string
	signed := false
	key := []byte("the key of this boot")
	h := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.URL.Path)
		signed = pools.IsSigned(key, body, r.Header.Get(pools.SignatureHeader))
	}))
	h.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that clients break off
	h.StartTLS()
	defer h.Close()
	private, err := pools.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	secret, err := private.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	pin := sha256.Sum256(h.Certificate().RawSubjectPublicKeyInfo)
	send := func(pin []byte) error {
		t.Helper()
		dir := t.TempDir()
		s := Boot{URL: "http://127.0.0.1:1", Secure: h.URL, Pin: pin, MAC: testMAC, Nonce: testNonce, Key: secret, Events: key}
		if err := s.Save(dir); err != nil {
			t.Fatal(err)
		}
		if s, err = Load(dir); err != nil {
			t.Fatal(err)
		}
		agent, _, err := s.Server()
		if err != nil {
			t.Fatal(err)
		}
		defer agent.Client.CloseIdleConnections()
		return agent.SendEvent(t.Context(), boots.Event{Step: boots.StepOnline})
	}
	if err := send(pin[:]); err != nil || !signed {
		t.Errorf("got %v, signed %v", err, signed)
	}
	if err := send(make([]byte, 32)); err == nil {
		t.Error("the agent takes any key")
	}
	if want := []string{"/node/" + testMAC.Dashed() + "/events"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestScriptEnv(t *testing.T) {
	s := testState()
	s.Pool, s.Env = "compute", []string{"RACK=r1"}
	want := []string{"RACK=r1", "DROVER_NODE=cart01", "DROVER_POOL=compute", "DROVER_MAC=52:54:00:77:00:01", "DROVER_ADDRESS=10.77.0.11", "DROVER_URL=http://10.77.0.1:80", "DROVER_STAGE=online"}
	if got := s.ScriptEnv(pools.Online); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
