package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// capture writes a capture file of UDP datagrams to port 67.
func capture(t *testing.T, payloads ...[]byte) string {
	t.Helper()
	var b bytes.Buffer
	le := binary.LittleEndian
	header := make([]byte, 24)
	le.PutUint32(header, 0xa1b2c3d4)
	le.PutUint32(header[20:], 1) // Ethernet
	b.Write(header)
	for _, p := range payloads {
		frame := make([]byte, 14+20+8, 14+20+8+len(p))
		frame[12], frame[13] = 0x08, 0x00 // IPv4
		ip := frame[14:]
		ip[0], ip[9] = 0x45, 17
		binary.BigEndian.PutUint16(ip[2:], uint16(20+8+len(p)))
		binary.BigEndian.PutUint16(ip[22:], 67)
		frame = append(frame, p...)
		record := make([]byte, 16)
		le.PutUint32(record[8:], uint32(len(frame)))
		le.PutUint32(record[12:], uint32(len(frame)))
		b.Write(record)
		b.Write(frame)
	}
	path := filepath.Join(t.TempDir(), "wire.pcap")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func message(t *testing.T, kind dhcpv4.MessageType, class string, xid byte) []byte {
	t.Helper()
	m, err := dhcpv4.New(dhcpv4.WithMessageType(kind), dhcpv4.WithOption(dhcpv4.OptClassIdentifier(class)))
	if err != nil {
		t.Fatal(err)
	}
	m.TransactionID = dhcpv4.TransactionID{0, 0, 0, xid}
	return m.ToBytes()
}

// TestSearch finds the DISCOVER and the REQUEST of iPXE behind those of the
// firmware that loaded it.
func TestSearch(t *testing.T) {
	const discover, request = dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeRequest
	all := [][]byte{
		message(t, discover, "firmware", 1), message(t, request, "firmware", 1), []byte("rubbish"),
		message(t, request, "ipxe", 2), message(t, discover, "ipxe", 3), message(t, discover, "ipxe", 4),
		message(t, request, "ipxe", 4), message(t, request, "ipxe", 5),
	}
	for n, want := range map[int]int{0: 0, 4: 0, 5: 1, 6: 1, 7: 2, 8: 2} { // by what was captured so far
		got, err := search(capture(t, all[:n]...), class("ipxe"))
		if err != nil || len(got) != want {
			t.Errorf("of %d datagrams: got %d messages, want %d, %v", n, len(got), want, err)
		}
		for i, m := range got {
			if !bytes.Equal(m, all[[]int{4, 6}[i]]) {
				t.Errorf("of %d datagrams: message %d is\n%s", n, i, hex.Dump(m))
			}
		}
	}
}

func TestText(t *testing.T) {
	r := recording{client: "a client", version: "client 1.0", how: "started with: client", messages: [][]byte{{1}, {3, 'x'}}}
	const want = `# a client
# client 1.0
# started with: client

# DISCOVER
00000000  01                                                |.|

# REQUEST
00000000  03 78                                             |.x|
`
	if got := string(r.text()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestChoose(t *testing.T) {
	if all, err := choose(nil); len(all) != len(clients) || err != nil {
		t.Errorf("got %d clients, want all %d, %v", len(all), len(clients), err)
	}
	if some, err := choose([]string{"u-boot", "dhcpcd"}); err != nil || len(some) != 2 || some[0].name != "u-boot" {
		t.Errorf("got %v, %v", some, err)
	}
	if _, err := choose([]string{"nobody"}); err == nil || !strings.Contains(err.Error(), "ipxe-bios") {
		t.Errorf("got error %v, want one that names the clients", err)
	}
}
