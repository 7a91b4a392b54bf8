package httpboot_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"drover/pools"
)

// TestInventory: the hardware of an unknown machine is taken from its address with its nonce,
// cleaned, before its boot is claimed; that of a declared node is not kept.
func TestInventory(t *testing.T) {
	got := map[pools.MAC]pools.Inventory{}
	w := newWorld(t, func(w *world) {
		w.OnInventory = func(mac pools.MAC, v pools.Inventory) { got[mac] = v }
	})
	n := w.boot(t, macUnknown, "127.0.0.3")
	const body = `{"vendor": "HPE\u001b[2J", "cpus": -4, "memory": 1024, "nics": [{"name": "eth0", "mac": "52:54:00:77:01:01", "link": true}]}`
	for _, tt := range []struct {
		name, body string
		code       int
	}{
		{"good", body, 204},
		{"again", body, 204},
		{"no JSON", "x", 400},
		{"an unknown field", `{"vendor": "HPE", "root": true}`, 400},
		{"too large", `{"vendor": "` + strings.Repeat("x", pools.MaxInventory) + `"}`, 413},
	} {
		if resp := n.post("inventory", tt.body); resp.Code != tt.code {
			t.Errorf("%s: got %d %s, want %d", tt.name, resp.Code, resp.Body, tt.code)
		}
	}
	if v := got[macUnknown]; v.Vendor != "HPE?[2J" || v.CPUs != 0 || v.Memory != 1024 || len(v.NICs) != 1 {
		t.Errorf("got %+v", v)
	}
	// Each text of a big machine has the greatest length, and needs escapes.
	text := strings.Repeat("\"", 64)
	big := pools.Inventory{Vendor: text, Product: text, Serial: text, UUID: text, Chassis: text, Slot: text, BIOS: text, CPU: text, CPUs: 1 << 16, Memory: 1 << 53}
	for range 16 {
		big.Disks = append(big.Disks, pools.InventoryDisk{Name: text, Model: text, Serial: text, Size: 1 << 53})
		big.NICs = append(big.NICs, pools.InventoryNIC{Name: text, MAC: text, Driver: text, Link: true, Speed: 1 << 24,
			LLDP: &pools.Neighbour{System: text, Chassis: text, Port: text, Description: text}})
	}
	large, err := json.Marshal(big)
	if err != nil {
		t.Fatal(err)
	}
	if resp := n.post("inventory", string(large)); resp.Code != 204 || !reflect.DeepEqual(got[macUnknown], big) {
		t.Errorf("%d bytes of a big machine: got %d %s, %+v", len(large), resp.Code, resp.Body, got[macUnknown])
	}
	// Not from another address, not with another nonce, and not once the boot is claimed.
	other := *n
	other.from = "127.0.0.2"
	if resp := other.post("inventory", body); resp.Code == 204 {
		t.Error("another address may report")
	}
	other = *n
	other.nonce = strings.Repeat("0", 32)
	if resp := other.post("inventory", body); resp.Code != 403 {
		t.Errorf("another nonce: got %d", resp.Code)
	}
	var c pools.NodeConfig
	n.ask(t, "config", &c)
	if resp := n.post("inventory", body); resp.Code != 403 {
		t.Errorf("after the claim: got %d", resp.Code)
	}
	declared := w.boot(t, macBIOS, "127.0.0.1")
	if resp := declared.post("inventory", body); resp.Code != 204 || len(got) != 1 {
		t.Errorf("of a declared node: got %d, %v", resp.Code, got)
	}
}
