package pcap_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drover/e2e/lab/pcap"
)

const secret = "q3k9z0v7m1x5b8n2"

var (
	server = netip.MustParseAddrPort("10.77.0.1:80")
	node   = netip.MustParseAddrPort("10.77.0.11:34567")
)

func segment(seq uint32, syn bool, payload string) pcap.Packet {
	return pcap.Packet{Src: server, Dst: node, TCP: true, Seq: seq, SYN: syn, Payload: []byte(payload)}
}

func TestStreams(t *testing.T) {
	const start = ^uint32(4) // wraps within the stream
	syn := segment(start, true, "")
	at := func(offset uint32, s string) pcap.Packet { return segment(start+1+offset, false, s) }
	for _, tt := range []struct {
		name    string
		packets []pcap.Packet
		want    string
		err     string
	}{
		{"in order", []pcap.Packet{syn, at(0, "one "), at(4, "two "), at(8, "three")}, "one two three", ""},
		{"swapped", []pcap.Packet{syn, at(4, "two "), at(8, "three"), at(0, "one ")}, "one two three", ""},
		{"sent again", []pcap.Packet{syn, syn, at(0, "one "), at(0, "one "), at(4, "two ")}, "one two ", ""},
		{"sent again in other pieces", []pcap.Packet{syn, at(0, "one "), at(2, "e two "), at(1, "ne")}, "one two ", ""},
		{"two connections on the same ports", []pcap.Packet{syn, at(0, "one "), segment(7, true, ""), segment(8, false, "two ")}, "one two ", ""},
		{"a hole", []pcap.Packet{syn, at(0, "one "), at(8, "three")}, "one ", "a segment was not captured"},
		{"a hole before the next connection", []pcap.Packet{syn, at(8, "three"), segment(7, true, "")}, "", "a segment was not captured"},
		{"without its start", []pcap.Packet{at(0, "one ")}, "", "its start was not captured"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got bytes.Buffer
			s := pcap.Streams{Open: func(pcap.Flow) io.Writer { return &got }}
			var errs []error
			for _, p := range tt.packets {
				errs = append(errs, s.Add(p))
			}
			err := errors.Join(append(errs, s.Close())...)
			if got.String() != tt.want {
				t.Errorf("got %q, want %q", got.String(), tt.want)
			}
			switch {
			case tt.err == "" && err != nil:
				t.Errorf("got error %v, want none", err)
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("got error %v, want %q", err, tt.err)
			}
		})
	}
}

func TestNeedles(t *testing.T) {
	encoded := func(pad int) string {
		return base64.StdEncoding.EncodeToString([]byte(strings.Repeat("-", pad) + secret + "..."))
	}
	for _, tt := range []struct {
		name   string
		pieces []string
		want   bool
	}{
		{"in one write", []string{"a" + secret + "b"}, true},
		{"at the start", []string{secret}, true},
		{"across two writes", []string{"token: " + secret[:7], secret[7:] + "\n"}, true},
		{"a byte at a time", strings.Split("x"+secret+"y", ""), true},
		{"base64", []string{encoded(0)}, true},
		{"base64, shifted by one", []string{encoded(1)}, true},
		{"base64, shifted by two", []string{encoded(2)[:9], encoded(2)[9:]}, true},
		{"torn", []string{secret[:7], "-", secret[7:]}, false},
		{"nothing", []string{"nothing", "", "of the kind"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := pcap.NewNeedles("0123456789abcdef", secret)
			for _, p := range tt.pieces {
				if _, err := n.Write([]byte(p)); err != nil {
					t.Fatal(err)
				}
			}
			if got := slices.Contains(n.Found(), secret); got != tt.want {
				t.Errorf("found %v, want %v", got, tt.want)
			}
			if slices.Contains(n.Found(), "0123456789abcdef") {
				t.Error("found a secret that is not there")
			}
		})
	}
}

