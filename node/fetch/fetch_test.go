package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/node/client"
	"drover/node/retry"
	"drover/node/rootfs"
	"drover/pools"
)

// imageServer serves one file, and answers some requests wrongly.
type imageServer struct {
	content []byte
	etag    string
	odd     map[int]http.HandlerFunc // wrong answers by the number of the request, from 1

	mu     sync.Mutex
	ranges []string // of each request
}

func (s *imageServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.ranges = append(s.ranges, r.Header.Get("Range"))
	n := len(s.ranges)
	s.mu.Unlock()
	if h := s.odd[n]; h != nil {
		h(w, r)
		return
	}
	s.serve(w, r, s.content, s.etag)
}

func (s *imageServer) serve(w http.ResponseWriter, r *http.Request, content []byte, etag string) {
	if etag != "" {
		w.Header().Set("ETag", etag)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// part sends the first n bytes of a good answer and cuts the connection; with
// hang it first waits until the client has gone.
func (s *imageServer) part(n int, hang bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from := 0
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(s.content)-1, len(s.content)))
		}
		w.Header().Set("ETag", s.etag)
		w.Header().Set("Content-Length", strconv.Itoa(len(s.content)-from))
		if from > 0 {
			w.WriteHeader(http.StatusPartialContent)
		}
		_, _ = w.Write(s.content[from : from+n])
		w.(http.Flusher).Flush()
		if hang {
			<-r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	}
}

const (
	imageSize = 3 << 20
	cutAt     = 1 << 20
)

// fetchTest is a fetcher of a server's file that skips the waits.
type fetchTest struct {
	*Fetcher
	server *imageServer
	said   fixture.Log
	waits  []time.Duration
	path   string
}

func newFetchTest(t *testing.T) *fetchTest {
	content := make([]byte, imageSize)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(content)
	f := &fetchTest{server: &imageServer{content: content, etag: `"v1"`}, path: filepath.Join(t.TempDir(), "root.sqfs")}
	s := httptest.NewServer(f.server)
	t.Cleanup(s.Close)
	client := client.NewHTTP(nil)
	t.Cleanup(client.CloseIdleConnections)
	f.Fetcher = &Fetcher{
		Client: client,
		URL:    s.URL + "/images/x/root.squashfs",
		Digest: sha256.Sum256(content),
		Stall:  time.Minute,
		Retry: retry.Retrier{
			Sleep: func(ctx context.Context, d time.Duration) error {
				f.waits = append(f.waits, d)
				return ctx.Err()
			},
			Notice: func(err error, _ time.Duration) { f.said.Printf("%v", err) },
		},
	}
	return f
}

// good fetches the file and checks the result and the requested ranges.
func (f *fetchTest) good(t *testing.T, ranges ...string) {
	t.Helper()
	n, err := f.Fetch(t.Context(), f.path)
	if err != nil {
		t.Fatalf("fetch: %v", err)
	}
	if n != imageSize {
		t.Errorf("got %d bytes, want %d", n, imageSize)
	}
	if got, err := os.ReadFile(f.path); err != nil || !bytes.Equal(got, f.server.content) {
		t.Errorf("the file is not what was served (%v)", err)
	}
	if !slices.Equal(f.server.ranges, ranges) {
		t.Errorf("ranges asked for: got %q, want %q", f.server.ranges, ranges)
	}
}

func TestFetch(t *testing.T) {
	f := newFetchTest(t)
	f.good(t, "")
	if f.said.String() != "" {
		t.Errorf("errors: got %s, want none", &f.said)
	}
}

func TestFetchResumes(t *testing.T) {
	f := newFetchTest(t)
	f.server.odd = map[int]http.HandlerFunc{1: f.server.part(cutAt, false), 2: f.server.part(cutAt, false)}
	f.good(t, "", "bytes=1048576-", "bytes=2097152-")
	fixture.WantText(t, "errors", f.said.String(), "after 1048576 of 3145728 bytes: unexpected EOF", "after 2097152 of 3145728 bytes")
}

