package fetch

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	pin "github.com/pin/tftp/v3"

	"drover/e2e/fixture"
)

// tftpServer serves one file, and counts the requests.
type tftpServer struct {
	mu    sync.Mutex
	names []string
	fail  map[int]error  // by the number of the request, from 1
	bad   map[int][]byte // contents in the place of the right one
}

func (s *tftpServer) serve(t *testing.T, content []byte) string {
	t.Helper()
	server := pin.NewServer(func(name string, rf io.ReaderFrom) error {
		s.mu.Lock()
		s.names = append(s.names, name)
		err := s.fail[len(s.names)]
		content := content
		if bad := s.bad[len(s.names)]; bad != nil {
			content = bad
		}
		s.mu.Unlock()
		if err != nil {
			return err
		}
		rf.(pin.OutgoingTransfer).SetSize(int64(len(content)))
		_, err = rf.ReadFrom(bytes.NewReader(content))
		return err
	}, nil)
	l, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }() // ends with the socket
	t.Cleanup(func() { server.Shutdown(); l.Close() })
	return l.LocalAddr().String()
}

// blocked makes all requests by HTTP fail: the port is closed.
func blocked(t *testing.T, f *fetchTest) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.URL = "http://" + l.Addr().String() + "/images/x/root.squashfs"
	l.Close()
}

func (f *fetchTest) check(t *testing.T) {
	t.Helper()
	n, err := f.Fetch(t.Context(), f.path)
	if err != nil || n != imageSize {
		t.Fatalf("got %d bytes, %v, want %d", n, err, imageSize)
	}
	if got, err := os.ReadFile(f.path); err != nil || !bytes.Equal(got, f.server.content) {
		t.Errorf("the file is not what was served (%v)", err)
	}
}

// TestFetchByTFTP fetches from a server that HTTP does not reach.
func TestFetchByTFTP(t *testing.T) {
	f, s := newFetchTest(t), &tftpServer{}
	blocked(t, f)
	f.TFTP, f.Name = s.serve(t, f.server.content), "images/x/root.squashfs"
	told := int64(0)
	f.Interval = 1
	f.Progress = func(done, total int64, _ float64) {
		if total != imageSize || done < told {
			t.Errorf("progress: %d of %d after %d", done, total, told)
		}
		told = done
	}
	f.check(t)
	if told == 0 {
		t.Error("no progress was shown")
	}
	if f.NoHTTP == nil || !strings.Contains(f.NoHTTP.Error(), "connection refused") {
		t.Errorf("got reason %v, want that HTTP is refused", f.NoHTTP)
	}
	if len(s.names) != 2 || s.names[1] != f.Name || strings.Count(f.said.String(), "connection refused") != 2 {
		t.Errorf("got requests %q after\n%s", s.names, &f.said)
	}
	fixture.WantText(t, "errors", f.said.String(), "HTTP brings nothing, but the server answers by TFTP")
}

// TestFetchInTurns returns to HTTP when TFTP fails, and begins anew with TFTP.
func TestFetchInTurns(t *testing.T) {
	f, s := newFetchTest(t), &tftpServer{fail: map[int]error{1: errors.New("no luck"), 2: errors.New("no luck")}}
	f.TFTP, f.Name = s.serve(t, f.server.content), "x"
	refuse := func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "blocked by policy", http.StatusForbidden) }
	f.server.odd = map[int]http.HandlerFunc{1: refuse, 2: refuse, 3: refuse, 4: refuse}
	f.check(t)
	if len(s.names) != 4 || len(f.server.ranges) != 4 {
		t.Errorf("got %d requests by TFTP, %d by HTTP, want 4 and 4", len(s.names), len(f.server.ranges))
	}
	fixture.WantText(t, "errors", f.said.String(), "blocked by policy", "by TFTP: server answers error", "no luck")

	f, s = newFetchTest(t), &tftpServer{fail: map[int]error{1: errors.New("no luck")}}
	f.TFTP, f.Name = s.serve(t, f.server.content), "x"
	f.server.odd = map[int]http.HandlerFunc{1: refuse, 2: refuse}
	f.check(t)
	if f.NoHTTP != nil {
		t.Errorf("got reason %v for a file that came by HTTP", f.NoHTTP)
	}
}

// A server that answers by HTTP keeps its clients: they wait in its queue, and resume.
func TestFetchStaysWithHTTP(t *testing.T) {
	f, s := newFetchTest(t), &tftpServer{}
	f.TFTP, f.Name = s.serve(t, f.server.content), "x"
	busy := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	cut := f.server.part(cutAt, false)
	gone := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	f.server.odd = map[int]http.HandlerFunc{1: busy, 2: busy, 3: gone, 4: cut, 5: gone, 6: gone, 7: gone, 8: busy, 9: cut}
	f.check(t)
	if len(s.names) > 0 {
		t.Errorf("got requests %q by TFTP", s.names)
	}
}

// The digest decides by TFTP, too.
func TestFetchByTFTPVerifies(t *testing.T) {
	f, s := newFetchTest(t), &tftpServer{}
	f.TFTP, f.Name = s.serve(t, bytes.Repeat([]byte("x"), imageSize)), "x"
	cut := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	f.server.odd = map[int]http.HandlerFunc{1: cut, 2: cut}
	f.check(t) // by HTTP in the end
	fixture.WantText(t, "errors", f.said.String(), "came with sha256", "fetching all of it anew")
}
