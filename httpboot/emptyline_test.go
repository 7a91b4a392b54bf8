package httpboot

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// requests are whole requests with the bytes that end them.
var requests = []string{
	"GET /a HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /b HTTP/1.0\n\n",
	"HEAD /c HTTP/1.1\r\nHost: x\r\nRange: bytes=0-1\r\nX-Long: " + strings.Repeat("y", 300) + "\r\n\r\n",
	"POST /d HTTP/1.1\r\nHost: x\r\ncontent-length: 9\r\n\r\n\r\n\r\nab\r\n\n",
	"POST /e HTTP/1.1\r\nContent-Length:0\r\nHost: x\r\n\r\n",
	"GET /f HTTP/1.1\r\nHost: x\r\n Content-Length: 7\r\n\r\n",
}

// read passes a stream in pieces, and returns the bytes that remain.
func read(e *emptyLines, stream string, length func() int) string {
	var got []byte
	for stream != "" {
		n := min(length(), len(stream))
		b := []byte(stream[:n])
		got = append(got, b[:e.remove(b)]...)
		stream = stream[n:]
	}
	return string(got)
}

func TestEmptyLines(t *testing.T) {
	for _, empty := range []string{"", "\r\n", "\n", "\r\n\r\n", "\r\n\r\n\r\n\r\n"} {
		for length := 1; length < 500; length++ {
			sent := empty + strings.Join(requests, empty)
			got := read(&emptyLines{}, sent, func() int { return length })
			if want := strings.Join(requests, ""); got != want {
				t.Fatalf("%q between requests, in pieces of %d bytes: got\n%q\nwant\n%q", empty, length, got, want)
			}
		}
	}
}

// A request whose end is not known ends the removal.
func TestEmptyLinesLost(t *testing.T) {
	for _, header := range []string{
		"Transfer-Encoding: chunked", "transfer-encoding: gzip", "Content-Length: x", "Content-Length: -1", "Content-Length: +2",
		"Content-Length: 1\r\nContent-Length: 2", "Content-Length: 99999999999999999999", "Upgrade: h2c",
		"Content-Length: " + strings.Repeat(" ", maxKeptLine) + "3",
	} {
		for length := 1; length < 200; length++ {
			sent := "POST / HTTP/1.1\r\n" + header + "\r\n\r\n\r\n\r\nab\r\n\r\nGET / HTTP/1.1\r\n\r\n\r\n\r\nx"
			if got := read(&emptyLines{}, sent, func() int { return length }); got != sent {
				t.Fatalf("%s, in pieces of %d bytes: got %q, want all of it", header, length, got)
			}
		}
	}
}

// Too many empty lines are passed on, so that they end the connection.
func TestManyEmptyLines(t *testing.T) {
	if got := read(&emptyLines{}, strings.Repeat("\r\n", 100), func() int { return 3 }); got == "" {
		t.Error("no byte of 100 empty lines remains")
	}
}

func TestEmptyLinesAllocateNothing(t *testing.T) {
	request := []byte(requests[0])
	var e emptyLines
	if n := testing.AllocsPerRun(100, func() { e.remove(request) }); n > 0 {
		t.Errorf("got %v allocations for a request, want none", n)
	}
}

func FuzzEmptyLines(f *testing.F) {
	for _, r := range requests {
		f.Add([]byte(r+"\r\n"+r), uint64(1))
	}
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		random := read(&emptyLines{}, string(stream), func() int { return 1 + r.IntN(40) })
		if whole := read(&emptyLines{}, string(stream), func() int { return len(stream) }); whole != random {
			t.Errorf("got %q at once, and %q in pieces", whole, random)
		}
		printed := func(b byte) bool { return b == '\r' || b == '\n' }
		if !bytes.Equal(slices.DeleteFunc([]byte(random), printed), slices.DeleteFunc(bytes.Clone(stream), printed)) {
			t.Errorf("other bytes than those of empty lines are lost: got %q of %q", random, stream)
		}
	})
}

func BenchmarkEmptyLines(b *testing.B) {
	request := []byte("GET /images/debian-12/0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0/root.squashfs HTTP/1.1\r\n" +
		"Host: 10.28.0.2\r\nUser-Agent: Go-http-client/1.1\r\nDrover-Wait: 4\r\nRange: bytes=4096-\r\n\r\n")
	var e emptyLines
	b.SetBytes(int64(len(request)))
	b.ReportAllocs()
	for b.Loop() {
		e.remove(request)
	}
}
