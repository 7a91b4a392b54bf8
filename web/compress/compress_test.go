package compress_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"drover/web/compress"
)

// page is a text that is long enough to be compressed.
var page = strings.Repeat("<p>a node of the farm\n", 200)

// reply is an answer of a handler.
type reply struct {
	status int // 0: the handler sets none
	header map[string]string
	parts  []string
}

func (a reply) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	for name, value := range a.header {
		w.Header().Set(name, value)
	}
	if a.status != 0 {
		w.WriteHeader(a.status)
	}
	for _, part := range a.parts {
		_, _ = io.WriteString(w, part)
	}
}

// ask sends a request to a server, over HTTP. Its client does not decompress.
func ask(t *testing.T, h http.Handler, method string, header http.Header) (*http.Response, []byte) {
	t.Helper()
	s := httptest.NewServer(compress.Handler(h))
	defer s.Close()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, body
}

// unzip returns what was compressed.
func unzip(t *testing.T, data []byte) string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAnswers: long texts are compressed, and nothing else is. An answer that is not, is sent
// unchanged.
func TestAnswers(t *testing.T) {
	html := func(more ...string) map[string]string {
		h := map[string]string{"Content-Type": "text/html; charset=utf-8"}
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	for _, tt := range []struct {
		name   string
		method string
		reply  reply
		zipped bool
	}{
		{"a page", "GET", reply{200, html(), []string{page}}, true},
		{"a page without a status", "GET", reply{0, html(), []string{page}}, true},
		{"a page in parts", "GET", reply{200, html(), []string{page, "<p>", page}}, true},
		{"JSON", "GET", reply{200, map[string]string{"Content-Type": "application/json"}, []string{page}}, true},
		{"its length is that of the text", "GET", reply{200, html("Content-Length", fmt.Sprint(len(page))), []string{page}}, true},
		{"a kilobyte", "GET", reply{200, html(), []string{page[:1024]}}, true},

		{"less than a kilobyte", "GET", reply{200, html(), []string{page[:1023]}}, false},
		{"no body", "GET", reply{200, html(), nil}, false},
		{"nothing", "GET", reply{}, false},
		{"HEAD", "HEAD", reply{200, html(), []string{page}}, false},
		{"POST", "POST", reply{200, html(), []string{page}}, false},
		{"an error", "GET", reply{500, html(), []string{page}}, false},
		{"a problem", "GET", reply{404, map[string]string{"Content-Type": "application/problem+json"}, []string{page}}, false},
		{"a part of a file", "GET", reply{206, html("Content-Range", "bytes 0-4399/9000"), []string{page}}, false},
		{"unchanged", "GET", reply{304, nil, nil}, false},
		{"with an ETag", "GET", reply{200, html("ETag", `"1"`), []string{page}}, false},
		{"with secrets", "GET", reply{200, html("Cache-Control", "no-store, no-transform"), []string{page}}, false},
		{"already encoded", "GET", reply{200, html("Content-Encoding", "br"), []string{page}}, false},
		{"an image", "GET", reply{200, map[string]string{"Content-Type": "image/png"}, []string{page}}, false},
		{"a type that nobody gave", "GET", reply{200, nil, []string{page}}, false},
		{"events", "GET", reply{200, map[string]string{"Content-Type": "text/event-stream"}, []string{page}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp, body := ask(t, tt.reply, tt.method, http.Header{"Accept-Encoding": {"gzip"}})
			want := strings.Join(tt.reply.parts, "")
			if tt.method == "HEAD" {
				want = ""
			}
			tt.reply.check(t, resp, body, want, tt.zipped)
		})
	}
}

// check fails the test unless an answer is the one of the handler with this body.
func (a reply) check(t *testing.T, resp *http.Response, body []byte, want string, zipped bool) {
	t.Helper()
	if want := max(a.status, 200); resp.StatusCode != want {
		t.Errorf("got status %d, want %d", resp.StatusCode, want)
	}
	if resp.Header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("Vary is %q: caches would mix the answers up", resp.Header.Get("Vary"))
	}
	encoding := resp.Header.Get("Content-Encoding")
	if got := encoding == "gzip"; got != zipped {
		t.Fatalf("got the encoding %q, want compressed %t", encoding, zipped)
	}
	got := string(body)
	if zipped {
		got = unzip(t, body)
	}
	if got != want {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
	for name, value := range a.header {
		if name != "Content-Length" && resp.Header.Get(name) != value {
			t.Errorf("%s is %q, want %q", name, resp.Header.Get(name), value)
		}
	}
}

// TestClients: an answer is compressed only for clients that say that they take gzip.
func TestClients(t *testing.T) {
	for _, tt := range []struct {
		accept []string
		zipped bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"identity"}, false},
		{[]string{"br, zstd"}, false},
		{[]string{"gzip"}, true},
		{[]string{"GZIP"}, true},
		{[]string{"br, gzip;q=0.5"}, true},
		{[]string{"br", "gzip"}, true}, // two lines are one list
		{[]string{"gzip ; q=0.001"}, true},
		{[]string{"*"}, true},
		{[]string{"identity, *;q=0.1"}, true},
		{[]string{"gzip;q=0"}, false},
		{[]string{"gzip;q=0.000, *"}, false},
		{[]string{"*, gzip;q=0"}, false},
		{[]string{"*;q=0"}, false},
		{[]string{"gzip;q=x"}, false},
		{[]string{"gzip;q=-1"}, false},
		{[]string{"xgzip, gzipx"}, false},
		{[]string{",,;,"}, false},
	} {
		a := reply{200, map[string]string{"Content-Type": "text/html"}, []string{page}}
		resp, _ := ask(t, a, "GET", http.Header{"Accept-Encoding": tt.accept})
		if got := resp.Header.Get("Content-Encoding") == "gzip"; got != tt.zipped {
			t.Errorf("%q: compressed %t, want %t", tt.accept, got, tt.zipped)
		}
	}
}

