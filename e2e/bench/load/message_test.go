package load_test

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/e2e/bench/load"
)

var (
	relay   = netip.MustParseAddr("10.99.0.2")
	server  = netip.MustParseAddr("10.99.0.1")
	address = netip.MustParseAddr("10.99.1.0")
)

// recorded is a message of perfdhcp 2.2.0, from the wire.
func recorded(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".hex"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMessagesAreThoseOfPerfdhcp(t *testing.T) {
	tests := []struct {
		name         string
		kind         byte
		machine, xid uint32
	}{
		{"discover", 1, 1, 1},
		{"request", 3, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := load.Message(tt.kind, relay, address, server, tt.machine, tt.xid)
			if want := recorded(t, tt.name); !bytes.Equal(got, want) {
				t.Errorf("got\n%x\nwant\n%x", got, want)
			}
		})
	}
}

// answer is a server's message with these options.
func answer(options ...byte) []byte {
	b := make([]byte, 240, 300)
	b[0] = 2
	copy(b[4:], []byte{1, 2, 3, 4})
	copy(b[16:], address.AsSlice())
	return append(b, options...)
}

func TestParse(t *testing.T) {
	none := netip.AddrFrom4([4]byte{})
	tests := []struct {
		name   string
		in     []byte
		kind   byte
		server netip.Addr
		bad    bool
	}{
		{"an OFFER", answer(53, 1, 2, 54, 4, 10, 99, 0, 1, 255), 2, server, false},
		{"padding, and an unknown option", answer(0, 0, 224, 2, 9, 9, 53, 1, 5, 255), 5, none, false},
		{"no END", answer(53, 1, 6), 6, none, false},
		{"what follows END is not read", answer(53, 1, 2, 255, 53, 1, 5), 2, none, false},
		{"no type", answer(54, 4, 10, 99, 0, 1, 255), 0, none, true},
		{"an option longer than the message", answer(53, 1, 2, 54, 4, 10), 0, none, true},
		{"half an option", answer(53), 0, none, true},
		{"too short", answer()[:239], 0, none, true},
		{"a request", load.Message(1, relay, address, server, 0, 0), 0, none, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			xid, kind, yiaddr, id, err := load.Parse(tt.in)
			if (err != nil) != tt.bad {
				t.Fatalf("got error %v, want one: %t", err, tt.bad)
			}
			if !tt.bad && (xid != 0x01020304 || kind != tt.kind || yiaddr != address || id != tt.server) {
				t.Errorf("got %#x, %d, %s, %s; want %#x, %d, %s, %s", xid, kind, yiaddr, id, 0x01020304, tt.kind, address, tt.server)
			}
		})
	}
}
