package dhcp_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
)

// oldROMs are the options of the first DISCOVER of two BIOS ROMs, in their order and to the byte, from
// public captures. Only the machine identifier (97) is another. They send 548 bytes with the
// broadcast flag.
var oldROMs = map[string]string{
	"Intel, of an ASRock board": "350101" + "37240102030405060b0c0d0f10111216171c28292a2b3233363a3b3c42438081828384858687" +
		"390204ec" + "61110000020003000400050006000700080009" + "5d020000" + "5e03010201" +
		"3c20505845436c69656e743a417263683a30303030303a554e44493a303032303031" + "ff",
	"HP, of a server": "350101" + "371801020305060b0c0d0f1011122b363c438081828384858687" +
		"390204ec" + "61110000000000303231323830413400000000" + "5d020000" + "5e03010201" +
		"3c20505845436c69656e743a417263683a30303030303a554e44493a303032303031" + "ff",
}

// romPacket returns a message of type kind of one of oldROMs. Behind the type it has more options.
func romPacket(options string, kind dhcpv4.MessageType, more ...byte) []byte {
	b, err := hex.DecodeString(options)
	if err != nil {
		panic(err)
	}
	b[2] = byte(kind)
	p := make([]byte, 548)
	copy(p, []byte{1, 1, 6, 0, 0x9b, 0x4e, 5, 0x57, 0, 8, 0x80})
	copy(p[28:], web1[:])
	at := 236 + copy(p[236:], []byte{0x63, 0x82, 0x53, 0x63})
	at += copy(p[at:], b[:3])
	at += copy(p[at:], more)
	copy(p[at:], b[3:])
	return p
}

// untilNUL returns the text up to the first NUL, as firmware in C reads it.
func untilNUL(b []byte) string {
	text, _, _ := bytes.Cut(b, []byte{0})
	return string(text)
}

// namesOf returns the names of the boot file that ROMs ask for, by how they read an answer.
func namesOf(packet []byte) map[string]string {
	names := map[string]string{"the file field": untilNUL(packet[108:236])}
	for b := packet[240:]; len(b) > 1 && b[0] != 255; {
		if b[0] == 0 {
			b = b[1:]
			continue
		}
		if n := 2 + int(b[1]); b[0] == 67 {
			names["option 67 by its length"] = string(b[2:n])
			names["option 67 up to a NUL"] = untilNUL(b[2:])
		}
		b = b[2+int(b[1]):]
	}
	return names
}

// TestFileOfOldROMs: a recorded ROM asks for the right file, however it reads the answer and whatever
// vendor options or long options the site has, and does not search for another boot server.
func TestFileOfOldROMs(t *testing.T) {
	for name, site := range map[string]string{
		"nothing":          "",
		"vendor options":   `43.1: 10.28.0.9, 43.128: "text:rack 7"`,
		"the whole option": `vendor-encap: "01:04:0a:1c:00:09"`,
		"those of a class": `43.1: x, "43.128@PXEClient*": "text:rack 7"`,
		"forced options":   `"force:43.128": "text:rack 7", "force:209": configs/common, "force:211": "uint32:30"`,
		"long options": `43.128: "text:` + string(bytes.Repeat([]byte("v"), 200)) + `", 128: "text:` + string(bytes.Repeat([]byte("w"), 250)) +
			`", 129: "text:` + string(bytes.Repeat([]byte("x"), 250)) + `", 130: "text:` + string(bytes.Repeat([]byte("y"), 250)) + `", 131: "text:` + string(bytes.Repeat([]byte("z"), 250)) + `"`,
	} {
		f := farmOf(t, `
subnets: [{cidr: 10.28.0.0/16}]
tags: {all: {dhcpOptions: {`+site+`}}}
pools: [{name: web, image: i, nodes: [{name: a, macs: ["`+web1.String()+`"], ip: 10.28.36.1}]}]
`)
		for rom, options := range oldROMs {
			for kind, packet := range map[dhcpv4.MessageType][]byte{
				discover: romPacket(options, discover),
				request:  romPacket(options, request, 50, 4, 10, 28, 36, 1, 54, 4, 10, 28, 0, 2),
			} {
				s, _ := newServer()
				s.Farm = f
				r, x := s.handle(packet, noon)
				if r == nil || x.Decision == dhcp.Refused {
					t.Fatalf("%s, %s of %s: got %q", name, kind, rom, x.Decision)
				}
				sent := s.last.Append(nil)
				names := namesOf(sent)
				if len(names) != 3 || r.ServerIPAddr.String() != serverAddr.String() || len(sent) > 1260-28 {
					t.Errorf("%s, %s of %s: %d bytes, boot server %s, names %q", name, kind, rom, len(sent), r.ServerIPAddr, names)
				}
				for read, got := range names {
					if got != "undionly.kpxe" {
						t.Errorf("%s, %s of %s: by %s it asks for %q", name, kind, rom, read, got)
					}
				}
				if v := r.Options[43]; !bytes.HasPrefix(v, []byte{6, 1, 8}) || v[len(v)-1] != 255 || len(site) > 0 && len(v) == 4 {
					t.Errorf("%s, %s of %s: got 43 = % x", name, kind, rom, v)
				}
			}
		}
	}
}