// TestCapture reads a capture file with a secret that lies across two TCP
// segments, of which the second was written first.
func TestCapture(t *testing.T) {
	file := captureOf(
		frame(segment(99, true, "")),
		frame(segment(100+12+7, false, secret[7:]+"\r\n")),
		frame(segment(100, false, "HTTP/1.1 200"+secret[:7])),
	)
	path := filepath.Join(t.TempDir(), "pcap")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	n := pcap.NewNeedles(secret)
	s := pcap.Streams{Open: func(f pcap.Flow) io.Writer {
		if want := (pcap.Flow{Src: server, Dst: node}); f != want {
			t.Errorf("got flow %v, want %v", f, want)
		}
		return n
	}}
	for f, err := range pcap.Frames(path) {
		if err != nil {
			t.Fatal(err)
		}
		p, ok := pcap.Parse(f)
		if !ok {
			t.Fatalf("frame %x does not parse", f)
		}
		if err := s.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := n.Found(); !slices.Equal(got, []string{secret}) {
		t.Errorf("found %q, want the planted secret once", got)
	}
}

// TestFramesEnd: an unreadable file, or the end of one that is still written, is an error.
func TestFramesEnd(t *testing.T) {
	whole := captureOf(frame(segment(1, false, "data")), frame(segment(5, false, "more")))
	for _, tt := range []struct {
		size   int
		frames int
		want   error
	}{{len(whole), 2, nil}, {len(whole) - 1, 1, io.ErrUnexpectedEOF}, {24, 0, nil}, {20, 0, io.ErrUnexpectedEOF}, {0, 0, io.EOF}, {-1, 0, fs.ErrNotExist}} {
		path := filepath.Join(t.TempDir(), "pcap")
		if tt.size >= 0 {
			if err := os.WriteFile(path, whole[:tt.size], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		n := 0
		var last error
		for _, err := range pcap.Frames(path) {
			if last = err; err == nil {
				n++
			}
		}
		if n != tt.frames || !errors.Is(last, tt.want) {
			t.Errorf("%d bytes: got %d frames and %v, want %d and %v", tt.size, n, last, tt.frames, tt.want)
		}
	}
}

func TestParseIPv6(t *testing.T) {
	request := append(make([]byte, 12, 80), 0x86, 0xdd, 0x60, 0, 0, 0, 0, 12, 17, 64)
	src, dst := netip.MustParseAddrPort("[fd00:77::51]:2000"), netip.MustParseAddrPort("[fd00:77::1]:69")
	request = append(append(request, src.Addr().AsSlice()...), dst.Addr().AsSlice()...)
	request = append(request, 2000>>8, 2000&0xff, 0, 69, 0, 12, 0, 0, 'd', 'a', 't', 'a')
	p, ok := pcap.Parse(append(request, 0, 0)) // padding
	if !ok || p.TCP || p.Src != src || p.Dst != dst || string(p.Payload) != "data" {
		t.Errorf("got %v, %+v", ok, p)
	}
	if p, ok := pcap.Parse(request[:len(request)-1]); ok {
		t.Errorf("cut: got %+v", p)
	}
}

func TestReaderRefuses(t *testing.T) {
	whole := captureOf(frame(segment(1, false, "data")))
	short := bytes.Clone(whole)
	binary.LittleEndian.PutUint32(short[24+12:], 4000) // the frame's length on the wire
	for _, tt := range []struct {
		name string
		file []byte
		want string
	}{
		{"no capture", bytes.Repeat([]byte("x"), 24), "not a capture file"},
		{"cut frame", short, "only 58 of the 4000 bytes of a frame were captured"},
		{"cut file", whole[:len(whole)-1], "unexpected EOF"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := pcap.NewReader(bytes.NewReader(tt.file))
			if err == nil {
				_, err = r.Next()
			}
			if err == nil || err.Error() != tt.want {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(frame(segment(1, false, "data")))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, ok := pcap.Parse(b); ok && len(p.Payload) > len(b) {
			t.Errorf("payload of %d bytes in a frame of %d", len(p.Payload), len(b))
		}
	})
}

// frame builds the Ethernet frame of a TCP segment.
func frame(p pcap.Packet) []byte {
	b := make([]byte, 14+20+20, 14+20+20+len(p.Payload))
	binary.BigEndian.PutUint16(b[12:], 0x0800)
	ip := b[14:]
	ip[0], ip[9] = 0x45, 6
	binary.BigEndian.PutUint16(ip[2:], uint16(40+len(p.Payload)))
	copy(ip[12:], p.Src.Addr().AsSlice())
	copy(ip[16:], p.Dst.Addr().AsSlice())
	tcp := ip[20:]
	binary.BigEndian.PutUint16(tcp, p.Src.Port())
	binary.BigEndian.PutUint16(tcp[2:], p.Dst.Port())
	binary.BigEndian.PutUint32(tcp[4:], p.Seq)
	tcp[12] = 5 << 4
	if p.SYN {
		tcp[13] = 2
	}
	return append(b, p.Payload...)
}

// captureOf builds a capture file.
func captureOf(frames ...[]byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	b = append(b, make([]byte, 16)...)
	b = binary.LittleEndian.AppendUint32(b, 1)
	for _, f := range frames {
		b = append(b, make([]byte, 8)...)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(f)))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(f)))
		b = append(b, f...)
	}
	return b
}
