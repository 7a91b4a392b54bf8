package httpboot_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"drover/pools"
)

// A node joins the cluster of its pool. It cannot name another one, nor be asked
// for from another node's address.
func TestJoinOfAnotherTenant(t *testing.T) {
	w := newWorld(t, nil)
	n := w.boot(t, macUnknown, "127.0.0.3")
	body, err := json.Marshal(map[string]any{"publicKey": n.key.PublicKey().Bytes(), "cluster": "tenant-b"})
	if err != nil {
		t.Fatal(err)
	}
	if resp := n.post("join", string(body)); resp.Code != http.StatusBadRequest {
		t.Errorf("a join that names a cluster: %d", resp.Code)
	}
	own := n.from
	n.from = "127.0.0.9"
	if resp := n.post("join", keyBody(n.key)); resp.Code != http.StatusForbidden {
		t.Errorf("a join from another address: %d", resp.Code)
	}
	n.from = own
	n.ask(t, "join", &pools.JoinConfig{})
}
