package httpboot_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"drover/pools"
)

// tapListener keeps every byte that the server sends.
type tapListener struct {
	net.Listener
	mu   sync.Mutex
	sent bytes.Buffer
}

func (l *tapListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &tapConn{c.(*net.TCPConn), l}, nil
}

// tapConn notes every byte that is written.
type tapConn struct {
	*net.TCPConn
	l *tapListener
}

// SyscallConn fails, so that files pass through Write, too.
func (c *tapConn) SyscallConn() (syscall.RawConn, error) { return nil, errors.ErrUnsupported }

func (c *tapConn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(struct{ io.Writer }{c}, r) }

func (c *tapConn) Write(b []byte) (int, error) {
	c.l.mu.Lock()
	c.l.sent.Write(b)
	c.l.mu.Unlock()
	return c.TCPConn.Write(b)
}

// A whole boot, with everything that can go wrong on the way: nothing that is
// secret can be read on the wire or in the log.
func TestNoSecretInClear(t *testing.T) {
	w := newWorld(t, nil)
	tap := &tapListener{}
	base := w.serve(t, func(l net.Listener) net.Listener { tap.Listener = l; return tap })

	_, script := get(t, base+"/boot/"+macBIOS.Dashed())
	_, rest, ok := strings.Cut(string(script), "drover.nonce=")
	if !ok {
		t.Fatalf("no nonce in\n%s", script)
	}
	nonce := strings.Fields(rest)[0]
	get(t, base+"/boot.ipxe")
	for name, want := range contents {
		if _, got := get(t, base+imagePath+name); !bytes.Equal(got, want) {
			t.Errorf("%s is damaged", name)
		}
	}
	key, err := pools.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	post := func(what, nonce, body string) (int, []byte) {
		t.Helper()
		r, err := http.NewRequest("POST", base+"/node/"+macBIOS.Dashed()+"/"+what, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(pools.NonceHeader, nonce)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, b
	}
	for _, step := range []string{"init", "network", "image", "config", "switch-root", "online", "joined"} {
		if code, b := post("events", nonce, `{"step":"`+step+`","uptime":1}`); code != 204 {
			t.Errorf("event %s: got status %d, %s", step, code, b)
		}
	}
	open := func(what string, v any) {
		t.Helper()
		code, sealed := post(what, nonce, keyBody(key))
		plain, err := pools.Open(key, macBIOS, what, sealed)
		if code != 200 || err != nil {
			t.Fatalf("%s: got status %d, %v", what, code, err)
		}
		if err := json.Unmarshal(plain, v); err != nil {
			t.Fatal(err)
		}
	}
	var config pools.NodeConfig
	var join pools.JoinConfig
	open("config", &config)
	open("join", &join)
	if config.Files["/etc/secret"].Content != fileSecret || !strings.Contains(join.Kubeadm, tokenSecret) {
		t.Fatal("the node did not get its secrets: the test would prove nothing")
	}
	thief, err := pools.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{keyBody(thief), "{}", "x"} {
		for _, n := range []string{nonce, strings.Repeat("b", 32), ""} {
			post("config", n, body)
			post("join", n, body)
			post("events", n, body)
		}
	}

	tap.mu.Lock()
	defer tap.mu.Unlock()
	sent, logged := tap.sent.Bytes(), []byte(w.log.String())
	if !bytes.Contains(sent, contents["kernel"]) || !bytes.Contains(sent, []byte(nonce)) {
		t.Fatal("the tap missed what was sent")
	}
	id, secret, _ := strings.Cut(tokenSecret, ".")
	_ = id // the token's id is public, it names the Secret
	for name, s := range map[string]string{"token": secret, "file": fileSecret} {
		for _, form := range forms(s) {
			if bytes.Contains(sent, form) {
				t.Errorf("%s on the wire in clear", name)
			}
			if bytes.Contains(logged, form) {
				t.Errorf("%s in the log", name)
			}
		}
	}
	for name, s := range map[string]string{"nonce": nonce, "key": string(key.PublicKey().Bytes())} {
		for _, form := range forms(s) {
			if bytes.Contains(logged, form) {
				t.Errorf("%s in the log", name)
			}
		}
	}
}

// forms returns s as it is, in hex and in base64 at each of the three ways
// that it can fall on base64's groups of three bytes.
func forms(s string) [][]byte {
	all := [][]byte{[]byte(s), []byte(hex.EncodeToString([]byte(s)))}
	for skip := range 3 {
		whole := (len(s) - skip) / 3 * 3
		all = append(all, []byte(base64.RawStdEncoding.EncodeToString([]byte(s[skip:skip+whole]))))
	}
	return all
}
