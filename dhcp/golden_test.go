package dhcp_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/e2e/fixture"
	"drover/pools/resolve"
)

// recordings names the recordings of real clients in testdata/recorded: the
// first DISCOVER, and the REQUEST that follows it. e2e/record made them.
var recordings = []string{
	"aavmf-pxe", "dhclient", "dhcpcd", "ipxe-bios", "ipxe-efi", "linux-ipconfig", "ovmf-http", "ovmf-pxe",
	"snponly-efi", "systemd-networkd", "u-boot", "u-boot-efi", "udhcpc",
}

// TestRecorded compares the answers to the recordings byte for byte.
func TestRecorded(t *testing.T) {
	for _, name := range recordings {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			s := goldenServer()
			for _, request := range recorded(name) {
				got.Write(answered(t, s, request))
			}
			fixture.Golden(t, "testdata/"+name+".golden", got.Bytes())
		})
	}
	files, err := filepath.Glob("testdata/recorded/*.hex")
	if len(files) != len(recordings) || err != nil {
		t.Errorf("testdata has recordings of %d clients, %d are answered here, %v", len(files), len(recordings), err)
	}
}

// made returns first DISCOVERs of clients without a recording: a BIOS PXE ROM
// other than iPXE, with the options that such ROMs are known to send, and a
// machine behind a switch that is a relay.
func made() map[string]*dhcpv4.DHCPv4 {
	rom := option(55, 1, 2, 3, 4, 5, 6, 12, 13, 15, 17, 18, 22, 23, 28, 40, 41, 42, 43, 50, 51, 54, 58, 59, 60, 66, 67, 97, 128, 129, 130, 131, 132, 133, 134, 135)
	uuid := option(97, 0, 0x33, 0x38, 0x30, 0x34, 0x31, 0x35, 0x43, 0x5a, 0x32, 0x30, 0x37, 0x30, 0x36, 0x54, 0x4e, 0x31)
	hardwareID := option(61, append([]byte{1}, stray[:]...)...)
	return map[string]*dhcpv4.DHCPv4{
		"pxe-rom": message(web1, discover, text(60, "PXEClient:Arch:00000:UNDI:002001"), arch(0), option(94, 1, 2, 1), uuid, rom,
			dhcpv4.WithBroadcast(true)),
		"relayed": message(stray, discover, giaddr("10.28.0.254"), option(82, 1, 4, 'g', 'e', '-', '7'), hardwareID,
			option(55, 1, 3, 6)),
	}
}

func TestMade(t *testing.T) {
	for name, d := range made() {
		t.Run(name, func(t *testing.T) {
			fixture.Golden(t, "testdata/"+name+".golden", answered(t, goldenServer(), d.ToBytes()))
		})
	}
}

// firstDiscovers returns the first DISCOVERs of all clients: the recorded ones,
// and those of made.
func firstDiscovers() map[string]*dhcpv4.DHCPv4 {
	all := made()
	for _, name := range recordings {
		d, err := dhcpv4.FromBytes(recorded(name)[0])
		if err != nil {
			panic(err)
		}
		all[name] = d
	}
	return all
}

func goldenServer() *responder {
	s, _ := newServer()
	s.Farm = farm{Options: []resolve.Option{{Code: 42, Data: []byte{10, 28, 0, 1}}}}
	return s
}

// recorded returns the messages of a recording: a DISCOVER and a REQUEST.
func recorded(name string) [][]byte {
	text, err := os.ReadFile(filepath.Join("testdata/recorded", name+".hex"))
	if err != nil {
		panic(err)
	}
	_, discover, _ := strings.Cut(string(text), "\n# DISCOVER\n")
	discover, request, ok := strings.Cut(discover, "\n# REQUEST\n")
	if !ok {
		panic(name + ".hex is not of a DISCOVER and a REQUEST")
	}
	return [][]byte{undump(discover), undump(request)}
}

// undump returns the bytes of a dump by hex.Dump.
func undump(dump string) []byte {
	var b []byte
	for line := range strings.Lines(dump) {
		octets, _, _ := strings.Cut(line, "|") // the text column
		fields := strings.Fields(octets)
		if len(fields) == 0 {
			continue
		}
		row, err := hex.DecodeString(strings.Join(fields[1:], ""))
		if err != nil || fields[0] != fmt.Sprintf("%08x", len(b)) {
			panic("hex dump: " + line)
		}
		b = append(b, row...)
	}
	return b
}

// answered returns a request and its reply, each as a readable summary and as a
// hex dump.
func answered(t *testing.T, s *responder, request []byte) []byte {
	t.Helper()
	d, err := dhcpv4.FromBytes(slices.Clone(request))
	if err != nil {
		t.Fatal(err)
	}
	r, x := s.Reply(d, noon)
	if r == nil {
		t.Fatalf("%s: got silence, %q: %v", x.Type, x.Decision, x.Err)
	}
	var b bytes.Buffer
	to, hw := s.destination()
	fmt.Fprintf(&b, "# request\n%s\n%s\n", d.Summary(), hex.Dump(request))
	fmt.Fprintf(&b, "# reply, sent to %s %s\n%s\n%s\n", to, hw, on(t, r).Summary(), hex.Dump(r.ToBytes()))
	return b.Bytes()
}
