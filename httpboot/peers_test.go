package httpboot_test

import (
	"errors"
	"strings"
	"testing"

	"drover/pools"
)

// Another server is answered by what the server has for it, and a request without the right
// signature is refused. A lone server has no such path.
func TestPeers(t *testing.T) {
	w := newWorld(t, nil)
	if r := w.do("127.0.0.9", "POST", pools.PeersPath, "{}"); r.Code != 404 && r.Code != 405 {
		t.Errorf("a lone server answers %d", r.Code)
	}
	var got []string
	w = newWorld(t, func(w *world) {
		w.Peers = func(body []byte, signature string) ([]byte, string, error) {
			got = append(got, string(body)+" "+signature)
			if signature != "right" {
				return nil, "", errors.New("not signed")
			}
			return []byte("answer"), "of the answer", nil
		}
	})
	for _, tt := range []struct {
		body, signature string
		status          int
		want            string
	}{
		{"{}", "right", 200, "answer"},
		{"{}", "wrong", 403, "not signed"},
		{strings.Repeat("x", pools.MaxPeerBody+1), "right", 413, "more than"},
	} {
		r := w.do("127.0.0.9", "POST", pools.PeersPath, tt.body, pools.SignatureHeader, tt.signature)
		if r.Code != tt.status || !strings.Contains(r.Body.String(), tt.want) {
			t.Errorf("%.10q, %s: got %d %s, want %d %s", tt.body, tt.signature, r.Code, r.Body, tt.status, tt.want)
		}
		if tt.status == 200 && r.Header().Get(pools.SignatureHeader) != "of the answer" {
			t.Error("the answer is not signed")
		}
	}
	if len(got) != 2 {
		t.Errorf("asked %d times, want 2", len(got))
	}
}