// TestRange: a client that asks for a part of a file gets the part, as it is.
func TestRange(t *testing.T) {
	file := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "x.html", time.Time{}, strings.NewReader(page))
	})
	resp, body := ask(t, file, "GET", http.Header{"Accept-Encoding": {"gzip"}, "Range": {"bytes=10-2000"}})
	if resp.StatusCode != http.StatusPartialContent || resp.Header.Get("Content-Encoding") != "" || string(body) != page[10:2001] {
		t.Errorf("got %d with %v and %d bytes", resp.StatusCode, resp.Header, len(body))
	}
}

// inTwo returns a handler that flushes what comes first, and sends the rest when that was seen.
func inTwo(t *testing.T, kind, first, then string, seen <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(http.StatusOK)
		if first != "" {
			_, _ = io.WriteString(w, first)
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		select {
		case <-seen:
			_, _ = io.WriteString(w, then)
		case <-r.Context().Done():
		}
	}
}

// TestFlush: what a handler flushes is at the client before the answer is complete, and what it
// writes afterwards is in the encoding that the header says.
func TestFlush(t *testing.T) {
	for _, tt := range []struct {
		name, kind  string
		first, then string
		zipped      bool
	}{
		{"the header of events, then one", "text/event-stream", "", "event: list\n\n", false},
		{"an event", "text/event-stream", "event: list\n\n", "event: added\n\n", false},
		{"a long event", "text/event-stream", page, page, false},
		{"the header of a page", "text/html", "", page, false},
		{"the begin of a page", "text/html", page, page, true},
		{"a short begin of a page", "text/html", "<p>", page, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seen := make(chan struct{})
			s := httptest.NewServer(compress.Handler(inTwo(t, tt.kind, tt.first, tt.then, seen)))
			defer s.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // what is not flushed never arrives
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, "GET", s.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept-Encoding", "gzip")
			resp, err := s.Client().Do(r) // it is back with the header
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var body io.Reader = bufio.NewReader(resp.Body)
			zipped := resp.Header.Get("Content-Encoding") == "gzip"
			if zipped != tt.zipped {
				t.Fatalf("compressed %t, want %t", zipped, tt.zipped)
			}
			if zipped {
				if body, err = gzip.NewReader(body); err != nil {
					t.Fatal(err)
				}
			}
			got := make([]byte, len(tt.first))
			if _, err := io.ReadFull(body, got); err != nil || string(got) != tt.first {
				t.Fatalf("got %q, %v", got, err)
			}
			close(seen)
			if rest, err := io.ReadAll(body); err != nil || string(rest) != tt.then {
				t.Errorf("then %d bytes, %v, want %d", len(rest), err, len(tt.then))
			}
		})
	}
}

// TestFirstStatus: the first status of an answer counts, as it does without compression.
func TestFirstStatus(t *testing.T) {
	resp, body := ask(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusOK)
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, page)
	}), "GET", http.Header{"Accept-Encoding": {"gzip"}})
	if resp.StatusCode != http.StatusOK || unzip(t, body) != page {
		t.Errorf("got %d with %d bytes", resp.StatusCode, len(body))
	}
}

// TestPanic: an answer that breaks off is not taken for a complete one.
func TestPanic(t *testing.T) {
	s := httptest.NewServer(compress.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, page)
		panic(http.ErrAbortHandler)
	})))
	defer s.Close()
	resp, err := s.Client().Get(s.URL)
	if err != nil {
		return // the header did not arrive
	}
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("half an answer has arrived as a whole one")
	}
}
