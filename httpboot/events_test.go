package httpboot_test

import (
	"strings"
	"testing"

	"drover/pools"
)

// The config has the key with which the node signs its events. Low finding: the nonce was
// enough, which pods read in /proc/cmdline.
func TestSignedEvents(t *testing.T) {
	n := newWorld(t, func(w *world) { w.MaxEvents = 1 }).boot(t, macBIOS, "127.0.0.1")
	var c pools.NodeConfig
	n.ask(t, "config", &c)
	if string(c.EventKey) != string(eventKey(n.nonce)) {
		t.Fatalf("got event key %q", c.EventKey)
	}
	const event, repeated, failed = `{"step":"online","uptime":1}`, `{"step":"online","uptime":0}`, `{"step":"online","uptime":1,"error":"e"}`
	sign := func(body string) string { return pools.SignEvent(c.EventKey, []byte(body)) }
	for _, tt := range []struct {
		name, body, signature string
		status                int
	}{
		{"signed", event, sign(event), 204},
		{"with the signature of another", event, sign(repeated), 403},
		{"with another key", event, pools.SignEvent([]byte("guessed"), []byte(event)), 403},
		{"in upper case", event, strings.ToUpper(sign(event)), 403},
		{"with half a signature", event, sign(event)[:32], 403},
		{"repeated", repeated, sign(repeated), 204},
		{"repeated again", repeated, sign(repeated), 204},
		{"the last that the boot may report", event, sign(event), 204},
		{"one more", failed, sign(failed), 429},
	} {
		resp := n.do(n.from, "POST", "/node/"+n.mac.Dashed()+"/events", tt.body, pools.NonceHeader, n.nonce, pools.SignatureHeader, tt.signature)
		if resp.Code != tt.status {
			t.Errorf("%s: got status %d, %s; want %d", tt.name, resp.Code, resp.Body, tt.status)
		}
	}
}