func TestFetchCutsStalled(t *testing.T) {
	t.Parallel()
	f := newFetchTest(t)
	f.Stall = 3 * time.Second // longer than a busy machine takes for one MiB
	f.server.odd = map[int]http.HandlerFunc{
		1: f.server.part(cutAt, true),
		2: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, // not even a header
	}
	f.good(t, "", "bytes=1048576-", "bytes=1048576-")
	fixture.WantText(t, "errors", f.said.String(), "after 1048576 of 3145728 bytes: transfer stalled: nothing came for 3s")
}

func TestFetchAnewWhenCorrupt(t *testing.T) {
	f := newFetchTest(t)
	f.server.odd = map[int]http.HandlerFunc{1: func(w http.ResponseWriter, r *http.Request) {
		bad := bytes.Clone(f.server.content)
		bad[len(bad)/2] ^= 1
		f.server.serve(w, r, bad, f.server.etag)
	}}
	f.good(t, "", "")
	fixture.WantText(t, "errors", f.said.String(), "3145728 bytes came with sha256 ", "fetching all of it anew")
}

func TestFetchAnewWhenChanged(t *testing.T) {
	other := bytes.Repeat([]byte("x"), imageSize)
	for _, tt := range []struct {
		name string
		// second is the answer to the second request, for the rest of the file.
		second func(*fetchTest) http.HandlerFunc
		ranges []string
		said   string
	}{
		{
			"a server that knows If-Range sends all of the new file",
			func(f *fetchTest) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					if got := r.Header.Get("If-Range"); got != `"v0"` {
						panic("If-Range is " + got)
					}
					f.server.serve(w, r, f.server.content, `"v1"`)
				}
			},
			[]string{"", "bytes=1048576-"}, "unexpected EOF",
		},
		{
			"a server that does not sends a part with another ETag",
			func(f *fetchTest) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					r.Header.Del("If-Range")
					f.server.serve(w, r, f.server.content, `"v1"`)
				}
			},
			[]string{"", "bytes=1048576-", ""}, "the file changed on the server; fetching all of it anew",
		},
		{
			"a part from elsewhere",
			func(f *fetchTest) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					r.Header.Set("Range", "bytes=5-")
					f.server.serve(w, r, f.server.content, `"v0"`)
				}
			},
			[]string{"", "bytes=1048576-", ""}, "server sends a part from byte 5 of 3145728, want from byte 1048576 of 3145728",
		},
		{
			"a part of a file of another size",
			func(f *fetchTest) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					r.Header.Del("If-Range")
					f.server.serve(w, r, append(bytes.Clone(f.server.content), 0), `"v0"`)
				}
			},
			[]string{"", "bytes=1048576-", ""}, "of 3145729, want",
		},
		{
			"a part without a place",
			func(*fetchTest) http.HandlerFunc {
				return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusPartialContent) }
			},
			[]string{"", "bytes=1048576-", ""}, `server sends a part with Content-Range ""`,
		},
		{
			"nothing left",
			func(*fetchTest) http.HandlerFunc {
				return func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
				}
			},
			[]string{"", "bytes=1048576-", ""}, "server answers 416 Requested Range Not Satisfiable after 1048576 bytes",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFetchTest(t)
			old := imageServer{content: other, etag: `"v0"`}
			f.server.odd = map[int]http.HandlerFunc{1: old.part(cutAt, false), 2: tt.second(f)}
			f.good(t, tt.ranges...)
			fixture.WantText(t, "errors", f.said.String(), tt.said)
		})
	}
}

func TestFetchWithoutETag(t *testing.T) {
	f := newFetchTest(t)
	f.server.etag = `W/"weak"` // unusable for If-Range; the digest decides
	f.server.odd = map[int]http.HandlerFunc{1: f.server.part(cutAt, false), 2: func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-Range") != "" {
			panic("If-Range with a weak validator")
		}
		f.server.serve(w, r, f.server.content, f.server.etag)
	}}
	f.good(t, "", "bytes=1048576-")
}

func TestFetchLiesAboutLength(t *testing.T) {
	t.Run("more than it sends", func(t *testing.T) {
		f := newFetchTest(t)
		f.server.odd = map[int]http.HandlerFunc{1: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(imageSize+1000))
			_, _ = w.Write(f.server.content)
		}}
		f.good(t, "", "bytes=3145728-", "")
	})
	t.Run("less than there is", func(t *testing.T) {
		f := newFetchTest(t)
		f.server.odd = map[int]http.HandlerFunc{1: func(w http.ResponseWriter, r *http.Request) {
			f.server.serve(w, r, f.server.content[:cutAt], `"v0"`)
		}}
		f.good(t, "", "")
		fixture.WantText(t, "errors", f.said.String(), "1048576 bytes came with sha256")
	})
	t.Run("nothing", func(t *testing.T) {
		f := newFetchTest(t)
		f.server.odd = map[int]http.HandlerFunc{1: func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush() // makes it chunked
			_, _ = w.Write(f.server.content)
		}}
		f.good(t, "", "")
		fixture.WantText(t, "errors", f.said.String(), "server does not say how long the file is")
	})
	t.Run("an empty file", func(t *testing.T) {
		f := newFetchTest(t)
		f.server.odd = map[int]http.HandlerFunc{1: func(http.ResponseWriter, *http.Request) {}}
		f.good(t, "", "")
		fixture.WantText(t, "errors", f.said.String(), "0 bytes came with sha256")
	})
}

func TestFetchWaitsForBusyServer(t *testing.T) {
	f := newFetchTest(t)
	f.Retry.Backoff.Rand = func() float64 { return 0 }
	busy := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		http.Error(w, "200 nodes are fetching", http.StatusServiceUnavailable)
	}
	f.server.odd = map[int]http.HandlerFunc{1: busy, 2: f.server.part(cutAt, false), 3: busy}
	f.good(t, "", "", "bytes=1048576-", "bytes=1048576-")
	fixture.WantText(t, "errors", f.said.String(), "server answers 503 Service Unavailable: 200 nodes are fetching")
	for i, least := range []time.Duration{7 * time.Second, 100 * time.Millisecond, 7 * time.Second} {
		if got := f.waits[i]; got < least || got > least+time.Second {
			t.Errorf("wait %d: got %v, want a little more than %v", i+1, got, least)
		}
	}
}

func TestFetchOtherAnswers(t *testing.T) {
	for _, tt := range []struct {
		name string
		odd  http.HandlerFunc
		said string
	}{
		{"not found", http.NotFound, "server answers 404 Not Found: 404 page not found"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, "server answers 302 Found"},
		{"a control character in the text", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "\x1b[2Jhello\nsecond line", http.StatusInternalServerError)
		}, "server answers 500 Internal Server Error: ?[2Jhello"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFetchTest(t)
			f.server.odd = map[int]http.HandlerFunc{1: tt.odd}
			f.good(t, "", "")
			if got := strings.TrimSpace(f.said.String()); got != tt.said {
				t.Errorf("got %q, want %q", got, tt.said)
			}
		})
	}
}

func TestFetchServerAway(t *testing.T) {
	f := newFetchTest(t)
	url := f.URL
	f.URL = "http://127.0.0.1:1/"
	tries := 0
	f.Retry.Sleep = func(context.Context, time.Duration) error {
		if tries++; tries == 5 {
			f.URL = url // the server is back
		}
		return nil
	}
	f.good(t, "")
	fixture.WantText(t, "errors", f.said.String(), "connection refused")
}

func TestFetchGivesUp(t *testing.T) {
	f := newFetchTest(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.server.odd = map[int]http.HandlerFunc{1: http.NotFound}
	f.Retry.Sleep = func(context.Context, time.Duration) error {
		cancel()
		return ctx.Err()
	}
	_, err := f.Fetch(ctx, f.path)
	if want := "gave up: server answers 404 Not Found"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got error %v, want %q", err, want)
	}
	if _, err := os.Stat(f.path); !os.IsNotExist(err) {
		t.Errorf("the file is still there (%v)", err)
	}
}

func TestFetchDoesNotFit(t *testing.T) {
	f := newFetchTest(t)
	f.Fit = func(more int64) error { return rootfs.Memory{Total: 64 << 20, Available: 40 << 20}.Fits(more) }
	_, err := f.Fetch(t.Context(), f.path)
	want := "the image does not fit into RAM: it needs 3 MB and 96 MB must stay free, but of 64 MB only 40 are available"
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %q", err, want)
	}
	if len(f.waits) != 0 {
		t.Errorf("got %d waits, want none: trying again is of no use", len(f.waits))
	}
}

func TestFetchProgress(t *testing.T) {
	f := newFetchTest(t)
	f.Interval = time.Nanosecond
	var last int64
	f.Progress = func(done, total int64, rate float64) {
		if done < last || total != imageSize || rate < 0 {
			t.Errorf("progress: got %d of %d at %f, after %d", done, total, rate, last)
		}
		last = done
	}
	f.good(t, "")
	if last != imageSize {
		t.Errorf("progress: got %d at last, want %d", last, imageSize)
	}
}

func TestParseContentRange(t *testing.T) {
	for _, tt := range []struct {
		in          string
		from, total int64
		ok          bool
	}{
		{"bytes 100-199/200", 100, 200, true},
		{"bytes 0-0/1", 0, 1, true},
		{"bytes 100-150/200", 0, 0, false}, // not up to the end
		{"bytes 100-199/*", 0, 0, false},
		{"bytes */200", 0, 0, false},
		{"bytes 200-199/200", 0, 0, false},
		{"bytes -1-199/200", 0, 0, false},
		{"bytes 0-9223372036854775807/9223372036854775808", 0, 0, false},
		{"items 0-1/2", 0, 0, false},
		{"", 0, 0, false},
	} {
		from, total, err := parseContentRange(tt.in)
		if from != tt.from || total != tt.total || (err == nil) != tt.ok {
			t.Errorf("parseContentRange(%q): got %d, %d, %v", tt.in, from, total, err)
		}
	}
}

func FuzzParseContentRange(f *testing.F) {
	f.Add("bytes 100-199/200")
	f.Fuzz(func(t *testing.T, s string) {
		from, total, err := parseContentRange(s)
		if err == nil && (from < 0 || from >= total) {
			t.Errorf("%q: got %d of %d", s, from, total)
		}
	})
}

// place returns a handler that answers with a position in the queue.
func place(n string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(pools.PlaceHeader, n)
		w.Header().Set("Retry-After", "1")
		http.Error(w, "not yet", http.StatusServiceUnavailable)
	}
}

// A node in the queue repeats its request soon, and that is no failure.
func TestFetchQueued(t *testing.T) {
	f := newFetchTest(t)
	f.server.odd = map[int]http.HandlerFunc{1: place("37"), 2: place("37"), 3: place("2"), 4: f.server.part(cutAt, false), 5: place("1")}
	var told []int
	f.Queued = func(n int, spent time.Duration) {
		told = append(told, n)
		if spent < time.Second {
			t.Errorf("place %d: %v spent, want the pause in it", n, spent)
		}
	}
	f.good(t, "", "", "", "", "bytes=1048576-", "bytes=1048576-")
	if want := []int{37, 37, 2, 1}; !slices.Equal(told, want) {
		t.Errorf("places: got %v, want %v", told, want)
	}
	if got := f.said.String(); strings.Contains(got, "503") {
		t.Errorf("the queue is told as an error: %s", got)
	}
	for i, w := range f.waits {
		if w > 2*time.Second {
			t.Errorf("wait %d is %v: the place may be lost", i, w)
		}
	}
}
